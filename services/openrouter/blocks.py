"""Numbered blocks: what a model sees of a transcript, and what it refers to in place of times.

A block is 20 to 45 seconds of speech, ended where the speaker changes or pauses. Blocks are slices of the transcript's
text, in order and without a gap, so nothing can get lost between two calls.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from openrouter_client.fence import without_template_tokens
from openrouter_client.parts import named
from services.openrouter.transcript import Segment, Transcript

LEAST_SECONDS, MOST_SECONDS = 20.0, 45.0
PAUSE_SECONDS = 0.8
LEAST_LETTERS, MOST_LETTERS = 300, 900  # the same in text without times; the latter also where times are coarse


@dataclass(frozen=True)
class Block:
    """`text[start:end]` of the transcript, from one segment to another, both included. Numbers count from 1."""

    number: int
    start: int
    end: int
    first_segment: int
    last_segment: int

    @property
    def id(self) -> str:
        return f"B{self.number}"


def make_blocks(transcript: Transcript) -> list[Block]:
    """All blocks of a transcript."""
    groups: list[tuple[int, int]] = []
    first = 0
    for number in range(1, len(transcript.segments) + 1):
        if number == len(transcript.segments) or _ends_before(transcript.segments, first, number):
            groups.append((first, number - 1))
            first = number
    blocks: list[Block] = []
    for group in groups:
        for start, end in _pieces(transcript, *group):
            blocks.append(Block(len(blocks) + 1, start, end, *group))
    return blocks


def block_line(transcript: Transcript, block: Block) -> str:
    """The block as a model sees it: its id, who speaks, the words on one line."""
    parts, speaker = [block.id], None
    for number in range(block.first_segment, block.last_segment + 1):
        segment, position = transcript.segments[number], transcript.position_of(number)
        words = transcript.text[max(position, block.start) : min(position + len(segment.text), block.end)]
        if segment.speaker and segment.speaker != speaker:
            speaker = segment.speaker
            parts.append(f"[{_one_line(speaker)}]")
        parts.append(_one_line(words))
    return " ".join(part for part in parts if part)


def find_block(reference: object, blocks: Sequence[Block]) -> Block | None:
    """The block that a model's answer names, if there is one."""
    return named(reference, blocks, "B")


def _ends_before(segments: Sequence[Segment], first: int, following: int) -> bool:
    begin, last, following_one = segments[first], segments[following - 1], segments[following]
    letters = sum(len(segment.text) + 1 for segment in segments[first:following])
    if letters + len(following_one.text) > MOST_LETTERS:
        return True
    if begin.start is None or last.end is None or following_one.start is None or following_one.end is None:
        return letters >= LEAST_LETTERS
    if following_one.end - begin.start > MOST_SECONDS:
        return True
    is_long = last.end - begin.start >= LEAST_SECONDS
    is_bound = following_one.speaker != last.speaker or following_one.start - last.end >= PAUSE_SECONDS
    return is_long and is_bound


def _pieces(transcript: Transcript, first: int, last: int) -> list[tuple[int, int]]:
    """The group's slice of the text with the blank after it; several where one segment is very long."""
    start = transcript.position_of(first)
    is_end = last + 1 == len(transcript.segments)
    end = len(transcript.text) if is_end else transcript.position_of(last + 1)
    pieces = []
    while end - start > MOST_LETTERS + 1:
        cut = transcript.text.rfind(" ", start + 1, start + MOST_LETTERS) + 1
        cut = cut if cut > start + 1 else start + MOST_LETTERS
        pieces.append((start, cut))
        start = cut
    return [*pieces, (start, end)]


def _one_line(text: str) -> str:
    return " ".join(without_template_tokens(text).split())
