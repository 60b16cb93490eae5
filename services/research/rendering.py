"""Writes the kept lines as clean text and as Markdown.

The clean text is plain, with the few signs that text needs to keep its form: - or 1. before items, > before
quotations, a tab between cells, ``` around code. Read again, it gives the same lines.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from services.research.line import Line

_TOGETHER = ("item", "row", "code")
_AT_START = re.compile(r"\A(?=#{1,6} |[-+*>] |\d{1,9}[.)] |`{3}|~{3}|\|)")
_INSIDE = str.maketrans({sign: "\\" + sign for sign in "\\`*[]<"})
_MEANS_MORE = re.compile(r"[\\`*\[\]<_|]")
_EDGE = re.compile(r"(?<!\w)_|_(?!\w)")
_MARKED_ITEM = re.compile(r"(?:(?P<bullet>- )|(?P<number>\d{1,3})[.)] |(?P<other>\S{1,5} ))(?P<rest>.*)")
_FEWEST_FENCE = 3


@dataclass(frozen=True)
class Written:
    """A text and where each line stands in it, in code points."""

    text: str
    spans: tuple[tuple[int, int], ...]


def clean_text(lines: Sequence[Line]) -> Written:
    """The kept lines as plain text."""
    pieces: list[str] = []
    spans: list[tuple[int, int]] = []
    length = 0
    fence, is_open = _fence(lines), False

    above: Line | None = None
    for line, level in zip(lines, _item_levels(lines), strict=True):
        kind = line.kind
        before = ""
        if is_open and kind != "code":
            before = f"\n{fence}"
            is_open = False
        if above is not None:
            is_together = above.kind == kind and kind in _TOGETHER
            before += "\n" if is_together and (kind == "code" or not line.has_gap) else "\n\n"
        if kind == "code" and not is_open:
            before += f"{fence}\n"
            is_open = True
        before += "> " * line.level if kind == "quote" else "  " * level
        start = length + len(before)
        length = start + len(line.text)
        spans.append((start, length))
        pieces += (before, line.text)
        above = line
    if is_open:
        pieces.append(f"\n{fence}")
    return Written("".join(pieces), tuple(spans))


def _fence(lines: Iterable[Line]) -> str:
    """A row of ` longer than any in the code."""
    longest = max((len(run) for line in lines if line.kind == "code" for run in re.findall("`+", line.text)), default=0)
    return "`" * max(_FEWEST_FENCE, longest + 1)


def _item_levels(lines: Sequence[Line]) -> list[int]:
    """How deep each item stands: the first of a list at 0, another at most one deeper than the one above it."""
    levels: list[int] = []
    last = -1
    for line in lines:
        last = min(line.level, last + 1) if line.kind == "item" else -1
        levels.append(max(last, 0))
    return levels


def markdown(lines: Sequence[Line], head: str) -> str:
    """The kept lines as Markdown below a head."""
    pieces = [head] if head else []
    above: Line | None = None
    position = 0
    levels = _item_levels(lines)
    while position < len(lines):
        line = lines[position]
        if line.kind in ("row", "code"):
            end = position
            while end < len(lines) and lines[end].kind == line.kind:
                end += 1
            block = _table(lines[position:end]) if line.kind == "row" else _code(lines[position:end])
            pieces.append(("\n\n" if pieces else "") + block)
            position = end
        else:
            is_together = above is not None and above.kind == line.kind == "item"
            pieces.append(("\n" if is_together else "\n\n") if pieces else "")
            pieces.append(_written(line, levels[position]))
            position += 1
        above = line
    return "".join(pieces) + "\n" if pieces else ""


def escape(text: str) -> str:
    """Text that Markdown shows as it is, HTML in it included."""
    inside = _inside(text)
    return inside if text[:1].isalpha() else _AT_START.sub("\\\\", inside, count=1)


def _inside(text: str) -> str:
    if not _MEANS_MORE.search(text):
        return text
    text = text.translate(_INSIDE)
    return _EDGE.sub(r"\\_", text) if "_" in text else text


def _written(line: Line, level: int) -> str:
    if line.kind == "item":
        found = _MARKED_ITEM.match(line.text)
        if found is None:
            return f"{'   ' * level}- {_linked(line, 0)}"
        start = found.start("rest")
        sign = f"{found.group('number')}. " if found.group("number") else "- "
        if found.group("other") and found.group("other")[0] in "([abcdefghijklmnopqrstuvwxyz":
            start = 0
        return f"{'   ' * level}{sign}{_linked(line, start)}"
    text = _linked(line, 0)
    if line.kind == "heading":
        return f"{'#' * max(2, min(line.level, 6))} {text}"
    return f"{'> ' * line.level}{text}" if line.kind == "quote" else text


def _linked(line: Line, start: int) -> str:
    """The line's text from `start` on, its links written as Markdown's."""
    pieces, position = [], start
    for anchor in line.anchors:
        if anchor.start < position or anchor.end > len(line.text):
            continue
        pieces.append(_inside(line.text[position : anchor.start]))
        words = _inside(line.text[anchor.start : anchor.end])
        pieces.append(f"[{words}]({anchor.url.replace('(', '%28').replace(')', '%29')})")
        position = anchor.end
    if not pieces:
        return escape(line.text[start:])
    pieces.append(_inside(line.text[position:]))
    return "".join(pieces)


def _table(rows: Sequence[Line]) -> str:
    """A table whose first row is its head; a row that lacks its first cell, as a head may, is moved to the right."""
    cells = [
        [_inside(cell).replace("|", "\\|") for cell in row.text.split("\t")]
        if _MEANS_MORE.search(row.text)
        else row.text.split("\t")
        for row in rows
    ]
    width = max(map(len, cells))
    if len(cells[0]) == width - 1:
        cells[0].insert(0, "")
    lines = [f"| {' | '.join(row + [''] * (width - len(row)))} |" for row in cells]
    return "\n".join([lines[0], "|" + " --- |" * width, *lines[1:]])


def _code(lines: Sequence[Line]) -> str:
    fence = _fence(lines)
    return "\n".join([fence, *(line.text for line in lines), fence])
