"""Chapters: blocks that a model named, mapped to the start of a real segment. What does not fit is dropped."""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from services.openrouter.blocks import Block, find_block
from services.openrouter.transcript import Transcript

LEAST_SECONDS = 60.0
SECONDS_PER_CHAPTER = 240.0  # at most one chapter in this time on average
FEWEST = 2


@dataclass(frozen=True)
class Candidate:
    """A chapter as a model proposed it, its title already clean."""

    reference: object
    title: str


@dataclass(frozen=True)
class Chapter:
    """From the start of a segment to that of the next chapter, or to the end."""

    start: float
    end: float
    title: str
    first_block: Block
    last_block: Block


def make_chapters(
    candidates: Iterable[Candidate], blocks: Sequence[Block], transcript: Transcript, dropped: Counter[str]
) -> list[Chapter]:
    """The chapters that hold: real blocks, ascending, apart by a minute, in number. Counts what it drops, by reason."""
    duration = transcript.duration
    found = [(find_block(candidate.reference, blocks), candidate.title) for candidate in candidates]
    if duration is None:
        dropped["no_times"] += len(found)
        return []
    known = [(block, title) for block, title in found if block is not None and title]
    dropped["unknown_block"] += sum(block is None for block, _ in found)
    dropped["no_title"] += sum(block is not None and not title for block, title in found)
    starts = _apart(_ascending(known, dropped), blocks, transcript, duration, dropped)
    most = max(FEWEST, math.ceil(duration / SECONDS_PER_CHAPTER))
    while len(starts) > most:
        dropped["too_many"] += 1
        starts.remove(min(starts[1:], key=lambda start: start[0] - starts[starts.index(start) - 1][0]))
    if len(starts) < FEWEST:
        dropped["alone"] += len(starts)
        return []
    ends = [start for start, _, _ in starts[1:]] + [duration]
    lasts = [blocks[block.number - 2] for _, block, _ in starts[1:]] + [blocks[-1]]
    return [
        Chapter(start, end, title, block, last)
        for (start, block, title), end, last in zip(starts, ends, lasts, strict=True)
    ]


def _ascending(known: Sequence[tuple[Block, str]], dropped: Counter[str]) -> list[tuple[Block, str]]:
    """The longest ascending row of them: one that is out of place does not take the others with it."""
    tails: list[int] = []  # numbers of the blocks that rows of each length end with
    ends: list[int] = []
    before: list[int | None] = []
    for index, (block, _) in enumerate(known):
        place = bisect_left(tails, block.number)
        before.append(ends[place - 1] if place else None)
        tails[place : place + 1], ends[place : place + 1] = [block.number], [index]
    row: list[tuple[Block, str]] = []
    at = ends[-1] if ends else None
    while at is not None:
        row.append(known[at])
        at = before[at]
    dropped["not_ascending"] += len(known) - len(row)
    return row[::-1]


def _apart(
    row: Sequence[tuple[Block, str]],
    blocks: Sequence[Block],
    transcript: Transcript,
    duration: float,
    dropped: Counter[str],
) -> list[tuple[float, Block, str]]:
    """With their times, each a minute after the one before; a first one within the first minute begins at the start."""
    starts: list[tuple[float, Block, str]] = []
    for block, title in row:
        start = transcript.segments[block.first_segment].start
        if start is None or duration - start < LEAST_SECONDS:
            dropped["too_late"] += 1
        elif starts and start - starts[-1][0] < LEAST_SECONDS:
            dropped["too_short"] += 1
        else:
            starts.append((start, block, title))
    opening = transcript.segments[0].start
    if starts and opening is not None and starts[0][0] - opening < LEAST_SECONDS:
        starts[0] = (opening, blocks[0], starts[0][2])
    return starts
