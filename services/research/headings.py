"""Tells headings inside a plain text: short lines without an end, with running text below. For Markdown only."""

import re
from collections.abc import Sequence

from services.research.line import Line

_LONGEST, _MOST_WORDS = 80, 11
_LEAST_BELOW = 60
_ENDS = re.compile(r"[.,;:!»”\"')\]]\Z")
_NUMBERED = re.compile(r"\d{1,2}(?:\.\d{1,2})*\.?[ \t]+[A-ZÆØÅ]")


def mark_headings(lines: Sequence[Line]) -> None:
    """Makes a heading of a short line that stands before a paragraph."""
    for line, below in zip(lines, [*lines[1:], None], strict=False):
        is_free = line.kind == "text" or (line.kind == "item" and _NUMBERED.match(line.text) and line.has_gap)
        if not is_free or below is None or line.text[:1] in "–—-@#" or below.kind == "heading":
            continue
        is_short = len(line.text) <= _LONGEST and line.text.count(" ") < _MOST_WORDS and not _ENDS.search(line.text)
        is_above_text = below.kind in ("item", "quote") or len(below.text) >= _LEAST_BELOW
        if (
            is_short
            and is_above_text
            and any(map(str.isalpha, line.text))
            and "\t" not in line.text
            and line.kind == "text"
        ):
            line.kind, line.level = "heading", 2
