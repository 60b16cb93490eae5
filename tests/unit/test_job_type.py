"""job_type.toml: what is read, and what is said when it is wrong."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import msgspec
import pytest

from sidelinja_jobs.errors import SettingsError
from sidelinja_jobs.job_type import JobType
from tests.databases import ROOT, Database

SERVICES = ROOT / "services"


def write(folder: Path, text: str | bytes, service: str = "example") -> Path:
    (folder / service).mkdir()
    (folder / service / "job_type.toml").write_bytes(text.encode() if isinstance(text, str) else text)
    return folder / service


def test_a_file_with_name_and_role_has_the_specified_defaults(tmp_path: Path) -> None:
    job_type = JobType.load(write(tmp_path, 'name = "a"\nrole = "worker_a"\n'))

    assert (job_type.name, job_type.role) == ("a", "worker_a")
    assert (job_type.backoff_base_seconds, job_type.backoff_cap_seconds, job_type.backoff_jitter) == (30, 3600, 0.0)
    assert (job_type.longest_run_seconds, job_type.payload_limit_bytes) == (21_600, 1_048_576)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('role = "worker_a"', "name"),
        ('name = "a"', "role"),
        ('name = "a"\nrole = "b"\nlease = 3', "lease"),
        ('name = "a"\nrole = "b"\nlease_seconds = "long"', "lease_seconds"),
        ('name = "a"\nrole = "b"\nlease_seconds = 1.5', "lease_seconds"),
        ('name = 5\nrole = "b"', "name"),
        ('name = "a"\nrole = "b"\nfollow_ups = "c"', "follow_ups"),
        ("name = a", "line 1"),
        (b'name = "\xff"', "utf-8"),
    ],
)
def test_a_wrong_file_is_named_with_its_field(tmp_path: Path, text: str | bytes, message: str) -> None:
    folder = write(tmp_path, text)

    with pytest.raises(SettingsError) as caught:
        JobType.load(folder)

    assert str(caught.value).startswith(f"{folder}/job_type.toml: ")
    assert message in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"job_type\.toml: .*No such file"):
        JobType.load(tmp_path)


def test_all_services_with_a_file_are_read_in_the_order_of_their_folders(tmp_path: Path) -> None:
    write(tmp_path, 'name = "z"\nrole = "worker_z"', "a")
    write(tmp_path, 'name = "y"\nrole = "worker_y"', "b")
    (tmp_path / "c").mkdir()

    assert [job_type.name for job_type in JobType.load_all(tmp_path)] == ["z", "y"]


def test_the_files_of_this_project_are_right_and_apart_by_name() -> None:
    job_types = JobType.load_all(SERVICES)

    names = [job_type.name for job_type in job_types]
    assert "whisper_transcribe" in names
    assert len(set(names)) == len(names)
    for file in SERVICES.glob("*/job_type.toml"):
        assert set(tomllib.loads(file.read_text())) <= {field.name for field in msgspec.structs.fields(JobType)}


def test_a_job_type_cannot_be_changed() -> None:
    job_type = JobType(name="a", role="worker_a")

    with pytest.raises(AttributeError):
        job_type.lease_seconds = 1  # type: ignore[misc]


def test_defaults_are_those_of_the_table(database: Database) -> None:
    """A type without a file and a type whose file says nothing get the same rules."""
    database.rows("insert into job_type (name, role) values ('a', 'worker_a')")
    row = database.row("select * from job_type where name = 'a'")

    for field in msgspec.structs.fields(JobType):
        if field.name in row:
            assert row[field.name] == getattr(JobType(name="a", role="worker_a"), field.name), field.name


def test_a_worker_whose_rules_are_wrong_says_which_file_and_does_not_start(tmp_path: Path) -> None:
    started = (
        "import sys, pathlib, sidelinja_jobs as jobs; sys.exit(jobs.run_process(pathlib.Path(sys.argv[1]), print))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", started, str(tmp_path)], capture_output=True, text=True,
        env={"PYTHONPATH": str(ROOT / "shared")}, timeout=30,
    )  # fmt: skip

    assert (ended.returncode, ended.stderr) == (os.EX_CONFIG, "")
    assert f"{tmp_path}/job_type.toml" in json.loads(ended.stdout)["problem"]
