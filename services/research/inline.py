"""Mends what pages put inside a line: edit links behind a heading, reference marks, addresses that tell on readers."""

import re

from services.research.addresses import clean_address, clean_addresses
from services.research.line import Anchor, Line

_EDIT = re.compile(
    r"\s?\[(?:rediger|endre|edit|redigér)(?: ?\|? ?(?:rediger|endre|edit) (?:kilde|kjelde|wikiteksten|source))?\]",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r"(?<=[\w.,;:!?»”\")%])\[(?:\d{1,3}|[a-z]|note \d{1,2}|merknad \d{1,2})\]")
_NEEDED = re.compile(
    r"\[(?:trenger referanse|treng referanse|referanse? mangler|citation needed|kilde mangler|trenger "
    r"bedre kilde|når\?|hvem\?|who\?|when\?|clarification needed)\]",
    re.IGNORECASE,
)
_LEAST_REFERENCES = 2


def mend_inline(lines: list[Line]) -> None:
    """Changes the texts of the kept lines."""
    has_marks = _has_reference_marks(lines)
    for line in lines:
        if not line.is_kept:
            continue
        if "://" in line.text:
            _mend_addresses(line)
        if line.kind != "code" and "[" in line.text:
            text = _NEEDED.sub("", _EDIT.sub("", line.text))
            _mend(line, _REFERENCE.sub("", text) if has_marks else text, "reference marks removed")
        if line.anchors:
            line.anchors = tuple(Anchor(one.start, one.end, clean_address(one.url)) for one in line.anchors)


def _has_reference_marks(lines: list[Line]) -> bool:
    """Whether [1] points to a list of an encyclopaedia, and is not part of what is said."""
    if any(_EDIT.search(line.text) for line in lines if "[" in line.text):
        return True
    marks = sum(1 for line in lines if line.kind != "code" and "[" in line.text and _REFERENCE.search(line.text))
    notes = sum(1 for line in lines if line.source.startswith(("^", "↑")))
    return marks >= _LEAST_REFERENCES and notes > 0


def _mend_addresses(line: Line) -> None:
    text = clean_addresses(line.text)
    if text != line.text:
        line.anchors = tuple(
            one for one in line.anchors if one.end <= len(text) and line.text[: one.end] == text[: one.end]
        )
        line.change(text, "addresses cleaned")


def _mend(line: Line, text: str, how: str) -> None:
    text = text.strip()
    if text == line.text:
        return
    if not text:
        line.remove("edit link")
        return
    anchors: list[Anchor] = []
    position = 0
    for anchor in line.anchors:
        start = text.find(line.text[anchor.start : anchor.end], position)
        if start >= 0:
            position = start + anchor.end - anchor.start
            anchors.append(Anchor(start, position, anchor.url))
    line.anchors = tuple(anchors)
    line.change(text, how)
