"""Chapters ascend, lie inside the audio and begin where real segments begin; the rest is dropped and counted."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.openrouter.blocks import make_blocks
from services.openrouter.chapters import LEAST_SECONDS, Candidate, Chapter, make_chapters
from services.openrouter.transcript import Segment, Transcript
from tests.unit.analysis_support import transcripts

REFERENCES = st.one_of(
    st.integers(-3, 60).map(lambda number: f"B{number}"), st.integers(-1, 40), st.text(max_size=6), st.none()
)


def half_minutes(count: int) -> Transcript:
    """One segment, and so one block, each half minute."""
    return Transcript([Segment(f"Del {number} her.", number * 30.0, number * 30.0 + 29) for number in range(count)])


def made(*candidates: tuple[object, str], of: Transcript | None = None) -> tuple[list[Chapter], dict[str, int]]:
    transcript, dropped = of or half_minutes(40), Counter[str]()
    blocks = make_blocks(transcript)
    chapters = make_chapters([Candidate(*one) for one in candidates], blocks, transcript, dropped)
    return chapters, {reason: count for reason, count in dropped.items() if count}


@settings(deadline=None)
@given(transcripts(), st.lists(st.tuples(REFERENCES, st.text(max_size=10)), max_size=25))
def test_whatever_is_proposed_chapters_hold(transcript: Transcript, proposed: list[tuple[object, str]]) -> None:
    chapters, dropped = made(*proposed, of=transcript)

    assert len(chapters) + sum(dropped.values()) == len(proposed)
    assert len(chapters) != 1
    starts = {segment.start for segment in transcript.segments}
    for chapter in chapters:
        assert transcript.duration is not None
        assert chapter.start in starts
        assert 0 <= chapter.start < chapter.end <= transcript.duration
        assert chapter.title
        assert chapter.first_block.number <= chapter.last_block.number
    for before, after in pairwise(chapters):
        assert after.start - before.start >= LEAST_SECONDS
        assert before.end == after.start
        assert before.last_block.number + 1 == after.first_block.number


def test_good_ones_are_taken_as_they_are() -> None:
    chapters, dropped = made(("B1", "Ost"), ("B11", "Smør"), ("B21", "Brød"))

    assert dropped == {}
    assert [(chapter.start, chapter.end, chapter.title) for chapter in chapters] == [
        (0.0, 300.0, "Ost"), (300.0, 600.0, "Smør"), (600.0, 1199.0, "Brød"),
    ]  # fmt: skip
    assert [(c.first_block.id, c.last_block.id) for c in chapters] == [("B1", "B10"), ("B11", "B20"), ("B21", "B40")]


@pytest.mark.parametrize(
    ("proposed", "kept", "reasons"),
    [
        ([("B1", "a"), ("B99", "b"), ("B20", "c")], "ac", {"unknown_block": 1}),
        ([("B1", "a"), ("0:10:00", "b"), ("B20", "c")], "ac", {"unknown_block": 1}),
        ([("B30", "x"), ("B1", "a"), ("B10", "b"), ("B20", "c")], "abc", {"not_ascending": 1}),
        ([("B1", "a"), ("B20", "b"), ("B20", "c")], "ac", {"not_ascending": 1}),
        ([("B1", "a"), ("B10", "b"), ("B11", "c"), ("B20", "d")], "abd", {"too_short": 1}),
        ([("B1", "a"), ("B10", ""), ("B20", "c")], "ac", {"no_title": 1}),
        ([("B1", "a"), ("B20", "b"), ("B40", "c")], "ab", {"too_late": 1}),
        ([("B20", "a")], "", {"alone": 1}),
        ([(f"B{number}", "x") for number in range(1, 40, 3)], "x" * 5, {"too_many": 8}),
        ([("B1", "a"), ("B9", "b"), ("B12", "c"), ("B20", "d"), ("B28", "e"), ("B36", "f")], "abdef", {"too_many": 1}),
    ],
)
def test_bad_ones_are_dropped_by_reason(proposed: list[tuple[object, str]], kept: str, reasons: dict[str, int]) -> None:
    chapters, dropped = made(*proposed)

    assert "".join(chapter.title for chapter in chapters) == kept
    assert dropped == reasons


def test_a_first_chapter_within_the_first_minute_begins_at_the_start() -> None:
    chapters, _ = made(("B2", "Ost"), ("B20", "Smør"))
    late, _ = made(("B5", "Ost"), ("B20", "Smør"))

    assert (chapters[0].start, chapters[0].first_block.id) == (0.0, "B1")
    assert late[0].start == 120.0


def test_a_transcript_without_times_has_no_chapters() -> None:
    transcript = Transcript([Segment("Hei.", None, None), Segment("Ha det.", None, None)])

    assert made(("B1", "a"), ("B2", "b"), of=transcript) == ([], {"no_times": 2})
