"""Reads pasted text line by line, with what the layout says: gaps, indentation, lists, columns, quotations, code.

The cleaned text is read the same way, so its own signs (- items, tabs between cells, > quotations, ``` around code) are
known here.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from services.research.characters import LINE_END, clean_characters, decode_quoted, is_quoted_printable
from services.research.line import Line, require_room
from services.research.mojibake import has_broken_signs

Reading = Callable[[str], tuple[str, list[str]]]  # of a row: its text, and what was done to it
ITEM = re.compile(
    r"(?P<sign>[-•·▪●○◦*‣⁃▢□☐✓–+](?= )|\(?\d{1,3}[.)](?= )|\(\d{1,3}\)(?= )|[a-z]\)(?= ))\s*(?P<rest>\S.*)"
)
_BULLETS = "•·▪●○◦*‣⁃+"
_QUOTE = re.compile(r"(?:> ?)+")
FENCE = re.compile(r"(`{3,}|~{3,})\s*[\w+-]*$")
_COLUMNS = re.compile(r"(?<=\S) {3,}(?=\S)|(?<=\S) {2,}(?=[\d(+−-])")
_SPACE_RUN = re.compile(r" {2,}")
_TAB_RUN = re.compile(r" *\t[ \t]*")
_LEAST_CELLS = 3  # signs between cells
_MONTH = re.compile(r"(?:jan|feb|mar|apr|mai|maj|jun|jul|aug|sep|okt|nov|des|dec)[a-z]*\b", re.IGNORECASE)


def split_lines(text: str) -> list[str]:
    """The lines of a paste; a form feed begins one."""
    return LINE_END.split(text.replace("\f", "\n\f"))


def read_plain(text: str) -> list[Line]:
    """The lines of a text that hold anything."""
    read = partial(clean_characters, others_are_broken=has_broken_signs(text))
    return arrange(_raw_lines(split_lines(text), _unquoting(read) if is_quoted_printable(text) else read))


def _unquoting(read: Reading) -> Reading:
    """The same, for the lines of a mail whose transport coding was pasted with it."""

    def read_quoted(row: str) -> tuple[str, list[str]]:
        text, changes = read(decoded := decode_quoted(row))
        return text, ["transport coding removed", *changes] if decoded != row else changes

    return read_quoted


def _raw_lines(rows: Iterable[str], read: Reading) -> Iterator[Line]:
    has_gap, page, fence = True, 0, ""
    for number, row in enumerate(rows, start=1):
        if row.startswith("\f"):
            page += 1
            has_gap = True
            row = row.replace("\f", "")
        if not row and not fence:
            has_gap = True
            continue
        text, changes = read(row)
        stripped = text.strip()
        if fence:
            if stripped.startswith(fence) and not stripped.strip(fence[0]):
                fence = ""
            yield _fenced(Line(number, row, text, "code", has_gap=has_gap, page=page), changes, is_end=not fence)
            has_gap = False
            continue
        if not stripped:
            has_gap = True
            if row.strip():
                line = Line(number, row.strip(), "", page=page)
                line.remove("invisible characters")
                yield line
            continue
        line = Line(number, row.strip(), stripped, has_gap=has_gap, page=page)
        line.changes = tuple(changes)
        if text[0] in " \t":
            line.indent = len(text.expandtabs(4)) - len(text.expandtabs(4).lstrip())
        if stripped[0] in "`~" and (found := FENCE.match(stripped)):
            fence = found.group(1)
            line.kind = "code"
            line.remove("fence")
        yield line
        has_gap = bool(fence)


def _fenced(line: Line, changes: list[str], *, is_end: bool) -> Line:
    """A line below a fence, with its indentation; the fence that ends it goes."""
    if is_end:
        line.source, line.text, line.has_gap = line.source.strip(), "", False
        line.remove("fence")
    else:
        line.source, line.text, line.changes = line.source.strip("\f\n\r"), line.text.rstrip(), tuple(changes)
    return line


def arrange(lines: Iterable[Line]) -> list[Line]:
    """Tells items, rows and quotations by the lines' own text, and makes white space plain."""
    arranged: list[Line] = []
    for line in lines:
        arranged.append(line)
        require_room(arranged)
    for position, line in enumerate(arranged):
        if line.kind == "code":
            continue
        if ";" in line.text and _has_cells(arranged, position):
            line.change("\t".join(map(str.strip, line.text.split(";"))), "cells set apart")
        if line.text.startswith(">"):
            _read_quote(line)
        if "\t" in line.text or "  " in line.text:
            _read_columns(arranged, position)
        if line.kind in ("text", "quote"):
            _read_item(line)
    return arranged


def _read_quote(line: Line) -> None:
    signs = _QUOTE.match(line.text)
    if signs is None:
        return
    line.kind, line.level = "quote", min(signs.group().count(">"), 6)
    line.text = line.text[signs.end() :].lstrip()
    if not line.text:
        line.remove("empty quotation")


def _read_columns(lines: list[Line], position: int) -> None:
    """Cells are between tabs; where a few lines in a row have wide gaps, those are tabs, too."""
    line = lines[position]
    text = line.text
    if "\t" not in text and _COLUMNS.search(text) and _has_rows(lines, position):
        text = _COLUMNS.sub("\t", text)
    if " \t" in text or "\t " in text or "\t\t" in text:
        text = _TAB_RUN.sub("\t", text)
    spaced = _SPACE_RUN.sub(" ", text) if "  " in text else text
    if (found := ITEM.match(spaced.replace("\t", " ", 1))) and found.end("sign") == spaced.find("\t"):
        spaced = spaced.replace("\t", " ", 1)  # a list of a word processor, not a table
    if "\t" in spaced and line.kind == "text":
        line.kind = "row"
    elif "\t" in spaced and line.kind != "row":
        spaced = spaced.replace("\t", " ")
    line.text = spaced


def _has_cells(lines: list[Line], position: int) -> bool:
    """Whether the lines of a block are rows of a sheet with ; between its cells; those above are read already."""
    cells = lines[position].text.count(";")
    if cells < _LEAST_CELLS or "; " in lines[position].text:
        return False
    beside = [place for place in (position - 1, position + 1) if 0 <= place < len(lines)]
    return any(max(lines[place].text.count(";"), lines[place].text.count("\t")) == cells for place in beside)


def _has_rows(lines: list[Line], position: int) -> bool:
    """Whether a line beside this one, in the same block, has columns, too."""
    after = lines[position + 1] if position + 1 < len(lines) else None
    before = lines[position - 1] if position else None
    below = after is not None and not after.has_gap and bool(_COLUMNS.search(after.text))
    above = before is not None and not lines[position].has_gap and before.kind == "row"
    return below or above


def _read_item(line: Line) -> None:
    is_word = line.text[:1].isalpha() and line.text[1:2] != ")"
    found = None if is_word else ITEM.match(line.text)
    if found is None or line.kind == "quote":
        return
    sign = found.group("sign")
    if sign == "–" or _MONTH.match(found.group("rest")):  # in Norwegian, somebody speaks; 3. mars is no step
        return
    line.kind = "item"
    line.level = min(line.indent // 2, 6)
    line.text = f"{'-' if sign in _BULLETS else sign} {found.group('rest')}"
