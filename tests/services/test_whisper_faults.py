"""An engine that is killed under a running worker, and what a job tells of its progress; with the real model."""

import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from services.whisper import engine, progress
from services.whisper.messages import EngineRequest, ModelRequest, SpeechRequest
from services.whisper.transcription import Transcription
from sidelinja_jobs import Checkpoint
from tests.services.whisper_support import base_model
from tests.services.whisper_worker import Whisper
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcess

pytestmark = [pytest.mark.model, pytest.mark.timeout(180)]


@pytest.fixture
def whisper(whisper: Whisper) -> Whisper:
    whisper.make_impatient()
    whisper.add("ljspeech-2min.mp3", "episode.mp3")
    return whisper


def test_killed_engine_stands_in_the_history_and_the_job_goes_on(whisper: Whisper) -> None:
    worker = whisper.start()
    job_id = whisper.enqueue("episode.mp3", language="en", outputs=[])
    whisper.wait_for_units(job_id, 2)

    whisper.engine_of(worker).kill()
    wait_until(lambda: whisper.database.job(job_id)["status"] == "completed", 60, what="the second run to end")
    result = whisper.database.job(job_id)["result"]

    first = whisper.first_attempt(job_id)
    assert first["error_class"] == "child_died"
    assert re.search(r"signal 9 \(SIGKILL\).*peak memory \d{2,} MiB.*unit \d \(", first["error_msg"])
    assert result["timing"]["resumed_units"] >= 2
    assert result["timing"]["units"] >= 5


def test_second_death_on_a_unit_ends_the_job_and_a_lenient_one_goes_on(whisper: Whisper) -> None:
    worker = whisper.start(UNIT_SECONDS="300")

    strict = kill_twice(whisper, worker, whisper.enqueue("episode.mp3", language="en", outputs=[]))
    ended = whisper.wait(strict, "error")
    lenient = kill_twice(whisper, worker, whisper.enqueue("episode.mp3", language="en", outputs=[], lenient=True))
    result = whisper.wait(lenient)["result"]

    assert (ended["error_class"], ended["attempts"]) == ("poison_unit", 2)
    assert "unit 1 (0:00 to 2:0" in ended["error_msg"]
    assert "unit_skipped" in result["flags"]
    assert result["duration"] > 120


def kill_twice(whisper: Whisper, worker: WorkerProcess, job_id: UUID) -> UUID:
    """Kills the engine under the job, while it works, and again when it works anew."""
    for death in (1, 2):
        wait_until(lambda: at_work(whisper, job_id, attempts=death - 1), 60, what="a segment")  # noqa: B023
        whisper.engine_of(worker).kill()
        wait_until(lambda: deaths(whisper, job_id) >= death, 20, what="the death to be told")  # noqa: B023
    return job_id


def at_work(whisper: Whisper, job_id: UUID, attempts: int = 0) -> bool:
    """With a segment of the run after that many failures: a run whose engine has just died still shows its own."""
    row = whisper.database.row("select status, attempts, progress_note from job_queue where id = %s", job_id)
    is_run = (row["status"], row["attempts"]) == ("running", attempts)
    return is_run and "transcribing" in (row["progress_note"] or "")


def deaths(whisper: Whisper, job_id: UUID) -> int:
    count: int = whisper.database.value(
        "select count(*) from job_checkpoint where job_id = %s and data -> 'run_end' ? 'death'", job_id
    )
    return count


class Notes:
    """Takes the place of a job's context; remembers when which note came."""

    def __init__(self) -> None:
        self.log = SimpleNamespace(info=lambda *_, **__: None)
        self.notes: list[tuple[float, float, str]] = []

    def progress(self, fraction: float | None, note: str | None = None) -> None:
        self.notes.append((time.process_time(), fraction or 0.0, note or ""))

    def checkpoints(self) -> list[Checkpoint]:
        return []

    def checkpoint(self, data: Any) -> None:
        pass

    def drop_checkpoints(self) -> None:
        pass


def test_time_left_is_right_within_a_fifth_after_the_first_quarter(
    samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In CPU time, since others may be at work on this machine."""
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=time.process_time))
    model = ModelRequest(base_model().folder, "int8", 0)
    engine.load(model)
    notes = Notes()
    transcription = Transcription(notes)
    speech = SpeechRequest("en", unit_seconds=15)

    engine.transcribe(EngineRequest(model, speech, samples / "audio", "ljspeech-2min.mp3"), transcription.receive)

    ended, _, last = notes.notes[-1]
    at, _, note = next(found for found in notes.notes if found[1] >= 0.25 and "left" in found[2])
    minutes, seconds = (int(part) for part in re.findall(r"(\d+):(\d\d) left", note)[0])
    assert re.fullmatch(r"transcribing 0:\d\d of 2:0\d, \d units done, \d+\.\dx, \d:\d\d left", note)
    assert 60 * minutes + seconds == pytest.approx(ended - at, rel=0.2, abs=1.5)
    assert last.startswith("transcribing 2:0")
