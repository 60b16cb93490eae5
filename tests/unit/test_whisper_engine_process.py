"""What the worker makes of an engine that dies, hangs, is slow or grows old; the engine here is a scripted one."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from services.whisper import pace
from services.whisper.device import NoDeviceError
from services.whisper.engine_process import Engine, EngineLimits
from services.whisper.messages import (
    SAMPLE_RATE,
    DecodeCounts,
    EngineReport,
    EngineRequest,
    ModelRequest,
    SpeechRequest,
    UnitProgress,
    UnitResult,
    UnitStarted,
)
from services.whisper.pace import Pace
from services.whisper.transcription import Transcription
from sidelinja_jobs import Checkpoint, ChildError, PermanentError, SettingsError
from sidelinja_jobs.errors import HandlerError

UNITS, UNIT_SECONDS = 4, 60
MODEL = ModelRequest(Path("/none"), "int8", 1)
_kept: list[bytes] = []


def scripted(request: EngineRequest, emit: Callable[[Any], None]) -> EngineReport:
    """The engine's process: four units of a minute; the path says what happens at which, as in "die 2"."""
    what, _, where = request.path.partition(" ")
    if what == "grow":
        _kept.append(os.urandom(80 << 20))
    for index in range(request.first_unit, UNITS) if request.path else ():
        start = index * UNIT_SECONDS * SAMPLE_RATE
        end = start + UNIT_SECONDS * SAMPLE_RATE
        skips = request.skip_first and index == request.first_unit
        if not skips:
            emit(UnitStarted(index, start, end))
            emit(UnitProgress("transcribing", start / SAMPLE_RATE + 1, UNITS * UNIT_SECONDS))
        if str(index) == where and (not skips or what == "die always"):
            ACTIONS[what]()
        flags = ["unit_skipped"] if skips else []
        counts = DecodeCounts(10, 0, UNITS * UNIT_SECONDS)
        emit(
            UnitResult(index, start, end, index == UNITS - 1, 100, "no", None, [], counts,
                       dict.fromkeys(UnitResult.SPENT, 0.01), flags)
        )  # fmt: skip
    return EngineReport("cpu", "int8", 1, 0.0, 0)


def without_gpu(_request: EngineRequest, _emit: Callable[[Any], None]) -> None:
    raise NoDeviceError("no GPU can be used: no CUDA device is visible")


def fallen_back(_request: EngineRequest, _emit: Callable[[Any], None]) -> EngineReport:
    return EngineReport("cpu", "int8_float32", 1, 0.0, 0, device_note="no CUDA device is visible")


def fail() -> None:
    raise ValueError("no such word")


def fail_on_gpu() -> None:
    raise RuntimeError("CUDA failed with error unspecified launch failure")


def fail_for_memory() -> None:
    raise RuntimeError("mkl_malloc: failed to allocate memory")


ACTIONS: dict[str, Callable[[], Any]] = {
    "die": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "abort": lambda: os.kill(os.getpid(), signal.SIGABRT),
    "hang": lambda: time.sleep(600),
    "fail": fail,
    "gpu": fail_on_gpu,
    "memory": lambda: np.empty(1 << 55),
    "native-memory": fail_for_memory,
}


class Jobs:
    """A job, run again and again on an engine; its checkpoints are kept as the database would."""

    def __init__(self) -> None:
        self.engine = Engine(MODEL, EngineLimits(), target=f"{__name__}:scripted")
        self.stored: list[Checkpoint] = []
        self.notes: list[str] = []
        self.log = SimpleNamespace(info=lambda *_, **__: None)

    def checkpoints(self) -> list[Checkpoint]:
        return list(self.stored)

    def checkpoint(self, data: Any) -> None:
        self.stored.append(Checkpoint(len(self.stored) + 1, data, datetime.now(UTC)))

    def drop_checkpoints(self) -> None:
        self.stored.clear()

    def progress(self, _fraction: float | None, note: str | None = None) -> None:
        self.notes.append(note or "")

    def run(self, path: str, attempt: int = 1, *, lenient: bool = False) -> list[UnitResult]:
        transcription = Transcription(self)
        transcription.take_over("key")
        request = EngineRequest(MODEL, SpeechRequest("no"), path=path)
        self.engine.run(request, transcription, attempt=attempt, lenient=lenient)
        return transcription.units


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    made = Jobs()
    yield made
    made.engine.close()


def test_death_of_the_engine_is_told_with_signal_memory_and_unit_and_the_next_run_goes_on(jobs: Jobs) -> None:
    with pytest.raises(
        HandlerError, match=r"signal 9 \(SIGKILL\).*peak memory \d+ MiB.*unit 3 \(2:00 to 3:00\)"
    ) as caught:
        jobs.run("die 2")

    assert caught.value.error_class == "child_died"
    units = jobs.run("fine", attempt=2)
    assert [unit.index for unit in units] == [0, 1, 2, 3]
    assert units[2].flags == []


def test_second_death_on_a_unit_ends_the_job_and_names_the_unit(jobs: Jobs) -> None:
    with pytest.raises(HandlerError):
        jobs.run("abort 1")
    with pytest.raises(PermanentError, match=r"unit 2 \(1:00 to 2:00\).*signal 6 \(SIGABRT\).*Next:") as caught:
        jobs.run("abort 1", attempt=2)

    assert caught.value.error_class == "poison_unit"


def test_deaths_on_different_units_are_counted_apart(jobs: Jobs) -> None:
    for attempt, unit in enumerate((0, 1, 2), start=1):
        with pytest.raises(HandlerError) as caught:
            jobs.run(f"die {unit}", attempt=attempt)
        assert caught.value.error_class == "child_died"


def test_lenient_job_leaves_out_the_unit_and_says_so(jobs: Jobs) -> None:
    with pytest.raises(HandlerError):
        jobs.run("die 1", lenient=True)

    units = jobs.run("die 1", attempt=2, lenient=True)

    assert [unit.flags for unit in units] == [[], ["unit_skipped"], [], []]


def test_retried_job_begins_with_a_clean_slate(jobs: Jobs) -> None:
    for attempt in (1, 2):
        with pytest.raises((HandlerError, PermanentError)):
            jobs.run("die 1", attempt=attempt)

    with pytest.raises(HandlerError) as caught:
        jobs.run("die 1", attempt=1)

    assert caught.value.error_class == "child_died"


def test_error_that_the_engine_survives_is_no_death(jobs: Jobs) -> None:
    for attempt in (1, 2, 3):
        with pytest.raises(ChildError, match="no such word"):
            jobs.run("fail 1", attempt=attempt)

    assert jobs.engine.pid is not None
    assert len(jobs.run("fine", attempt=4)) == UNITS


@pytest.mark.parametrize(
    ("what", "message", "error_class"),
    [
        ("gpu", "unspecified launch failure", "cuda_error"),
        ("memory", "Unable to allocate", "out_of_memory"),
        ("native-memory", "mkl_malloc", "out_of_memory"),
    ],
)
def test_trouble_of_the_machine_is_tried_again_in_a_new_process(
    jobs: Jobs, what: str, message: str, error_class: str
) -> None:
    with pytest.raises(HandlerError, match=rf"{message}.*, in unit 2 ") as caught:
        jobs.run(f"{what} 1")

    assert caught.value.error_class == error_class
    assert jobs.engine.pid is None
    assert len(jobs.run("fine", attempt=2)) == UNITS


def test_engine_without_the_gpu_that_is_demanded_does_not_start_and_says_what_to_set() -> None:
    engine = Engine(ModelRequest(Path("/none"), "auto", 1, device="cuda"), target=f"{__name__}:without_gpu")

    with pytest.raises(SettingsError, match=r"no CUDA device is visible.*WHISPER_DEVICE"):
        engine.load()

    engine.close()


def test_engine_that_fell_back_says_why() -> None:
    engine = Engine(ModelRequest(Path("/none"), "auto", 1, device="auto"), target=f"{__name__}:fallen_back")

    report = engine.load()

    assert report.device_note == "no CUDA device is visible"
    assert engine.arithmetic == "cpu:int8_float32"
    engine.close()


def test_engine_that_hangs_is_killed_and_the_job_tried_again(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs.run("fine")  # the process is up
    monkeypatch.setattr(pace, "LEAST_SECONDS", 3.0)
    jobs.engine._pace = Pace("cpu", unit_seconds=0.1)
    jobs.stored.clear()
    pid = jobs.engine.pid

    with pytest.raises(HandlerError, match=r"no sign of life.*unit 2 ") as caught:
        jobs.run("hang 1")

    assert caught.value.error_class == "engine_stalled"
    assert len(jobs.run("fine", attempt=2)) == UNITS
    assert jobs.engine.pid != pid


def test_engine_is_renewed_after_its_number_of_jobs_or_above_its_memory(jobs: Jobs) -> None:
    jobs.engine._limits = EngineLimits(jobs=2)
    pids = []
    for _ in range(4):
        jobs.stored.clear()
        jobs.run("fine")
        pids.append(jobs.engine.pid)
        jobs.engine.between_jobs()

    assert pids[0] == pids[1] != pids[2] == pids[3]

    jobs.engine._limits = EngineLimits(rss_bytes=100 << 20)
    jobs.stored.clear()
    jobs.run("fine")
    jobs.engine.between_jobs()
    assert jobs.engine.pid is not None
    jobs.stored.clear()
    jobs.run("grow")
    jobs.engine.between_jobs()
    assert jobs.engine.pid is None


def test_limits_grow_with_the_audio_and_with_the_time_that_units_take() -> None:
    measured = Pace("cpu")

    assert measured.longest_call(None) is None
    assert measured.longest_call(600) == pytest.approx(120 + 3 * 600 / 0.5)
    assert measured.longest_silence() == 600
    for _ in range(30):
        measured.note(300, 40)
    assert measured.longest_silence() == pytest.approx(400)
    assert measured.longest_call(10_800) == pytest.approx(120 + 3 * 10_800 / 0.5)
    for _ in range(30):
        measured.note(300, 3000)  # a large model on a slow machine
    assert measured.longest_call(600) == pytest.approx(120 + 3 * 600 / 0.1, rel=0.01)
    assert measured.longest_silence() == pytest.approx(30_000, rel=0.01)
    measured.note(0, 0)
    assert Pace("cuda").longest_silence() == 120
