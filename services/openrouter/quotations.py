"""Quotes: what a model quotes, looked up in the transcript and stored in the transcript's own words."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from openrouter_client.quotes import Folded, Match, Span, locate
from services.openrouter.answers import QuoteAnswer
from services.openrouter.blocks import Block, find_block
from services.openrouter.transcript import Transcript

MOST_QUOTES = 8
LONGEST_QUOTE = 600


@dataclass(frozen=True)
class Quotation:
    """`text` is the slice of the transcript from `position`; times and speaker are those of its segments."""

    text: str
    position: int
    first_segment: int
    last_segment: int
    start: float | None
    end: float | None
    speaker: str | None
    match: Match


def make_quotations(
    answers: Iterable[QuoteAnswer], blocks: Sequence[Block], transcript: Transcript, dropped: Counter[str]
) -> list[Quotation]:
    """The quotes that were said, in order of time. Counts what it drops, by reason."""
    source = Folded(transcript.text)
    spans: list[Span] = []
    for answer in answers:
        span = locate(answer.text, source, _around(answer, blocks))
        if span is None:
            dropped["not_said"] += 1
        elif span.end - span.start > LONGEST_QUOTE:
            dropped["too_long"] += 1
        elif any(span.start < other.end and other.start < span.end for other in spans):
            dropped["twice"] += 1
        elif len(spans) == MOST_QUOTES:
            dropped["too_many"] += 1
        else:
            spans.append(span)
    return [_quotation(span, transcript) for span in sorted(spans, key=lambda span: span.start)]


def _around(answer: QuoteAnswer, blocks: Sequence[Block]) -> tuple[int, int]:
    """The named block and its neighbours. Where none is named, nothing may differ."""
    block = find_block(answer.block, blocks)
    if block is None:
        return 0, 0
    first, last = blocks[max(0, block.number - 2)], blocks[min(len(blocks) - 1, block.number)]
    return first.start, last.end


def _quotation(span: Span, transcript: Transcript) -> Quotation:
    first, last = transcript.segment_at(span.start), transcript.segment_at(span.end - 1)
    speakers = {transcript.segments[number].speaker for number in range(first, last + 1)}
    ends = [end for number in range(first, last + 1) if (end := transcript.segments[number].end) is not None]
    start = transcript.segments[first].start
    return Quotation(
        text=transcript.text[span.start : span.end],
        position=span.start,
        first_segment=first,
        last_segment=last,
        start=start,
        end=max(min(max(ends), transcript.duration or max(ends)), start or 0.0) if ends else None,
        speaker=speakers.pop() if len(speakers) == 1 else None,
        match=span.match,
    )
