"""Subtitles that any reader of the formats understands, whatever the model wrote."""

import html
import re
from itertools import pairwise
from typing import Any

import pytest

from subtitles import as_srt, as_txt, as_vtt, cues

NASTY = "R&D <b>sa</b> a --> b\nog\r\n\r\nså 00:00:01.000 --> 00:00:02.000 \u2028slutt"
TIME = r"(\d\d+):(\d\d):(\d\d)[.,](\d\d\d)"


def segment(start: float, end: float, text: str, **more: Any) -> dict[str, Any]:
    return {"start": start, "end": end, "text": text, **more}


def seconds(match: tuple[str, ...]) -> float:
    hours, minutes, second, thousandth = map(int, match)
    return hours * 3600 + minutes * 60 + second + thousandth / 1000


def read_vtt(text: str) -> list[tuple[float, float, str]]:
    """A reader by the letter of the WebVTT specification, as far as cues go."""
    head, *blocks = re.split(r"\n{2,}", text.strip("\n"))
    assert head == "WEBVTT"
    found = []
    for block in blocks:
        times, *lines = block.split("\n")
        match = re.fullmatch(rf"{TIME} --> {TIME}", times)
        assert match, times
        assert not any("-->" in line or "<" in line for line in lines)
        found.append((seconds(match.groups()[:4]), seconds(match.groups()[4:]), html.unescape(" ".join(lines))))
    return found


def read_srt(text: str) -> list[tuple[float, float, str]]:
    found = []
    for number, block in enumerate(re.split(r"\n{2,}", text.strip("\n")), start=1):
        index, times, *lines = block.split("\n")
        match = re.fullmatch(rf"{TIME} --> {TIME}", times)
        assert match, times
        assert index == str(number)
        assert 1 <= len(lines) <= 2
        found.append((seconds(match.groups()[:4]), seconds(match.groups()[4:]), " ".join(lines)))
    return found


def test_plain_segments_read_back() -> None:
    segments = [segment(0.0, 2.5, "Hei og velkommen."), segment(3661.2, 3663.0, "Ha det!")]

    expected = [(0.0, 2.5, "Hei og velkommen."), (3661.2, 3663.0, "Ha det!")]
    assert read_vtt(as_vtt(segments)) == expected
    assert read_srt(as_srt(segments)) == expected
    assert as_txt(segments) == "Hei og velkommen.\nHa det!\n"


def test_text_cannot_be_taken_for_structure() -> None:
    segments = [segment(0, 6, NASTY), segment(6, 8, "WEBVTT"), segment(8, 9, "1")]

    vtt, srt = read_vtt(as_vtt(segments)), read_srt(as_srt(segments))

    assert vtt[0][2] == "R&D <b>sa</b> a --> b og så 00:00:01.000 --> 00:00:02.000 slutt"
    assert "R&D ‹b>sa‹/b> a → b og" in srt[0][2]
    assert len(vtt) == len(srt) == 3
    assert as_txt(segments).count("\n") == 3


def test_signs_that_are_no_tags_stay_in_srt() -> None:
    assert read_srt(as_srt([segment(0, 2, "3 < 5 & 7 > 2")]))[0][2] == "3 < 5 & 7 > 2"


def test_times_never_run_backwards_and_no_cue_is_empty() -> None:
    segments = [segment(5, 4, "a"), segment(1, 1, "b"), segment(2, 90, "c"), segment(3, 3, "   ")]

    found = read_vtt(as_vtt(segments))

    assert [text for _, _, text in found] == ["a", "b", "c"]
    assert all(start < end for start, end, _ in found)
    assert all(one[1] <= two[0] for one, two in pairwise(found))


def test_no_speech_gives_files_that_are_valid_and_empty() -> None:
    assert as_vtt([]).strip() == "WEBVTT"
    assert as_srt([]) == as_txt([]) == ""


def test_long_segment_is_split_where_one_takes_a_breath() -> None:
    text = (
        "Velkommen til denne episoden, som handler om noe helt annet enn forrige gang. "
        "I dag skal vi snakke om sopp, om bær og om hvorfor det regner i oktober."
    )

    found = cues([segment(10.0, 24.0, text)])

    assert " ".join(cue.text for cue in found) == text
    assert any(cue.text.endswith("gang.") for cue in found)
    assert all(len(cue.text) <= 84 and cue.end - cue.start <= 7.0 for cue in found)
    assert (found[0].start, found[-1].end) == (10.0, 24.0)


def test_words_give_the_times_of_a_split() -> None:
    texts = ["Ett", " to", " tre,", " fire", " fem", " seks"]
    words = [
        {"start": time, "end": time + 1, "word": text} for time, text in zip([0, 1, 2, 7, 8, 9], texts, strict=True)
    ]

    found = cues([segment(0, 10, "Ett to tre, fire fem seks", words=words)])

    assert [(cue.start, cue.end, cue.text) for cue in found] == [(0, 3, "Ett to tre,"), (7, 10, "fire fem seks")]


@pytest.mark.parametrize("text", ["ord" * 200, "日本語" * 60, "x"])
def test_text_without_spaces_stays_whole(text: str) -> None:
    assert [cue.text for cue in cues([segment(0, 30, text)])] == [text]
