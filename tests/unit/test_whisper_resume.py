"""Finished units are used again when nothing that decides the text has changed, and only then."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from services.whisper.messages import DecodeCounts, SpeechRequest, UnitResult
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
