"""What printing puts on every page of a PDF: running heads, page numbers, the foot of a page."""

import re
from collections import Counter
from itertools import pairwise

from services.research.judgement import fold
from services.research.line import Line

_NUMBER_BESIDE = re.compile(
    r"(?:(?P<first>\d{1,4}|[ivxl]{1,6})[ \t]{3,}(?P<right>\S.*)|(?P<left>\S.*?)[ \t]{3,}(?P<last>\d{1,4}"
    r"|[ivxl]{1,6}))\Z"
)
_NUMBER_ALONE = re.compile(
    r"(?:[-–—|] ?)?(?:side |page |s\. ?|p\. ?)?(?:\d{1,4}|[ivxl]{1,6})(?: (?:av|of|/) \d{1,4})?(?: ?[-–—|])?\Z",
    re.IGNORECASE,
)
_LONGEST_HEAD = 90
_LEAST_TIMES, _HEAD_LINES = 2, 3


def remove_print_furniture(lines: list[Line]) -> None:
    """Takes out the lines at the edges of pages that are none of the text."""
    if not lines:
        return
    edges = _edges(lines)
    heads = Counter(_without_number(line.source) for line in lines if len(line.text) <= _LONGEST_HEAD)
    at_edges = Counter(_without_number(lines[position].source) for position in edges)
    if at_edges[_without_number(lines[0].source)]:  # the first page may have its head, too
        edges.add(0)
        at_edges[_without_number(lines[0].source)] += 1
    for near in _near_edges(lines):
        _remove_repeated(lines, near, edges)
    for position, line in enumerate(lines):
        if not line.is_kept or line.kind == "code" or len(line.text) > _LONGEST_HEAD:
            continue
        is_edge = position in edges
        alone = _stands_alone(lines, position)
        name = _without_number(line.source)
        is_head = _NUMBER_BESIDE.match(line.source) is not None and (
            is_edge or (alone and bool(name) and heads[name] >= _LEAST_TIMES)
        )
        is_repeated = is_edge and bool(name) and at_edges[name] >= _LEAST_TIMES
        is_below_head = position > 0 and lines[position - 1].reason == "page furniture" and not line.has_gap
        is_number = (is_below_head and line.source.isdigit()) or (
            _NUMBER_ALONE.match(line.source) is not None and (is_edge or (alone and line.source[-1:].isdigit()))
        )
        if is_head or is_number or is_repeated or _is_foot(lines, position):
            line.remove("page furniture", is_strong=True)


def _edges(lines: list[Line]) -> set[int]:
    """The first and last line of every page, the first page's head and the last page's foot excepted."""
    found: set[int] = set()
    for position, (above, line) in enumerate(pairwise(lines), start=1):
        if line.page != above.page:
            found |= {position - 1, position}
    return found


def _remove_repeated(lines: list[Line], near: list[int], edges: set[int]) -> None:
    """Takes out the running heads among lines at one edge of the pages; what stands beside them is an edge, too."""
    times = Counter(lines[place].source for place in near)
    for place in near:
        text = lines[place].source
        if times[text] >= _LEAST_TIMES and len(text) <= _LONGEST_HEAD and _without_number(text):
            lines[place].remove("page furniture", is_strong=True)
            edges |= {place - 1, place + 1} & set(range(len(lines)))


def _near_edges(lines: list[Line]) -> tuple[list[int], list[int]]:
    """The first few lines of the pages, and the last few: a running head may have as many."""
    pages: dict[int, list[int]] = {}
    for position, line in enumerate(lines):
        pages.setdefault(line.page, []).append(position)
    first = [place for places in pages.values() for place in places[:_HEAD_LINES]]
    return first, [place for places in pages.values() for place in places[-_HEAD_LINES:]]


def _stands_alone(lines: list[Line], position: int) -> bool:
    below = lines[position + 1] if position + 1 < len(lines) else None
    return lines[position].has_gap and (below is None or below.has_gap)


def _is_foot(lines: list[Line], position: int) -> bool:
    """A short line after a gap, the last of its page."""
    line = lines[position]
    below = lines[position + 1] if position + 1 < len(lines) else None
    ends_page = below is not None and below.page != line.page
    return ends_page and line.page > 0 and line.has_gap and len(line.source) < 50 and line.source[-1:] not in ".!?:»"


def _without_number(text: str) -> str:
    return (
        fold(re.sub(r"\d{1,4}|(?<=  )[ivxl]{1,6}$|^[ivxl]{1,6}(?=  )", " ", text))
        if re.search(r"[^\W\d_]", text)
        else ""
    )
