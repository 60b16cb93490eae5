"""Transcripts for tests of the analysis: any that can be, and long real ones."""

import functools
from pathlib import Path

from hypothesis import strategies as st

from services.openrouter.transcript import Segment, Transcript

WORDS_PER_SECOND = 2.5
WORDS_PER_HOUR = 11_667  # 35,000 in three hours

TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00[]"), min_size=1, max_size=120)


@st.composite
def transcripts(draw: st.DrawFn, text: st.SearchStrategy[str] = TEXT) -> Transcript:
    """Sorted segments of any text, some at the same time, some with speakers; now and then without times."""
    has_times = draw(st.booleans())
    segments, at = [], 0.0
    for words in draw(st.lists(text.map(str.strip).filter(bool), min_size=1, max_size=30)):
        at += draw(st.floats(0, 40, allow_subnormal=False)) if has_times else 0
        end = at + draw(st.floats(0.1, 90)) if has_times else None
        segments.append(Segment(words, at if has_times else None, end, draw(st.sampled_from([None, "Kari", "Ola"]))))
    return Transcript(segments, duration=at + draw(st.floats(0, 100)) if has_times else None)


@functools.cache
def episode(samples: Path, name: str, *, hours: float) -> Transcript:
    """An episode read from a sample text, a sentence to a segment, at the pace of speech."""
    return Transcript(sentences(samples, name, hours=hours), language="no")


def sentences(samples: Path, name: str, *, hours: float) -> list[Segment]:
    segments: list[Segment] = []
    at, words = 0.0, 0
    lines = (samples / "text" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    while words < hours * WORDS_PER_HOUR:
        for line in lines:
            count = len(line.split())
            if not count or words >= hours * WORDS_PER_HOUR:
                continue
            end = at + count / WORDS_PER_SECOND
            segments.append(Segment(line.strip(), round(at, 2), round(end, 2)))
            at, words = end, words + count
    return segments
