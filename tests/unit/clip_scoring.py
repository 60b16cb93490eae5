"""How well a clip fits the marks of a paste: which body lines are lost, which of a page's own lines are kept."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from services.research.cleaner import Paste as Clipboard
from services.research.clip import Clip, make_clip
from tests.unit.marked_pastes import MarkedLine, Paste, all_pastes, squash

_LONG = 20  # letters of a page's own line that is looked for inside other lines, too
_ENOUGH = 8  # letters of a body line that is looked for across the text: it may be part of a joined line


@dataclass(frozen=True)
class Score:
    """Lines of one way of cleaning, over some pastes."""

    body: int
    lost: tuple[str, ...]
    own: int
    kept: tuple[str, ...]

    @property
    def body_kept(self) -> float:
        return 1 - len(self.lost) / self.body

    @property
    def own_removed(self) -> float:
        return 1 - len(self.kept) / self.own

    def __str__(self) -> str:
        return (
            f"body kept {self.body_kept:.2%} of {self.body}, boilerplate removed {self.own_removed:.2%} of {self.own}"
        )


def total(scores: Iterable[Score]) -> Score:
    """The sum over pastes."""
    all_of = list(scores)
    return Score(
        sum(score.body for score in all_of),
        tuple(line for score in all_of for line in score.lost),
        sum(score.own for score in all_of),
        tuple(line for score in all_of for line in score.kept),
    )


def score(paste: Paste, text: str, markdown: str = "") -> Score:
    """Judges a cleaned text; `markdown` too, where addresses of links stand that the text leaves out."""
    lines = [squash(line) for line in text.split("\n")]
    whole, with_links = "".join(lines), squash(markdown)
    body = [line for line in paste.marked("B") if squash(line.meant)]
    own = [line for line in paste.marked("X") if squash(line.meant)]
    if paste.name == "mojibake-tapt-nb":  # letters whose bytes are lost cannot be told: judged by the others
        found = re.sub(r"[^a-z0-9]", "", whole)
        lost = [line.meant for line in body if re.sub(r"[^a-z0-9]", "", squash(line.meant)) not in found]
    else:
        lost = [line.meant for line in body if not _is_there(squash(line.meant), lines, whole + "\n" + with_links)]
    return Score(
        len(body), tuple(lost), len(own), tuple(line.meant for line in own if _is_left(paste, line, lines, whole))
    )


def _is_there(wanted: str, lines: list[str], whole: str) -> bool:
    return (len(wanted) >= _ENOUGH and wanted in whole) or any(wanted in line for line in lines)


def _is_left(paste: Paste, line: MarkedLine, lines: list[str], whole: str) -> bool:
    wanted = squash(line.meant)
    if wanted in lines:
        return True
    others = (squash(form) for other in paste.lines if other.mark != "X" for form in (other.text, other.meant))
    return len(wanted) >= _LONG and wanted in whole and not any(wanted in other for other in others)


def clipboard(paste: Paste) -> Clipboard:
    """The paste as the cleaner takes it."""
    expected = paste.expected
    text, html = ("", paste.content) if paste.is_html else (paste.content, None)
    return Clipboard(text, html, expected.get("source_url"), expected.get("pasted_at"))


@cache
def clips() -> dict[str, Clip]:
    """The clip of every paste of the corpus."""
    return {paste.name: make_clip(clipboard(paste)) for paste in all_pastes()}


def found_fields(clip: Clip) -> dict[str, Any]:
    """What a clip says about its paste, named as in expected.toml."""
    published = clip["source"]["published"]
    day = f"{published}-01" if published and len(published) == len("2026-05") else published
    return {
        "title": clip["title"],
        "author": clip["source"]["author"],
        "published": day[:10] if day else None,
        "site": clip["source"]["site"],
        "language": clip["language"],
        "kind": clip["kind"],
    }
