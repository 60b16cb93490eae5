"""The families of wording in wordings.toml, made ready to be asked.

Read once at import. A line is held only against the patterns that can begin as it does, and against those that begin
with anything where it holds a word that they need; most are held against none.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from openrouter_client.pattern_parts import Needs, alternatives, elements, holds, may_be_absent, needed
from services.research.beginnings import LENGTH, beginnings
from services.research.hints import Hints

_FILE = Path(__file__).with_name("wordings.toml")
_LABEL_END = r"(?: ?[:|–-])?(?: ?\(.{0,30}\)?)?\Z"
_DIGIT = re.compile(r"\d")
_CONTENTS_END = r"(?: ?\[?(?:skjul|gøym|hide|vis|show)\]?)?\Z"


_Numbered = tuple[int, re.Pattern[str]]  # number of a family, and a wording of it
_compile, _beginnings, _needed = cache(re.compile), cache(beginnings), cache(needed)  # families are asked twice


@dataclass(frozen=True)
class Family:
    """Wordings of one purpose."""

    name: str
    longest: int  # characters of a line that may be worded so
    parts: tuple[str, ...]


class Wordings:
    """Several families; the first that fits a line counts."""

    def __init__(self, families: Iterable[Family]) -> None:
        self.families = tuple(families)
        self.longest = max(family.longest for family in self.families)
        self._anywhere: list[tuple[int, Needs, re.Pattern[str]]] = []  # those that begin with anything
        self._numeric: list[_Numbered] = []  # of them, those that need a digit and no word
        begun: dict[tuple[int, frozenset[str]], list[str]] = {}
        words: set[str] = set()
        for number, part in self.parts():
            begins, needs = _beginnings(part), _needed(part)
            if "" not in begins:
                begun.setdefault((number, begins), []).append(part)
            elif needs:
                self._anywhere.append((number, needs, _compile(part)))
                words |= needs[0]
            else:
                self._numeric.append((number, _numeric(part)))
        self._hints = Hints(words)
        self._begun: dict[str, list[tuple[int, str]]] = {}  # beginning -> families and patterns
        for (number, begins), parts in begun.items():
            for beginning in begins:
                self._begun.setdefault(beginning, []).append((number, "|".join(parts)))
        self._compiled: dict[str, list[_Numbered]] = {}  # when a line first begins so

    def parts(self) -> Iterator[tuple[int, str]]:
        """Number of the family and pattern, of each alternative of each pattern."""
        return ((number, part) for number, family in enumerate(self.families) for part in family.parts)

    def family_of(self, folded: str) -> str | None:
        """The family that a folded line is worded as, or None."""
        if len(folded) > self.longest:
            return None
        begins = folded[:LENGTH]
        if begins not in self._compiled:
            self._compiled[begins] = self._patterns(begins)
        numbers = [number for number, pattern in self._compiled[begins] if pattern.fullmatch(folded)]
        if any(map(self._hints.__getitem__, folded.split(" "))):
            numbers += [
                number
                for number, needs, pattern in self._anywhere
                if holds(needs, folded) and pattern.fullmatch(folded)
            ]
        if self._numeric and _DIGIT.search(folded):
            numbers += [number for number, pattern in self._numeric if pattern.fullmatch(folded)]
        if not numbers:
            return None
        family = self.families[min(numbers)]
        return family.name if len(folded) <= family.longest else None

    def _patterns(self, begins: str) -> list[_Numbered]:
        fitting = (self._begun.get(begins[:length], ()) for length in range(1, len(begins) + 1))
        return [(number, _compile(pattern)) for pairs in fitting for number, pattern in pairs]


def _numeric(part: str) -> re.Pattern[str]:
    if not any(element == r"\d" and not may_be_absent(quantifier) for element, quantifier in elements(part)):
        raise ValueError(
            f"{_FILE.name}: {part!r} fits lines without a word or digit of its own. Next: make it need one"
        )
    return re.compile(part)


def _read() -> dict[str, Any]:
    text = _FILE.read_text(encoding="utf-8")
    for name, part in tomllib.loads(text)["shared"].items():
        text = text.replace(f"<{name}>", part)
    return tomllib.loads(text)


def _families(told: dict[str, Any], *uses: str) -> list[Family]:
    return [
        Family(
            row["name"], row["longest"], tuple(part for pattern in row["patterns"] for part in alternatives(pattern))
        )
        for use in uses
        for row in told["family"]
        if row["use"] == use
    ]


def _section(told: dict[str, Any], name: str, end: str) -> re.Pattern[str]:
    return re.compile(f"(?:{'|'.join(told['section'][name]['patterns'])}){end}")


_TOLD = _read()
SENTENCES = Wordings(_families(_TOLD, "sentences"))
STRONG = Wordings(_families(_TOLD, "labels", "sentences"))
WEAK = Wordings(_families(_TOLD, "weak"))
HEADLINES = _section(_TOLD, "headlines", _LABEL_END)
PAGE_MATTERS = _section(_TOLD, "page_matters", _LABEL_END)
CONTENTS = _section(_TOLD, "contents", _CONTENTS_END)
NAV_WORDS = frozenset(_TOLD["menu"]["words"].split())
CONSENT_THINGS = re.compile("|".join(_TOLD["consent"]["things"]))
