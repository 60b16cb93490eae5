"""Reads a web page, or a fragment of one, into lines: text between block elements, with links and place.

The tree is walked without recursion. What would make the parser slow (very deep nesting, hundreds of thousands of
tags) is read as text with the tags cut out instead.
"""

import re
from dataclasses import dataclass
from itertools import islice
from typing import Any

from selectolax.lexbor import LexborHTMLParser

from services.research.characters import clean_characters
from services.research.line import Anchor, Line
from services.research.mojibake import has_broken_signs
from services.research.page_walk import PageWalk
from services.research.plain_text import arrange

MOST_TAGS = 250_000
DEEPEST = 400
MOST_STRAYS, MOST_ATTRIBUTES = 200_000, 250_000  # signs that begin nothing; the parser keeps a record of each
LONGEST_TAG = 200_000  # its attributes may be a million
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
_STRAY = re.compile(r"<(?![a-zA-Z/])|&(?!#?\w{1,31};)")
_LONG_TAG = re.compile(rf"<[a-zA-Z][^<>]{{{LONGEST_TAG}}}")
_CUT = re.compile(r"<[^<>]*>")
_CLIPBOARD_HEADER = re.compile(r"\A\s*Version:\d\.\d\s+(?:\w+:[^\n]*\n){1,12}")
# Their end tag may be left out, so that they do not nest.
_FLAT_NAMES = (
    "p li br hr img input meta link wbr area base col embed source track param td th tr dt dd option thead tbody tfoot "
    "colgroup caption rt rp optgroup"
)
_FLAT = frozenset(_FLAT_NAMES.split())


@dataclass(frozen=True)
class Tree:
    """A parsed page, and what its text as a whole says."""

    parser: Any
    others_are_broken: bool


@dataclass(frozen=True)
class Unparsed:
    """A page that would make the parser slow: its text with the tags cut out, and why."""

    text: str
    problem: str


def parse_page(html: str) -> Tree | Unparsed:
    """The tree of a page."""
    html = _CLIPBOARD_HEADER.sub("", html, count=1)
    if problem := _trouble(html):
        return Unparsed(_CUT.sub("\n", html), problem)
    return Tree(LexborHTMLParser(html), has_broken_signs(html))


def read_page(tree: Tree) -> list[Line]:
    """The visible lines of a page."""
    root = tree.parser.root
    if root is None:
        return []
    walk = PageWalk()
    walk.run(root)
    walk.drop_doubtful_zones()
    return arrange(line for line in walk.lines if _clean(line, others_are_broken=tree.others_are_broken))


def _trouble(html: str) -> str | None:
    """Why a page is not parsed."""
    if _LONG_TAG.search(html):
        return f"page_not_parsed: a tag of more than {LONGEST_TAG} characters"
    strays = sum(1 for _ in islice(_STRAY.finditer(html), MOST_STRAYS + 1))
    if strays > MOST_STRAYS:
        return f"page_not_parsed: more than {MOST_STRAYS} signs that begin no tag or letter"
    if html.count("=") > MOST_ATTRIBUTES:
        return f"page_not_parsed: more than {MOST_ATTRIBUTES} attributes"
    depth = deepest = 0
    for count, found in enumerate(_TAG.finditer(html), start=1):
        if count > MOST_TAGS:
            return f"page_not_parsed: more than {MOST_TAGS} tags"
        if found.group(2).lower() not in _FLAT:
            depth = max(0, depth + (-1 if found.group(1) else 1))
            deepest = max(deepest, depth)
    return f"page_not_parsed: elements nested {deepest} deep" if deepest > DEEPEST else None


def _clean(line: Line, *, others_are_broken: bool) -> bool:
    """Whether anything is left of the line."""
    text, changes = clean_characters(line.text, others_are_broken=others_are_broken)
    if len(text) != len(line.text):
        line.anchors = _moved(line.anchors, line.text, text)
    text = text.rstrip() if line.kind == "code" else text.strip()
    line.text, line.changes = text, tuple(changes)
    return bool(text.strip())


def _moved(anchors: tuple[Anchor, ...], before: str, after: str) -> tuple[Anchor, ...]:
    """Links on a text whose letters were mended: found again by the words they stand on."""
    moved, position = [], 0
    for anchor in anchors:
        words, _ = clean_characters(before[anchor.start : anchor.end], others_are_broken=True)
        start = after.find(words, position)
        if start >= 0:
            position = start + len(words)
            moved.append(Anchor(start, position, anchor.url))
    return tuple(moved)
