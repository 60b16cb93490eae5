"""What is no speech gives no text, with the real model; and what the engine makes of segments that it was given."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.whisper.messages import SAMPLE_RATE, UNIT_NOTES
from services.whisper.recognizer import Recognizer
from tests.services.whisper_sound import Sound, write_wave
from tests.services.whisper_support import JFK, text_of, transcribe_anew, words_of

pytestmark = [pytest.mark.model, pytest.mark.timeout(120)]


def melody(seconds: int) -> Sound:
    """Chords with overtones that swell and fade, a bass, and a beat."""
    generator = np.random.default_rng(7)
    time = np.arange(seconds * SAMPLE_RATE) / SAMPLE_RATE
    sound = np.zeros_like(time)
    for bar, root in enumerate([220.0, 174.6, 130.8, 196.0] * (seconds // 8 + 1)):
        swell = np.clip(1 - np.abs(time - 2 * bar - 1), 0, 1)
        for interval in (0.5, 1.0, 1.26, 1.498):
            for overtone in (1, 2, 3):
                sound += swell * np.sin(2 * np.pi * root * interval * overtone * time) / overtone
    sound += (np.mod(time, 0.5) < 0.03) * generator.normal(0, 1, time.size)
    return sound / np.abs(sound).max() * np.float32(0.8)


@pytest.mark.parametrize("language", ["no", None])
def test_music_gives_no_text(tmp_path: Path, language: str | None) -> None:
    write_wave(tmp_path / "music.wav", melody(20))

    units = transcribe_anew(tmp_path, "music.wav", language=language)

    assert text_of(units) == ""


@pytest.mark.parametrize("sample", ["edge/silence.mp3", "edge/noise.mp3"])
def test_silence_and_noise_give_no_text_in_norwegian(samples: Path, sample: str) -> None:
    assert text_of(transcribe_anew(samples / "audio", sample, language="no")) == ""


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What the recognizer writes for each try, in place of the model's own words."""
    tries: list[list[str]] = []

    def transcribe(_self: Recognizer, *_: Any) -> Iterator[dict[str, Any]]:
        for number, text in enumerate(tries.pop(0)):
            yield {"start": 0.5 + number, "end": 1.4 + number, "text": text, "avg_logprob": -0.9, "no_speech_prob": 0.7}

    monkeypatch.setattr(Recognizer, "transcribe", transcribe)
    return tries


def test_dropped_segments_are_kept_with_the_reason(samples: Path, heard: list[list[str]]) -> None:
    heard += [["Takk for at du så på."]]

    (unit,) = transcribe_anew(samples / "audio", "jfk.mp3")

    assert unit.segments == []
    assert [(row["text"], row["start"], row["reason"]) for row in unit.dropped] == [
        ("Takk for at du så på.", 0.5, "silence")
    ]


def test_unit_whose_words_cannot_be_placed_has_its_text_all_the_same(
    samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library's search for the times of words raises IndexError on some audio, in the middle of a unit."""
    transcribe = Recognizer.transcribe

    def failing(self: Recognizer, unit: Any, language: str, request: Any, *rest: Any) -> Iterator[dict[str, Any]]:
        yield from transcribe(self, unit, language, request, *rest)
        if request.word_timestamps:
            raise IndexError("list index out of range")

    monkeypatch.setattr(Recognizer, "transcribe", failing)

    (unit,) = transcribe_anew(samples / "audio", "jfk.mp3", word_timestamps=True)

    assert " ".join(words_of(text_of([unit]))).endswith(JFK)
    assert not any(row.get("words") for row in unit.segments)
    assert unit.flags == ["no_word_times"]
    assert unit.flags[0] in UNIT_NOTES


def test_unit_with_much_speech_and_little_text_is_tried_again_and_then_flagged(
    samples: Path, heard: list[list[str]]
) -> None:
    heard += [["Ja."], ["Ja."]]

    (unit,) = transcribe_anew(samples / "audio", "ljspeech-2min.mp3")

    assert heard == []
    assert unit.flags == ["low_density"]
    assert unit.flags[0] in UNIT_NOTES
