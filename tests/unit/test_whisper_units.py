"""Where units are cut, and what of them is speech."""

import wave
from pathlib import Path

import numpy as np
import pytest

from services.whisper.decode import AudioReader
from services.whisper.messages import SAMPLE_RATE
from services.whisper.units import (
    Stretch,
    choose_cut,
    clipped,
    cut_units,
    padded,
    pauses_between,
    quietest,
)

RANDOM = np.random.default_rng(1)


def stretch(start_seconds: float, end_seconds: float) -> Stretch:
    return Stretch(int(start_seconds * SAMPLE_RATE), int(end_seconds * SAMPLE_RATE))


def noise(length_seconds: float, loudness: float = 0.1) -> np.ndarray:
    return (RANDOM.standard_normal(int(length_seconds * SAMPLE_RATE)) * loudness).astype(np.float32)


def test_cut_is_in_the_middle_of_the_longest_pause_of_the_last_third() -> None:
    talk = [stretch(0, 5), stretch(15, 21), stretch(21.5, 25), stretch(26, 30)]  # the longest of all lies before

    assert choose_cut(noise(30), talk) == stretch(0, 25.5).end


def test_pause_that_reaches_the_end_counts() -> None:
    assert choose_cut(noise(30), [stretch(0, 24)]) == stretch(0, 27).end
    assert choose_cut(noise(30), []) == stretch(0, 25).end


def test_speech_without_a_pause_is_cut_at_its_quietest_place() -> None:
    audio = noise(30)
    audio[stretch(0, 26).end : stretch(0, 26.4).end] *= 0.01

    assert choose_cut(audio, [stretch(0, 30)]) == pytest.approx(stretch(0, 26.2).end, abs=0.06 * SAMPLE_RATE)


def test_even_sound_is_cut_somewhere_in_the_last_third() -> None:
    tone = np.full(30 * SAMPLE_RATE, 0.1, dtype=np.float32)

    assert stretch(0, 20).end <= choose_cut(tone, [stretch(0, 30)]) < stretch(0, 30).end
    assert 0 < quietest(tone) < tone.size


def test_pauses_are_what_speech_leaves() -> None:
    assert pauses_between([], 10) == [Stretch(0, 10)]
    assert pauses_between([Stretch(0, 4), Stretch(6, 10)], 10) == [Stretch(4, 6)]
    assert pauses_between([Stretch(2, 4)], 10) == [Stretch(0, 2), Stretch(4, 10)]
    assert clipped([Stretch(0, 4), Stretch(6, 10)], 3, 8) == [Stretch(3, 4), Stretch(6, 8)]


def test_speech_gets_padding_inside_its_unit_and_short_pauses_stay_in() -> None:
    talk = [stretch(0.1, 1), stretch(1.3, 2), stretch(2.6, 3), stretch(9, 9.9)]

    assert padded(talk, stretch(0, 10).end) == [stretch(0, 2.3), stretch(2.3, 3.4), stretch(8.6, 10)]
    assert padded([], 100) == []


@pytest.fixture
def silent_file(tmp_path: Path) -> Path:
    """61 s without a sound, 8 kHz stereo."""
    path = tmp_path / "silence"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(bytes(4 * 8000 * 61))
    return path


def test_units_cover_the_file_and_depend_on_nothing_before_them(silent_file: Path) -> None:
    with silent_file.open("rb") as file, AudioReader(file.fileno()) as reader:
        whole = [(unit.start, unit.end, unit.is_last, unit.audio.size) for unit in cut_units(reader, 20)]
    with silent_file.open("rb") as file, AudioReader(file.fileno()) as reader:
        for position in reader.skip(whole[1][0]):
            assert position <= whole[1][0]
        rest = [(unit.start, unit.end, unit.is_last, unit.audio.size) for unit in cut_units(reader, 20)]

    assert whole[0][0] == 0
    assert whole[-1][1:3] == (61 * SAMPLE_RATE, True)
    assert [unit[0] for unit in whole[1:]] == [unit[1] for unit in whole[:-1]]
    assert all(end - start == size for start, end, _, size in whole)
    assert rest == whole[1:]


def test_file_of_exactly_one_unit_ends(silent_file: Path) -> None:
    with silent_file.open("rb") as file, AudioReader(file.fileno()) as reader:
        units = list(cut_units(reader, 61))

    assert units[-1].is_last
    assert units[-1].end == 61 * SAMPLE_RATE
