"""Finished units are used again when nothing that decides the text has changed, and only then."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from services.whisper.messages import DecodeCounts, SpeechRequest, UnitProgress, UnitResult
from services.whisper.progress import Speedometer, clock, progress_of
from services.whisper.resume import as_checkpoint, resume_key, settings_hash, usable_units
from sidelinja_jobs import Checkpoint

SPEECH = SpeechRequest("no", ("Kygo",), "Hei.", False, 5, 300)
KEY = resume_key("a" * 64, settings_hash(SPEECH, "b" * 64, "int8"))


def unit(index: int, *, start: int = 0, end: int = 100, is_last: bool = False) -> UnitResult:
    row = {
        "start": 0.1,
        "end": 1.25,
        "text": "Hei på deg",
        "avg_logprob": -0.3,
        "words": [{"word": " Hei", "start": 0.1}],
    }
    return UnitResult(
        index, start, end, is_last, 90, "no", None, [row], DecodeCounts(10, 1, 6.25), {"infer_s": 1.0}, ["hotwords_cut"]
    )


def stored(*data: Any) -> list[Checkpoint]:
    """As the database gives them back."""
    return [Checkpoint(seq, json.loads(json.dumps(item)), datetime.now(UTC)) for seq, item in enumerate(data, start=1)]


UNITS = [unit(0, end=100), unit(1, start=100, end=250), unit(2, start=250, end=300, is_last=True)]


def test_units_come_back_as_they_were() -> None:
    assert usable_units(stored(*(as_checkpoint(each, KEY) for each in UNITS)), KEY) == UNITS
    assert usable_units([], KEY) == []


@pytest.mark.parametrize(
    "data",
    [
        [as_checkpoint(UNITS[0], "other")],
        [as_checkpoint(UNITS[0], KEY), as_checkpoint(UNITS[1], "other")],
        [as_checkpoint(UNITS[1], KEY)],
        [as_checkpoint(UNITS[0], KEY), as_checkpoint(UNITS[2], KEY)],
        [as_checkpoint(UNITS[0], KEY), as_checkpoint(replace(UNITS[1], start_sample=99), KEY)],
        [{"key": KEY}],
        [{"key": KEY, "index": "0"}],
        ["not ours"],
        [None],
    ],
    ids=["other-key", "mixed-keys", "no-first", "gap", "overlap", "empty", "wrong-type", "text", "null"],
)
def test_checkpoints_that_do_not_fit_are_left_alone(data: list[Any]) -> None:
    assert usable_units(stored(*data), KEY) == []


@pytest.mark.parametrize(
    "changed",
    [
        replace(SPEECH, language="nn"),
        replace(SPEECH, language=None),
        replace(SPEECH, hotwords=()),
        replace(SPEECH, prompt=None),
        replace(SPEECH, word_timestamps=True),
        replace(SPEECH, beam_size=1),
        replace(SPEECH, unit_seconds=30),
    ],
)
def test_each_setting_that_decides_the_text_changes_the_key(changed: SpeechRequest) -> None:
    assert settings_hash(changed, "b" * 64, "int8") != settings_hash(SPEECH, "b" * 64, "int8")


def test_model_and_precision_change_the_key_and_nothing_else_does() -> None:
    known = settings_hash(SPEECH, "b" * 64, "int8")

    assert settings_hash(SPEECH, "c" * 64, "int8") != known
    assert settings_hash(SPEECH, "b" * 64, "float32") != known
    assert settings_hash(replace(SPEECH), "b" * 64, "int8") == known
    assert resume_key("c" * 64, known) != resume_key("a" * 64, known)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (UnitProgress("transcribing", 200, 725), (200 / 725, "transcribing 3:20 of 12:05")),
        (UnitProgress("transcribing", 3800, 10_000), (0.38, "transcribing 1:03:20 of 2:46:40")),
        (UnitProgress("reading", 61, None), (0.0, "reading 1:01")),
        (UnitProgress("transcribing", 900, 725), (0.99, "transcribing 15:00")),
        (UnitProgress("transcribing", 724.9, 725), (0.99, "transcribing 12:04 of 12:05")),
    ],
)
def test_progress_says_how_far_it_is_and_never_that_it_is_done(
    message: UnitProgress, expected: tuple[float, str]
) -> None:
    fraction, note = progress_of(message)

    assert (pytest.approx(expected[0]), expected[1]) == (fraction, note)
    assert clock(0) == "0:00"


def test_progress_tells_units_speed_and_the_time_that_is_left() -> None:
    message = UnitProgress("transcribing", 600, 3600)

    assert progress_of(message, 2, 8.0)[1] == "transcribing 10:00 of 1:00:00, 2 units done, 8.0x, 6:15 left"
    assert progress_of(message, 1, 250.0)[1] == "transcribing 10:00 of 1:00:00, 1 unit done, 250x, 0:12 left"
    assert progress_of(replace(message, total_seconds=None), 2, 8.0)[1] == "transcribing 10:00, 2 units done, 8.0x"


def test_speed_counts_from_the_first_unit_of_this_run(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("services.whisper.progress.time.monotonic", lambda: now[0])
    speedometer = Speedometer()

    assert speedometer.speed(UnitProgress("transcribing", 600, 3600)) is None
    speedometer.begin(600)
    speedometer.begin(900)  # a later unit does not start the clock again
    now[0] = 200.0
    assert speedometer.speed(UnitProgress("reading", 1600, 3600)) is None
    assert speedometer.speed(UnitProgress("transcribing", 700, 3600)) is None  # too little for a guess
    assert speedometer.speed(UnitProgress("transcribing", 1600, 3600)) == 10.0
