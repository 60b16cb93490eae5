"""Blocks and chunks: every word of a transcript is asked about, whatever the transcript is like."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.openrouter.blocks import MOST_LETTERS, Block, block_line, find_block, make_blocks
from services.openrouter.payload import AnalyzePayload
from services.openrouter.plan import Chunk, divide, halves, token_bound
from services.openrouter.transcript import Segment, Transcript, from_payload, from_result
from sidelinja_jobs import PermanentError
from tests.unit.analysis_support import episode, transcripts


@settings(deadline=None)
@given(transcripts())
def test_blocks_are_the_text_in_order_without_a_gap(transcript: Transcript) -> None:
    blocks = make_blocks(transcript)

    assert "".join(transcript.text[block.start : block.end] for block in blocks) == transcript.text
    assert [block.number for block in blocks] == list(range(1, len(blocks) + 1))
    for block in blocks:
        assert transcript.segment_at(block.start) == block.first_segment
        assert block.end - block.start <= MOST_LETTERS + 1
        assert find_block(block.id, blocks) is block
    for before, after in pairwise(blocks):
        assert after.first_segment >= before.first_segment


@settings(deadline=None)
@given(transcripts())
def test_a_model_sees_every_word_once(transcript: Transcript) -> None:
    lines = [block_line(transcript, block) for block in make_blocks(transcript)]

    shown = " ".join(line.partition(" ")[2] for line in lines)
    assert shown.replace("[Kari]", "").replace("[Ola]", "").split() == transcript.text.split()
    assert all("\n" not in line for line in lines)


@settings(deadline=None)
@given(st.lists(st.integers(1, 400), min_size=1, max_size=200), st.integers(800, 5000))
def test_chunks_without_their_overlap_are_the_blocks(sizes: list[int], room: int) -> None:
    blocks = [Block(number, number, number + 1, number, number) for number in range(1, len(sizes) + 1)]

    chunks = divide(blocks, sizes, room)

    assert [block for chunk in chunks for block in chunk.own] == blocks
    for chunk in chunks:
        assert sum(sizes[block.number - 1] for block in chunk.blocks) <= room
    for before, after in pairwise(chunks):
        assert list(after.blocks[: after.overlap]) == list(before.blocks[len(before.blocks) - after.overlap :])


@settings(deadline=None)
@given(st.integers(1, 60), st.integers(0, 1))
def test_halves_of_a_chunk_are_the_chunk(length: int, overlap: int) -> None:
    blocks = [Block(number, number, number + 1, number, number) for number in range(1, length + 1)]
    chunk = Chunk(blocks, min(overlap, length - 1))

    split = halves(chunk)

    if split is None:
        assert len(chunk.own) == 1
    else:
        assert [*split[0].own, *split[1].own] == list(chunk.own)
        assert all(half.own for half in split)


def test_three_hours_are_some_hundred_blocks_of_half_a_minute(samples: Path) -> None:
    transcript = episode(samples, "nb", hours=3)
    blocks = make_blocks(transcript)

    assert 240 <= len(blocks) <= 500
    assert token_bound(transcript.text) < 100_000  # fits one call to a model of 128k


def test_blocks_end_where_the_speaker_changes_or_pauses() -> None:
    rows = [(0, 12, "Kari"), (12, 24, "Kari"), (24, 30, "Ola"), (30, 44, "Ola"), (46, 50, "Ola"), (50, 100, "Ola")]
    transcript = Transcript([Segment(f"Ord {start}.", float(start), float(end), who) for start, end, who in rows])

    blocks = make_blocks(transcript)

    assert [(block.first_segment, block.last_segment) for block in blocks] == [(0, 1), (2, 3), (4, 4), (5, 5)]
    assert block_line(transcript, blocks[1]) == "B2 [Ola] Ord 24. Ord 30."


def test_one_long_segment_is_split_for_reading_but_has_no_finer_times() -> None:
    transcript = Transcript([Segment("ord " * 2000, 0.0, 3360.0), Segment("Slutt.", 3360.0, 3400.0)])

    blocks = make_blocks(transcript)

    assert len(blocks) > 8
    assert {block.first_segment for block in blocks[:-1]} == {0}
    assert transcript.longest_segment_seconds == 3360.0


@pytest.mark.parametrize("reference", ["B0", "B7", "B-1", "7", "", "Bx", "B1-B2", None, 1.5, "B" + "9" * 30, ["B1"]])
def test_what_names_no_block_finds_none(reference: object) -> None:
    blocks = make_blocks(Transcript([Segment("Hei.", 0.0, 1.0)]))

    assert find_block(reference, blocks) is None


@pytest.mark.parametrize("reference", ["B1", "b1", "[B1]", " B1. ", "1", 1])
def test_ways_to_write_a_block(reference: object) -> None:
    blocks = make_blocks(Transcript([Segment("Hei.", 0.0, 1.0)]))

    assert find_block(reference, blocks) is blocks[0]


def test_bare_text_is_cut_into_sentences_and_has_no_times() -> None:
    text = "Første setning. Andre setning!\n\n" + "Et ord til. " * 400
    transcript = from_payload(AnalyzePayload(text=text))

    assert transcript.text.split() == text.split()
    assert not transcript.has_times
    assert all(len(segment.text) <= 1000 for segment in transcript.segments)


def test_a_transcription_s_result_is_read() -> None:
    result = {
        "segments": [{"start": 0.0, "end": 2.0, "text": " Hei. "}, {"start": 2.0, "end": 2.1, "text": " "}],
        "duration": 60.0, "language": "no", "source": {"path": "2026/ep042.mp3"}, "flags": ["trial_model"],
    }  # fmt: skip
    transcript = from_result(result)

    assert [segment.text for segment in transcript.segments] == ["Hei."]
    assert (transcript.duration, transcript.language, transcript.audio_path) == (60.0, "no", "2026/ep042.mp3")
    assert transcript.is_trial
    assert from_result({**result, "source": None, "tracks": [{"path": "a.wav"}]}).audio_path == "a.wav"


@pytest.mark.parametrize(
    ("result", "error_class"),
    [
        ({"segments": []}, "empty_transcript"),
        ({"segments": [{"start": 0, "end": 1, "text": "  "}]}, "empty_transcript"),
        ({"segments": [{"start": 0, "text": "a"}]}, "bad_transcript"),
        ({"segments": 5}, "bad_transcript"),
        ({}, "bad_transcript"),
        ({"segments": [{"start": 0, "end": 1, "text": "a" * 3_000_001}]}, "too_long"),
    ],
)
def test_a_result_that_cannot_be_analysed_is_refused(result: dict[str, object], error_class: str) -> None:
    with pytest.raises(PermanentError) as caught:
        from_result(result)

    assert caught.value.error_class == error_class


@settings(deadline=None)
@given(st.text(max_size=300))
def test_the_bound_of_tokens_is_above_what_byte_tokenizers_need_on_average(text: str) -> None:
    assert token_bound(text) >= len(text) / 2.5
    assert token_bound(text) >= len(text.encode("utf-8", "replace")) / 3
