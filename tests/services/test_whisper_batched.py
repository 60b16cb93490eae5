"""Many windows at once, as on a GPU, with the real model on the CPU: the same speech, words and times."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.report import word_error_rate
from services.whisper import engine
from services.whisper.messages import ModelRequest, UnitResult
from tests.services.whisper_support import JFK, base_model, text_of, transcribe_anew, words_of

pytestmark = [pytest.mark.model, pytest.mark.timeout(120)]


@pytest.fixture
def _batches() -> Iterator[None]:
    recognizer = engine.load(ModelRequest(base_model().folder, "int8", 0))
    recognizer.device, recognizer.batch_size = "cuda", 8
    yield
    recognizer.device, recognizer.batch_size = "cpu", 1


def times_of(units: list[UnitResult]) -> list[float]:
    return [time for unit in units for row in unit.segments for time in (row["start"], row["end"])]


@pytest.mark.usefixtures("_batches")
def test_two_minutes_are_understood_and_cut_into_segments(samples: Path) -> None:
    units = transcribe_anew(samples / "audio", "ljspeech-2min.mp3")

    expected = (samples / "audio" / "ljspeech-2min.txt").read_text()
    assert word_error_rate(expected, text_of(units)) <= 0.08
    assert times_of(units) == sorted(times_of(units))
    assert all(row["end"] - row["start"] <= 30 for unit in units for row in unit.segments)
    assert len(units[0].segments) > 8


@pytest.mark.usefixtures("_batches")
def test_words_have_times(samples: Path) -> None:
    (unit,) = transcribe_anew(samples / "audio", "jfk.mp3", word_timestamps=True)

    assert " ".join(words_of(text_of([unit]))).endswith(JFK)
    words = [word for row in unit.segments for word in row["words"]]
    assert len(words) > 20
    assert 7 < words[-1]["end"] <= 11
