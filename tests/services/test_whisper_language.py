"""The language of a file is that of most of its speech, not of its first seconds."""

from pathlib import Path

import numpy as np
import pytest

from services.whisper.messages import SAMPLE_RATE, UnitResult
from services.whisper.recognizer import Recognizer, language_windows
from tests.services.whisper_sound import read_sound, write_wave
from tests.services.whisper_support import transcribe_anew, transcript_of

pytestmark = [pytest.mark.model, pytest.mark.timeout(120)]


def found(units: list[UnitResult]) -> tuple[str | None, float | None]:
    transcript = transcript_of(units, language_was_given=False)
    assert transcript["language_source"] == "detected"
    return transcript["language"], transcript["language_probability"]


@pytest.fixture
def unspoken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the language is looked for; the text is not."""
    monkeypatch.setattr(Recognizer, "transcribe", lambda *_: iter([]))


def test_english_jingle_does_not_make_a_norwegian_file_english(samples: Path, tmp_path: Path, unspoken: None) -> None:
    jingle = read_sound(samples / "audio" / "jfk.mp3")
    speech = read_sound(samples / "audio" / "npsc-medium.mp3")
    write_wave(tmp_path / "episode.wav", np.concatenate([jingle, *([speech] * 6)]))

    language, probability = found(transcribe_anew(tmp_path, "episode.wav", language=None))

    assert language == "no"
    assert probability is not None
    assert 0.3 < probability <= 1


def test_language_is_looked_for_beyond_a_first_unit_without_enough_speech(
    samples: Path, tmp_path: Path, unspoken: None
) -> None:
    speech = read_sound(samples / "audio" / "npsc-medium.mp3")
    silence = np.zeros(20 * SAMPLE_RATE, dtype=np.float32)
    write_wave(tmp_path / "late.wav", np.concatenate([silence, *([speech] * 4)]))

    units = transcribe_anew(tmp_path, "late.wav", language=None, unit_seconds=15)

    assert found(units)[0] == "no"
    assert units[0].speech_samples == 0
    assert len(units) > 2
    assert {unit.language for unit in units} == {"no"}
    assert all(spent >= 0 for unit in units for spent in unit.seconds_spent.values())


def test_windows_are_spread_over_the_speech_and_leave_out_its_beginning() -> None:
    def windows(seconds: int) -> list[tuple[float, float]]:
        found = language_windows(seconds * SAMPLE_RATE)
        return [(window.start / SAMPLE_RATE, window.stop / SAMPLE_RATE) for window in found]

    assert windows(11) == [(0, 11)]
    assert windows(40) == [(0, 30), (30, 40)]
    assert windows(70) == [(15, 45), (45, 70)]
    assert windows(415) == [(50, 80), (150, 180), (250, 280), (350, 380)]
