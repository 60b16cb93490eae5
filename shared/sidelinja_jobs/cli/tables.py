"""Text tables and progress bars for a terminal of any width.

Written here instead of taken from a library: those that measure wide characters and fit a table into a width bring
megabytes into every image.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click

from sidelinja_jobs.cli.screen import Screen
from sidelinja_jobs.cli.text import columns, cut, neutral, pad

GAP = "  "
# The widest that a flexible column grows where lines have no end.
_ENDLESS = 200
_EIGHTHS = " ▏▎▍▌▋▊▉"


@dataclass(frozen=True)
class Cell:
    """A text and its colour."""

    text: str
    colour: str | None = None


@dataclass(frozen=True)
class Column:
    """A heading and how the column behaves when room is short.

    A flexible column is cut, down to `least`; after that, columns leave in the order of `leaves` (0 = never). A
    column with nothing in it leaves at once if it may leave at all.
    """

    title: str
    right: bool = False
    flexible: bool = False
    least: int = 8
    leaves: int = 0


def table(heads: Sequence[Column], rows: Sequence[Sequence[Cell]], screen: Screen) -> Iterator[str]:
    """The lines of a table: headings, then rows, in columns that fit the screen."""
    cells = [[Cell(neutral(cell.text), cell.colour) for cell in row] for row in rows]
    kept = [
        index
        for index, head in enumerate(heads)
        if not head.leaves or any(row[index].text for row in cells) or not cells
    ]
    natural = {
        index: max([columns(heads[index].title), *(columns(row[index].text) for row in cells)]) for index in kept
    }
    widths = _fitted(heads, natural, screen.width)
    yield screen.paint(_line(heads, [Cell(head.title) for head in heads], widths, None), None, bold=True)
    for row in cells:
        yield _line(heads, row, widths, screen)


def print_table(heads: Sequence[Column], rows: Sequence[Sequence[Cell]], screen: Screen) -> None:
    """The table on standard output, in one write."""
    click.echo("\n".join(table(heads, rows, screen)))


def bar(fraction: float, width: int, *, blocks: bool = True) -> str:
    """A progress bar of this many columns: `█████▍    `, or `[####----]` where the encoding has no blocks."""
    done = min(1.0, max(0.0, fraction))
    if not blocks:
        filled = int(done * (width - 2))
        return f"[{'#' * filled}{'-' * (width - 2 - filled)}]"
    whole, eighths = divmod(int(done * width * 8), 8)
    tail = _EIGHTHS[eighths] if whole < width else ""
    return ("█" * whole + tail).ljust(width)


def _fitted(heads: Sequence[Column], natural: dict[int, int], width: int | None) -> dict[int, int]:
    """The width of each column that is kept, in their order."""
    if width is None:
        return {index: min(size, _ENDLESS) if heads[index].flexible else size for index, size in natural.items()}
    widths = dict(natural)
    while True:
        over = sum(widths.values()) + len(GAP) * (len(widths) - 1) - width
        if over <= 0:
            return widths
        shrunk = _shrunk(widths, {index: heads[index].least for index in widths if heads[index].flexible}, over)
        if shrunk is not None:
            return shrunk
        leaving = [index for index in widths if heads[index].leaves]
        if not leaving:
            return _shrunk(widths, dict.fromkeys(widths, 1), over) or widths
        del widths[min(leaving, key=lambda index: heads[index].leaves)]


def _shrunk(widths: dict[int, int], least: dict[int, int], over: int) -> dict[int, int] | None:
    """The widths with `over` taken from those that may shrink, the widest first; None if they cannot give so much."""
    if sum(max(0, widths[index] - smallest) for index, smallest in least.items()) < over:
        return None
    result = dict(widths)
    for _ in range(over):
        result[max((index for index in least if result[index] > least[index]), key=result.__getitem__)] -= 1
    return result


def _line(heads: Sequence[Column], row: Sequence[Cell], widths: dict[int, int], screen: Screen | None) -> str:
    parts = []
    last = next(reversed(widths))
    for index, width in widths.items():
        cell = row[index]
        text = cut(cell.text, width)
        if index != last or heads[index].right:
            text = pad(text, width, right=heads[index].right)
        parts.append(screen.paint(text, cell.colour) if screen else text)
    return GAP.join(parts).rstrip()
