"""The lines of a paste with what each says about itself, and what the paste as a whole seems to be."""

import re
from collections import Counter
from dataclasses import dataclass

from services.research.judgement import Judgement, judge
from services.research.line import Line

LONGEST_LABEL = 60  # characters of a line that is a label and not text
HANDLE = re.compile(r"(?:^|\s)@\w{2,30}(?=\s|$)")
_NUMBERED = re.compile(r"\(?\d{1,3}[.)]\)? |\(\d{1,3}\) |[a-z]\) ")
_LEAST_STRONG, _LEAST_FURNITURE = 1, 3
_LEAST_FORUM_LINES, _LEAST_HANDLES = 3, 2
_LEAST_MATTER = 30  # characters of a sentence that the matter begins or ends with
_LEAST_ROWS = 20
_MOST_GAPS = 0.7  # of the lines: more than this, and gaps tell nothing


@dataclass
class Sheet:
    """The lines of a paste with their judgements, in step."""

    lines: list[Line]
    judgements: list[Judgement]
    is_page: bool = False  # enough of it is a page's furniture
    is_forum: bool = False
    is_posts: bool = False
    running_heads: frozenset[str] = frozenset()  # of a PDF
    has_gaps: bool = True  # blank lines separate groups of lines, not each line from the next

    def is_furniture(self, position: int) -> bool:
        """Removed for its own sake, or likely to be none of the matter."""
        line, judgement = self.lines[position], self.judgements[position]
        return not line.is_kept or judgement.family is not None or judgement.section is not None

    def is_matter(self, position: int) -> bool:
        """A kept sentence, or a line that is marked as part of a list, table or code."""
        line, judgement = self.lines[position], self.judgements[position]
        if not line.is_kept or judgement.is_strong:
            return False
        if self.is_posts and position and HANDLE.search(self.lines[position - 1].text) and not line.has_gap:
            return True
        return is_marked(line) or (judgement.is_sentence and len(line.text) >= _LEAST_MATTER)


def is_marked(line: Line) -> bool:
    """Whether the paste itself marks the line as a step, a row or code."""
    return line.kind == "code" or (line.kind == "item" and _NUMBERED.match(line.text) is not None)


def read_sheet(lines: list[Line]) -> Sheet:
    """Judges every line, and takes out those whose wording or place in the markup says enough."""
    tables = _long_tables(lines)
    judgements = [
        judge(line.text, is_row=position in tables) if line.kind != "code" else Judgement("")
        for position, line in enumerate(lines)
    ]
    sheet = Sheet(lines, judgements)
    gaps = sum(1 for line in lines if line.has_gap)
    sheet.has_gaps = 0 < gaps <= _MOST_GAPS * len(lines)
    families = Counter(judgement.family for judgement in sheet.judgements if judgement.is_strong)
    sheet.is_forum = families["forum"] >= _LEAST_FORUM_LINES
    handles = (line for line in lines if "@" in line.text and len(line.text) < 80 and HANDLE.search(line.text))
    sheet.is_posts = sum(1 for _ in handles) >= _LEAST_HANDLES
    for position, (line, judgement) in enumerate(zip(lines, sheet.judgements, strict=True)):
        if not line.is_kept:
            continue
        if line.zone is not None:
            line.remove(line.zone, is_strong=True)
        elif (
            judgement.is_strong
            and not is_marked(line)
            and (judgement.family == "labels" or not _is_in_table(lines, position))
        ):
            line.remove(judgement.family or "rule", is_strong=True)
    sheet.is_page = _is_page(sheet)
    sheet.running_heads = frozenset(
        re.sub(r"^\d+ | \d+$", "", judgement.folded)
        for line, judgement in zip(lines, sheet.judgements, strict=True)
        if line.reason == "page furniture"
    )
    return sheet


def _long_tables(lines: list[Line]) -> set[int]:
    """Where rows stand that have as many cells as many rows beside them: no menu is so long."""
    places: set[int] = set()
    begin = 0
    for end in range(1, len(lines) + 1):
        if end == len(lines) or not _goes_on(lines[end - 1], lines[end]):
            if end - begin >= _LEAST_ROWS:
                places.update(range(begin, end))
            begin = end
    return places


def _goes_on(row: Line, below: Line) -> bool:
    is_table = row.kind == below.kind == "row" and not below.has_gap
    return is_table and row.text.count("\t") == below.text.count("\t")


def _is_page(sheet: Sheet) -> bool:
    """Whether enough lines are a page's own."""
    strong = sum(1 for line in sheet.lines if line.is_strong)
    others = sum(
        1
        for line, judgement in zip(sheet.lines, sheet.judgements, strict=True)
        if line.is_kept and (judgement.is_menu or judgement.section)
    )
    return strong >= _LEAST_STRONG and strong + others >= _LEAST_FURNITURE


def is_table(sheet: Sheet, position: int) -> bool:
    """A row with a row beside it."""
    lines = sheet.lines
    if position >= len(lines) or not lines[position].is_kept or sheet.judgements[position].is_menu:
        return False
    return _is_in_table(lines, position)


def _is_in_table(lines: list[Line], position: int) -> bool:
    if lines[position].kind != "row":
        return False
    beside = [place for place in (position - 1, position + 1) if 0 <= place < len(lines)]
    return any(lines[place].kind == "row" and lines[place].is_kept for place in beside)


def is_structure(sheet: Sheet, place: int) -> bool:
    """An item, a row, code, a quotation or a heading that the paste itself marks."""
    line = sheet.lines[place]
    return line.is_kept and (line.kind in ("item", "code", "quote", "heading") or is_table(sheet, place))


def is_label(sheet: Sheet, place: int) -> bool:
    """A short line that is no sentence and nothing that the paste marks."""
    line, judgement = sheet.lines[place], sheet.judgements[place]
    return line.is_kept and line.kind == "text" and not judgement.is_sentence and len(line.text) <= LONGEST_LABEL


def groups_of(sheet: Sheet) -> list[list[int]]:
    """The lines between gaps."""
    groups: list[list[int]] = []
    for place, line in enumerate(sheet.lines):
        if line.has_gap or not groups:
            groups.append([])
        groups[-1].append(place)
    return groups
