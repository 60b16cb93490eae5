"""What the real base model makes of real speech, unit by unit."""

import shutil
from pathlib import Path

import pytest

from demo.report import word_error_rate
from services.whisper.messages import UnitProgress, UnitResult
from sidelinja_jobs import PermanentError
from tests.services.whisper_support import (
    JFK,
    engine_messages,
    read_aloud,
    text_of,
    transcribe_anew,
    transcribe_units,
    transcript_of,
    words_of,
)

pytestmark = [pytest.mark.model, pytest.mark.timeout(180)]


def test_short_speech_is_understood(samples: Path) -> None:
    (unit,) = transcribe_units(samples / "audio", "jfk.mp3")

    assert word_error_rate(f"and so my fellow americans {JFK}", text_of([unit])) <= 0.1
    assert (unit.start_sample, unit.is_last) == (0, True)
    assert unit.end_sample == pytest.approx(176_000, abs=1_000)


def test_two_minutes_of_reading_are_understood_in_units_of_half_a_minute(samples: Path) -> None:
    units = read_aloud(samples)

    expected = (samples / "audio" / "ljspeech-2min.txt").read_text()
    assert word_error_rate(expected, text_of(units)) <= 0.06
    assert len(units) >= 5
    assert all(unit.end_sample - unit.start_sample <= 30 * 16_000 for unit in units)


def test_units_follow_each_other_without_a_gap_and_times_never_run_backwards(samples: Path) -> None:
    units = read_aloud(samples)

    assert [unit.start_sample for unit in units[1:]] == [unit.end_sample for unit in units[:-1]]
    assert [unit.is_last for unit in units] == [False] * (len(units) - 1) + [True]
    times = [time for unit in units for row in unit.segments for time in (row["start"], row["end"])]
    assert times == sorted(times)
    assert times[-1] <= units[-1].end_sample / 16_000


def test_a_run_that_starts_at_a_later_unit_gives_the_same_units(samples: Path) -> None:
    whole = read_aloud(samples)
    finished = 2

    rest = transcribe_anew(
        samples / "audio",
        "ljspeech-2min.mp3",
        first_unit=finished,
        start_sample=whole[finished].start_sample,
        unit_seconds=30,
    )

    def essence(units: list[UnitResult]) -> list[tuple[object, ...]]:
        return [(unit.index, unit.start_sample, unit.end_sample, unit.speech_samples, unit.segments) for unit in units]

    assert essence(rest) == essence(whole[finished:])


def test_text_found_by_drawing_lots_is_the_same_each_time(samples: Path) -> None:
    """Said twice, the line is so repetitive that Whisper tries again with random sampling."""
    audio = samples / "audio" / "edge"

    first = transcribe_units(audio, "mixed_rate.mp3")
    again = transcribe_anew(audio, "mixed_rate.mp3")

    assert any(row["temperature"] for row in first[0].segments)
    assert again[0].segments == first[0].segments


def test_norwegian_is_recognized_as_such_and_hotwords_bring_the_names(samples: Path) -> None:
    names = ("Fredric Holen Bjørdal", "Trond Giske")

    (bare,) = transcribe_units(samples / "audio", "npsc-medium.mp3", language="no")
    (helped,) = transcribe_units(samples / "audio", "npsc-medium.mp3", language="no", hotwords=names)
    (short,) = transcribe_units(samples / "audio", "npsc-short.mp3", language="no")

    assert "har vært" in text_of([bare])
    assert not any(name in text_of([bare]) for name in names)
    assert all(name in text_of([helped]) for name in names)
    assert "lovlig" in text_of([short])
    assert bare.flags == helped.flags == []


def test_too_many_hotwords_are_cut_and_the_transcript_says_so(samples: Path) -> None:
    names = tuple(f"Fornavn Etternavn{number}" for number in range(40))

    units = transcribe_units(samples / "audio", "npsc-short.mp3", language="no", hotwords=names)

    assert "hotwords_cut" in transcript_of(units)["flags"]


@pytest.mark.parametrize(("sample", "language"), [("jfk.mp3", "en"), ("npsc-medium.mp3", "no")])
def test_language_is_detected_when_asked_for(samples: Path, sample: str, language: str) -> None:
    units = transcribe_units(samples / "audio", sample, language=None)

    transcript = transcript_of(units, language_was_given=False)
    assert (transcript["language"], transcript["language_source"]) == (language, "detected")
    assert 0.3 < transcript["language_probability"] <= 1


def test_silence_has_no_text_and_no_language(samples: Path) -> None:
    units = transcribe_units(samples / "audio", "edge/silence.mp3", language=None)

    transcript = transcript_of(units, language_was_given=False)
    assert (transcript["text"], transcript["language"], transcript["language_probability"]) == ("", None, None)
    assert "no_speech" in transcript["flags"]
    assert transcript["duration"] == pytest.approx(60, abs=0.1)
    assert transcript["speech_seconds"] == 0


def test_words_have_times_inside_their_segment(samples: Path) -> None:
    units = transcribe_units(samples / "audio", "jfk.mp3", word_timestamps=True)

    for row in units[0].segments:
        assert row["words"]
        assert "".join(word["word"] for word in row["words"]).strip() == row["text"]
        assert row["start"] <= row["words"][0]["start"] <= row["words"][-1]["end"] <= row["end"]


def test_language_that_the_model_lacks_is_refused(samples: Path) -> None:
    with pytest.raises(PermanentError, match="yue") as caught:
        transcribe_units(samples / "audio", "jfk.mp3", language="yue")

    assert caught.value.error_class == "unsupported_language"


def test_engine_tells_how_far_it_is(samples: Path) -> None:
    messages = engine_messages(samples / "audio", "jfk.mp3")

    progress = [message for message in messages if isinstance(message, UnitProgress)]
    assert [message.stage for message in progress] == ["transcribing"] * len(progress)
    assert progress[0].seconds == 0  # a sign of life before the first window is understood
    assert len(progress) >= 4  # each piece of work of the model, and each segment
    assert 5 < progress[-1].seconds <= 11.1
    assert progress[0].total_seconds == pytest.approx(11.0, abs=0.1)


def test_name_of_the_file_is_any(samples: Path, tmp_path: Path) -> None:
    name = "Blåbær & «løk»? 50 % -\n.txt"
    shutil.copy(samples / "audio" / "jfk.mp3", tmp_path / name)

    assert " ".join(words_of(text_of(transcribe_units(tmp_path, name)))).endswith(JFK)
