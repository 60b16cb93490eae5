"""What a running worker meets: an engine that hangs or finds no memory, folders that are away, and how it starts."""

import os
import resource
import shutil
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from services.whisper.messages import SAMPLE_RATE
from services.whisper.model import DIGESTS, WEIGHTS, file_sha256
from tests.services.whisper_sound import read_sound, write_wave
from tests.services.whisper_support import JFK, base_model, words_of
from tests.services.whisper_worker import Whisper
from tests.waiting import wait_until

pytestmark = [pytest.mark.model, pytest.mark.timeout(180)]

EPISODE_SECONDS = 50
ATTEMPTS = "select outcome, error_msg, ended_at from job_attempt where job_id = %s order by id"
# The worker, told to lose patience with its engine after seconds instead of minutes.
IMPATIENT = (
    "import runpy; from services.whisper import pace; pace.LEAST_SECONDS, pace.SILENT_UNITS = 8.0, 4.0; "
    "runpy.run_module('services.whisper', run_name='__main__')"
)
# The worker without root's right to write where its own folder's mode forbids it (CAP_DAC_OVERRIDE, _READ_SEARCH).
BOUND_BY_MODES = (
    "import ctypes, os, sys; prctl = ctypes.CDLL(None).prctl; prctl(24, 1); prctl(24, 2); "
    "os.execv(sys.executable, [sys.executable, '-m', 'services.whisper'])"
)


@pytest.fixture
def whisper(whisper: Whisper) -> Whisper:
    whisper.make_impatient()
    return whisper


def add_episode(whisper: Whisper) -> None:
    heard = read_sound(whisper.samples / "audio" / "ljspeech-2min.mp3")
    write_wave(whisper.media / "episode.wav", heard[: EPISODE_SECONDS * SAMPLE_RATE])


def try_now(whisper: Whisper, job_id: UUID) -> None:
    whisper.database.rows("update job_queue set scheduled_for = now() where id = %s", job_id)


def test_engine_that_hangs_for_ever_is_killed_and_the_job_goes_on(whisper: Whisper) -> None:
    add_episode(whisper)
    worker = whisper.start(IMPATIENT, UNIT_SECONDS="10")
    job_id = whisper.enqueue("episode.wav", language="en", outputs=[])
    whisper.wait_for_units(job_id, 2)
    engine = whisper.engine_of(worker)

    engine.suspend()
    first = whisper.first_attempt(job_id)
    result = whisper.wait(job_id)["result"]

    assert first["error_class"] == "engine_stalled"
    assert "no sign of life" in first["error_msg"]
    assert not engine.is_running()
    assert result["timing"]["resumed_units"] >= 2


def test_engine_without_memory_is_told_and_the_job_goes_on(whisper: Whisper) -> None:
    add_episode(whisper)
    worker = whisper.start(UNIT_SECONDS="10")
    job_id = whisper.enqueue("episode.wav", language="en", outputs=[])
    whisper.wait_for_units(job_id, 2)

    engine = whisper.engine_of(worker)
    resource.prlimit(engine.pid, resource.RLIMIT_AS, (1 << 20, 1 << 20))  # whatever it asks for is refused
    first = whisper.first_attempt(job_id)
    result = whisper.wait(job_id)["result"]

    assert first["error_class"] in {"out_of_memory", "child_died"}  # by where it asked
    assert not engine.is_running()
    assert result["timing"]["resumed_units"] >= 2


def wait_until_put_off(whisper: Whisper, job_id: UUID, times: int) -> dict[str, Any]:
    """The job, once its worker has said "come back later" so often."""
    put_off = "select * from job_queue where id = %s and status <> 'running' and (postponements >= %s or attempts > 0)"
    return wait_until(lambda: whisper.database.rows(put_off, job_id, times), 60, what="the job to be put off")[0]


@pytest.mark.parametrize("is_mount_point_left", [False, True])
def test_media_folder_that_is_away_is_waited_for_and_costs_no_attempt(
    whisper: Whisper, is_mount_point_left: bool
) -> None:
    whisper.add("jfk.mp3", "jfk.mp3")
    whisper.start()
    away = whisper.media.rename(whisper.media.with_name("away"))
    if is_mount_point_left:
        whisper.media.mkdir()
    job_id = whisper.enqueue("jfk.mp3", language="en", outputs=["txt"])

    for times in range(1, 6):  # more often than a job may fail
        waiting = wait_until_put_off(whisper, job_id, times)
        assert (waiting["status"], waiting["attempts"], waiting["postponements"]) == ("pending", 0, times)
        if times < 5:
            try_now(whisper, job_id)
    if is_mount_point_left:
        whisper.media.rmdir()
    away.rename(whisper.media)
    try_now(whisper, job_id)
    done = whisper.wait(job_id)
    missing = whisper.wait(whisper.enqueue("missing.mp3"), "error")

    told = whisper.database.rows(ATTEMPTS, job_id)
    assert [row["outcome"] for row in told] == ["postponed"] * 5
    assert str(whisper.media) in told[-1]["error_msg"]
    assert 45 < (waiting["scheduled_for"] - told[-1]["ended_at"]).total_seconds() < 75
    assert (done["attempts"], " ".join(words_of(done["result"]["text"]))[-len(JFK) :]) == (0, JFK)
    assert (missing["error_class"], missing["attempts"]) == ("not_found", 1)


def test_media_folder_that_goes_while_a_file_is_read_costs_no_text(whisper: Whisper) -> None:
    add_episode(whisper)
    whisper.start(UNIT_SECONDS="10")
    job_id = whisper.enqueue("episode.wav", language="en", outputs=["txt"])
    whisper.wait_for_units(job_id, 2)
    away = whisper.media.rename(whisper.media.with_name("away"))
    whisper.media.mkdir()  # the place of the mount: the file in it seems to have been taken away

    waiting = wait_until_put_off(whisper, job_id, 1)
    whisper.media.rmdir()
    away.rename(whisper.media)
    try_now(whisper, job_id)
    done = whisper.wait(job_id)

    assert (waiting["postponements"], waiting["attempts"], done["attempts"]) == (1, 0, 0)
    assert done["result"]["timing"]["resumed_units"] == done["result"]["timing"]["units"]
    assert done["result"]["duration"] == pytest.approx(EPISODE_SECONDS, abs=0.05)
    assert (whisper.media / "episode.en.txt").is_file()


def test_read_only_folder_is_known_before_the_work_and_another_place_takes_the_files_and_is_waited_for(
    whisper: Whisper, tmp_path: Path
) -> None:
    whisper.add("jfk.mp3", "2026/jfk.mp3")
    output = tmp_path / "output"
    output.mkdir()
    (whisper.media / "2026").chmod(0o555)
    try:
        alone = whisper.start(BOUND_BY_MODES)
        refused = whisper.wait(whisper.enqueue("2026/jfk.mp3", language="en"), "error")
        alone.terminate()
        alone.wait(30)
        whisper.start(BOUND_BY_MODES, OUTPUT_ROOT=str(output))
        away = output.rename(tmp_path / "away")
        job_id = whisper.enqueue("2026/jfk.mp3", language="en")
        waiting = wait_until_put_off(whisper, job_id, 1)
        away.rename(output)
        try_now(whisper, job_id)
        result = whisper.wait(job_id)["result"]
    finally:
        (whisper.media / "2026").chmod(0o755)

    assert (refused["error_class"], refused["attempts"]) == ("not_writable", 1)
    assert str(whisper.media / "2026") in refused["error_msg"]
    assert (waiting["postponements"], waiting["attempts"]) == (1, 0)
    assert result["output_root"] == "output"
    assert {file.name for file in (whisper.media / "2026").iterdir()} == {"jfk.mp3"}
    assert all((output / path).is_file() for path in result["outputs"].values())


@pytest.fixture
def damaged_model(tmp_path: Path) -> Path:
    """The base model's files under another root, to be damaged."""
    folder = tmp_path / "models" / "base"
    shutil.copytree(base_model().folder, folder)
    return folder


@pytest.mark.parametrize("damage", ["cut short", "altered", "a file is gone", "not JSON"])
def test_worker_with_a_damaged_model_does_not_start_and_names_the_file(
    whisper: Whisper, damaged_model: Path, damage: str
) -> None:
    weights = damaged_model / WEIGHTS
    expected = WEIGHTS
    if damage == "cut short":
        os.truncate(weights, weights.stat().st_size // 2)
    elif damage == "altered":
        (damaged_model / DIGESTS).write_text(f"{file_sha256(weights)}  {WEIGHTS}\n")
        with weights.open("r+b") as file:
            file.seek(100_000_000)
            file.write(b"damage")
    elif damage == "a file is gone":
        (damaged_model / "tokenizer.json").unlink()
        expected = "tokenizer.json"
    else:
        (damaged_model / "config.json").write_text("{")
        expected = "config.json"

    worker = whisper.start(ready=False, MODEL_ROOT=str(damaged_model.parent))

    assert worker.wait(30) == 78
    assert expected in worker.log_events("cannot start")[0]["problem"]
