"""What the output can show: width, colours, redrawing, block characters."""

import os
import shutil
from dataclasses import dataclass
from typing import TextIO

import click

NARROWEST = 20


@dataclass(frozen=True)
class Screen:
    """Measured once per command; `width` is None where lines have no end (a file, a pipe)."""

    width: int | None
    is_terminal: bool
    has_colours: bool
    has_blocks: bool
    height: int = 24

    def paint(self, text: str, colour: str | None, *, bold: bool = False) -> str:
        """The text in a colour, where there are colours."""
        if not self.has_colours or (colour is None and not bold) or not text:
            return text
        return click.style(text, fg=colour, bold=bold or None)


def screen_of(stream: TextIO) -> Screen:
    """What this stream can show. COLUMNS decides the width, as it does for other programs; NO_COLOR is kept."""
    is_terminal = stream.isatty()
    moves = is_terminal and os.environ.get("TERM") != "dumb"
    size = shutil.get_terminal_size()
    wants_width = is_terminal or "COLUMNS" in os.environ
    return Screen(
        width=max(NARROWEST, size.columns) if wants_width else None,
        height=size.lines,
        is_terminal=moves,
        has_colours=moves and not os.environ.get("NO_COLOR"),
        has_blocks="utf" in (stream.encoding or "").lower(),
    )
