"""Damaged, re-wrapped and mislabelled files: what comes out of each, and what is said about it."""

import re
from difflib import SequenceMatcher
from pathlib import Path

import pytest

from demo.report import word_error_rate
from sidelinja_jobs import PermanentError
from tests.databases import ROOT
from tests.services.whisper_support import JFK, transcribe_units, transcript_of, words_of

pytestmark = [pytest.mark.model, pytest.mark.timeout(60)]

WHOLE = "ask what you can do for your country"
SPOKEN = f"and so my fellow americans {JFK}"
# file -> share of the spoken words that may be wrong
MOST_ERRORS = {"corrupt_flips.mp3": 0.15, "s8.mp3": 0.15, "trunc50.mp3": 0.75}
# file -> decoded seconds, words that must be there, is it called damaged
READABLE = {
    "corrupt_flips.mp3": (10.59, WHOLE, True),  # a byte flipped every 700: FFmpeg's own loop ends after 0.76 s
    "cover.mp3": (11.0, WHOLE, False),
    "f.m4a": (11.0, WHOLE, False),
    "f.ogg": (11.0, WHOLE, False),
    "f.opus": (11.0, WHOLE, False),
    "flac_named.mp3": (11.0, WHOLE, False),
    "mixed_rate.mp3": (22.09, WHOLE, False),  # two files joined; FFmpeg's own loop ends after the first
    "noise.mp3": (60.0, "", False),
    "s48.mp3": (11.0, WHOLE, False),
    "s8.mp3": (11.0, "what you can do for your country", False),
    "short001.wav": (0.01, "", False),
    "short01.mp3": (0.1, "", False),
    "silence.mp3": (60.0, "", False),
    "trail_junk.mp3": (11.02, WHOLE, True),
    "trunc50.mp3": (5.49, "fellow americans", True),
    "v.mp4": (11.01, WHOLE, False),
    "v_named.mp3": (11.01, WHOLE, False),
    "vbr_xing.mp3": (11.0, WHOLE, False),
}
REFUSED = {
    "empty.wav": "no_audio",
    "noaudio_named.mp3": "no_audio",
    "random.mp3": "not_audio",
    "text.mp3": "not_audio",
    "trunc_100b.mp3": "not_audio",
    "zero.mp3": "empty_file",
}
# The table of the docs: file -> what it says of the words, and the flag or error class.
SECTION = (ROOT / "docs" / "whisper.md").read_text().split("\n## Damaged and odd files\n")[1].split("\n## ")[0]
TOLD = {
    name: (words.strip(), flag.strip(" `"))
    for name, words, flag in re.findall(r"^\| `([\w.]+)` \|[^|]*\|([^|]*)\|([^|]*)\|$", SECTION, re.MULTILINE)
}


def test_every_file_of_the_folder_is_in_a_table(samples: Path) -> None:
    found = {file.name for file in (samples / "audio" / "edge").iterdir()}

    assert found == READABLE.keys() | REFUSED.keys() == TOLD.keys()


@pytest.mark.parametrize("name", READABLE)
def test_what_can_be_decoded_is_transcribed(samples: Path, name: str) -> None:
    decoded_seconds, expected, is_damaged = READABLE[name]

    transcript = transcript_of(transcribe_units(samples / "audio" / "edge", name))

    assert transcript["duration"] == pytest.approx(decoded_seconds, abs=0.06)
    assert expected in " ".join(words_of(transcript["text"]))
    assert ("audio_damaged" in transcript["flags"]) == is_damaged
    assert ("no_speech" in transcript["flags"]) == (expected == "")
    assert ("joined_rates" in transcript["flags"]) == (name == "mixed_rate.mp3")
    assert transcript["dropped"] == []
    words, flag = TOLD[name]
    assert transcript["flags"] == [*([flag] if flag else []), "trial_model"]
    if expected:
        said = f"{SPOKEN} {SPOKEN}" if name == "mixed_rate.mp3" else SPOKEN
        found, of = (int(number) for number in words.split(" of "))
        assert words_found(said, transcript["text"]) == pytest.approx(found, abs=1)  # rounding differs by processor
        assert of == len(said.split())
        assert word_error_rate(said, transcript["text"]) <= MOST_ERRORS.get(name, 0.05)
    else:
        assert (transcript["text"], words) == ("", "none")


def words_found(said: str, text: str) -> int:
    """How many of the words are there, in their order."""
    matcher = SequenceMatcher(None, said.split(), words_of(text), autojunk=False)
    return sum(block.size for block in matcher.get_matching_blocks())


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_audio_is_refused_for_good(samples: Path, name: str) -> None:
    with pytest.raises(PermanentError, match="Next:") as caught:
        transcribe_units(samples / "audio" / "edge", name)

    assert caught.value.error_class == REFUSED[name]
    assert TOLD[name] == ("refused", REFUSED[name])
