"""Which bytes of a file a response carried (R2 to R7), and unions of such ranges (R14, R17).

What counts is the answer: status and `Content-Range`, not what the request's `Range` asked for. `size` is what Caddy
handed to the socket, an upper bound of what arrived.
"""

import re
from collections.abc import Iterable

from services.stats.lines import Line

Span = tuple[int, int]  # first byte, byte after the last
Coverage = tuple[int, int, int]  # the same, and the file's size, 0 when it is not said

LARGEST_FILE = 1 << 50
NO_RANGE, PROBE = "range", "probe"  # why an answer covers nothing
_PROBE_BYTES = 2
_MOST_RANGES = 1000  # of one request; Caddy answers more than a few with the whole file
_CONTENT_RANGE = re.compile(r"bytes (\d{1,15})-(\d{1,15})/(\d{1,15}|\*)", re.ASCII).fullmatch
_RANGE = re.compile(r"\s*(\d{0,15})-(\d{0,15})\s*", re.ASCII)


class ContentRanges(dict[str, Coverage | str]):
    """Content-Range headers (R3), each read once: players ask for the same pieces of a file."""

    MOST = 50_000

    def __missing__(self, text: str) -> Coverage | str:
        if len(self) > self.MOST:
            self.clear()
        found = self[text] = _read_range(text)
        return found


def _read_range(text: str) -> Coverage | str:
    found = _CONTENT_RANGE(text)
    if found is None:
        return NO_RANGE
    texts = found.groups()
    first, end, total = int(texts[0]), int(texts[1]) + 1, 0 if texts[2] == "*" else int(texts[2])
    if end <= first or (total and end > total):
        return NO_RANGE
    return PROBE if end - first <= _PROBE_BYTES else (first, end, total)  # R6


def multiple_coverage(asked: str, size: int, total: int) -> tuple[list[Span], bool]:
    """R4 and R6: an answer in several parts has no Content-Range; the request's ranges, cut at the file's end.

    They are cut at `size`, too, which includes the heads of the parts and so bounds the sum from above. Without a
    known file size (0) a range from the end (`-500`) cannot be placed and is left out.
    """
    unit, _, text = asked.partition("=")
    spans: list[Span] = []
    left = size
    wanted = 0
    for part in text.split(",", _MOST_RANGES)[:_MOST_RANGES] if unit.strip().lower() == "bytes" else ():
        span = _placed(part, total)
        if span is None:
            continue
        wanted += span[1] - span[0]
        taken = min(span[1] - span[0], left)
        if taken > 0:
            spans.append((span[0], span[0] + taken))
            left -= taken
    return spans, 0 < wanted <= _PROBE_BYTES


def total_of(line: Line) -> int:
    """The file's size as a 200 says it, 0 when it does not."""
    headers = line.resp_headers
    values = headers.content_length if headers is not None else None
    if not values:
        return 0
    text = values[0]
    return int(text) if len(text) < 16 and text.isascii() and text.isdigit() else 0


def union_of(spans: Iterable[Span]) -> list[Span]:
    """Disjoint, sorted spans that cover the same bytes; neighbours that touch become one (R17)."""
    merged: list[Span] = []
    for first, end in sorted(span for span in spans if span[0] < span[1]):
        if merged and first <= merged[-1][1]:
            if end > merged[-1][1]:
                merged[-1] = (merged[-1][0], end)
        else:
            merged.append((first, end))
    return merged


def _placed(part: str, total: int) -> Span | None:
    found = _RANGE.fullmatch(part)
    if found is None or not (found[1] or found[2]):
        return None
    if not found[1]:  # the last so many bytes
        return (max(0, total - int(found[2])), total) if total else None
    first = int(found[1])
    end = int(found[2]) + 1 if found[2] else (total or LARGEST_FILE)
    end = min(end, total) if total else end
    return (first, end) if first < end else None
