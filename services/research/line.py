"""A line of a paste on its way through the cleaner.

A line is changed in place from reading to rendering; it keeps what it was in the paste, so that everything that is done
to it can be told and undone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

LONGEST_LINE = 1_200_000  # characters: a text may be one line, a page of 5 MB may not
MOST_LINES = 50_000  # that hold anything; more would not find room in the memory that the cleaner has
LineKind = Literal["text", "heading", "item", "row", "quote", "code"]


class TooLargeError(ValueError):
    """A paste has more lines, or a longer one, than are taken."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """A link on a part of a line's text: `text[start:end]`."""

    start: int
    end: int
    url: str


@dataclass(slots=True)
class Line:
    """One line, or several that were wrapped."""

    number: int  # of the line in the paste, from 1
    source: str  # as it stood there, without white space at its ends
    text: str
    kind: LineKind = "text"
    level: int = 0  # of a heading, or of a quotation
    has_gap: bool = False  # a blank line or a new block stands before it
    indent: int = 0
    page: int = 0  # of a PDF
    zone: str | None = None  # what the page's markup says about the place: navigation, footer, …
    box: int = 0  # of a page: the element around the element that holds the line
    is_link: bool = False  # all of its text is links
    reason: str | None = None  # why it was removed
    is_strong: bool = False  # the reason is the line's own wording or place in the markup, not its neighbours
    changes: tuple[str, ...] = ()  # what was done to the text
    anchors: tuple[Anchor, ...] = ()
    parts: tuple[tuple[int, str], ...] = ()  # number and source of each line joined to this one

    @property
    def is_kept(self) -> bool:
        return self.reason is None

    def remove(self, reason: str, *, is_strong: bool = False) -> None:
        """Takes the line out; the first reason stays."""
        if self.reason is None:
            self.reason = reason
            self.is_strong = is_strong

    def change(self, text: str, how: str) -> None:
        """Gives the line another text and says what was done. Links are the caller's to move."""
        if text != self.text:
            self.text = text
            self.note(how)

    def note(self, *changes: str) -> None:
        """Says what was done to the text."""
        for how in changes:
            if how not in self.changes:
                self.changes += (how,)

    def sources(self) -> tuple[tuple[int, str], ...]:
        """Number and text of every line of the paste that this one was made of."""
        return ((self.number, self.source), *self.parts)


def require_room(lines: Sequence[Line]) -> None:
    """Raises: TooLargeError: there are more lines than are taken, or the last is too long."""
    if len(lines) > MOST_LINES:
        raise TooLargeError(f"the paste has more than {MOST_LINES} lines")
    if len(lines[-1].source) > LONGEST_LINE:
        raise TooLargeError(f"a line has {len(lines[-1].source)} characters, at most {LONGEST_LINE} are taken")
