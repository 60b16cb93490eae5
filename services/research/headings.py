"""Tells headings inside a plain text: short lines without an end, with running text below. For Markdown only."""

import re
from collections.abc import Sequence
from itertools import pairwise

from services.research.line import Line

_LONGEST, _MOST_WORDS = 80, 11
_LEAST_BELOW = 60
_ENDS = re.compile(r"[.,;:!»”\"')\]]\Z")


def mark_headings(lines: Sequence[Line]) -> None:
    """Makes a heading of a short line that stands before a paragraph."""
    for line, below in pairwise(lines):
        if line.kind == "text" and _begins_text(below) and _is_label(line.text):
            line.kind, line.level = "heading", 2


def _begins_text(line: Line) -> bool:
    return line.kind in ("item", "quote") or (line.kind != "heading" and len(line.text) >= _LEAST_BELOW)


def _is_label(text: str) -> bool:
    if len(text) > _LONGEST or text.count(" ") >= _MOST_WORDS or text[:1] in "–—-@#" or _ENDS.search(text):
        return False
    return "\t" not in text and any(map(str.isalpha, text))
