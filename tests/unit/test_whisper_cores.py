"""Threads follow what the container may use, not what the machine has."""

import os
from pathlib import Path

import pytest

from services.whisper.cores import available_cores, quota_cores


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"cpu.max": "150000 100000\n"}, 1.5),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "50000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 0.5),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({"cpu.max": "\n"}, None),
        ({}, None),
    ],
)
def test_quota_is_read_from_either_version_of_cgroups(
    tmp_path: Path, files: dict[str, str], expected: float | None
) -> None:
    assert quota_cores(write(tmp_path, files)) == expected


def test_cores_are_at_least_one_and_at_most_the_affinity(tmp_path: Path) -> None:
    everything = len(os.sched_getaffinity(0))

    assert available_cores(write(tmp_path / "small", {"cpu.max": "10000 100000"})) == 1
    assert available_cores(write(tmp_path / "large", {"cpu.max": "99900000 100000"})) == everything
    assert available_cores(tmp_path / "none") == everything
