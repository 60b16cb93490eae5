"""The families of wording in wordings.toml, made ready to be asked.

Read once at import. A line is held only against the patterns that can begin as it does, and against those for which one
of its words is a hint; most lines are held against none.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache, reduce
from operator import or_
from pathlib import Path
from typing import Any, NamedTuple

from openrouter_client.pattern_parts import Needs, alternatives, holds, needed, needs_digit
from services.research.beginnings import LENGTH, beginnings
from services.research.hints import Hints

_FILE = Path(__file__).with_name("wordings.toml")
_LABEL_END = r"(?: ?[:|–-])?(?: ?\(.{0,30}\)?)?"
_CONTENTS_END = r"(?: ?\[?(?:skjul|gøym|hide|vis|show)\]?)?"
_SECTIONS = (("headlines", _LABEL_END), ("contents", _CONTENTS_END), ("page matters", _LABEL_END))
_LONGEST_SECTION = 60
_NUMBER = re.compile(r"\d+")
_NO_NUMBER = re.compile(r"\\.|\{[\d,]+\}|\[[^]]*\]")
_MOST_REMEMBERED = 16_384  # beginnings of lines, and sets of hints

_Candidate = tuple[int, Needs, re.Pattern[str]]  # number of a family, what a wording of it needs, the wording
_compile = cache(re.compile)


@dataclass(frozen=True)
class Family:
    """Wordings of one purpose."""

    name: str
    use: str  # labels, sentences, weak or section
    longest: int  # characters of a line that may be worded so
    parts: tuple[str, ...]


class Reading(NamedTuple):
    """What a line is worded as: the first family of each use that fits, or None."""

    strong: str | None = None  # for a line that is no sentence
    spoken: str | None = None  # for a sentence, too
    weak: str | None = None
    section: str | None = None  # what stands below it
    may_ask_consent: bool = False  # a word stands there without which nobody asks
    hints: int = 0  # at wordings, by its words: bits


_FIELDS = {"labels": ("strong",), "sentences": ("strong", "spoken"), "weak": ("weak",), "section": ("section",)}


class Wordings:
    """Families, in the order in which the first that fits counts."""

    def __init__(self, families: Iterable[Family], consent_words: Iterable[str] = ()) -> None:
        self.families = tuple(families)
        self.longest = max(family.longest for family in self.families)
        self._begun: dict[str, list[_Candidate]] = {}  # beginning -> wordings
        self._hinted: list[_Candidate] = []  # wordings that begin with anything, or with a digit
        by_digits = self._without_digits = 0  # of these, as bits: what a digit hints at, what needs none
        hints: list[tuple[int, Iterable[str]]] = []
        begun: dict[tuple[int, frozenset[str]], list[str]] = {}
        for number, part in self.parts():
            begins, needs = beginnings(part), needed(part)
            if all(begin and not begin[0].isdecimal() for begin in begins):
                begun.setdefault((number, begins), []).append(part)
                continue
            place = len(self._hinted)
            self._hinted.append((number, needs, _compile(part)))
            if needs:
                hints.append((place, _likeliest(needs)))
            if not needs_digit(part):
                _require(needs, part)
                self._without_digits |= 1 << place
            elif not needs:
                by_digits |= 1 << place
        for (number, begins), parts in begun.items():
            for begin in begins:
                self._begun.setdefault(begin, []).append((number, (), _compile("|".join(parts))))
        self._consent, self._digit = 1 << len(self._hinted), 2 << len(self._hinted)
        self._hints = Hints([*hints, (len(self._hinted), consent_words)], by_digits | self._digit)
        self._nothing_with = lru_cache(_MOST_REMEMBERED)(self._find_nothing)
        self._beginning_with = lru_cache(_MOST_REMEMBERED)(self._find_begun)
        self._hinted_at_by = lru_cache(_MOST_REMEMBERED)(self._find_hinted)

    def parts(self) -> Iterator[tuple[int, str]]:
        """Number of the family and pattern, of each alternative of each pattern."""
        return ((number, part) for number, family in enumerate(self.families) for part in family.parts)

    def read(self, folded: str, hints: int | None = None) -> Reading:
        """What a folded line is worded as; `hints`: of the longer line that it is a part of, where known."""
        if hints is None:
            hints = self._hints_of(folded)
        nothing = self._nothing_with(hints)
        if len(folded) > self.longest:
            return nothing
        candidates: tuple[_Candidate, ...] = ()
        if not folded[:1].isdecimal():
            candidates = self._beginning_with(folded[:LENGTH])
        if not hints & self._digit:
            hints &= self._without_digits
        if hints:
            candidates += self._hinted_at_by(hints)
        if not candidates:
            return nothing
        found = [
            number
            for number, needs, pattern in candidates
            if (not needs or holds(needs, folded)) and pattern.fullmatch(folded)
        ]
        return self._told(found, len(folded), nothing) if found else nothing

    def _hints_of(self, folded: str) -> int:
        return reduce(or_, map(self._hints.__getitem__, folded.split(" ")))

    def _find_nothing(self, hints: int) -> Reading:
        return Reading(may_ask_consent=hints & self._consent != 0, hints=hints)

    def _find_begun(self, begins: str) -> tuple[_Candidate, ...]:
        ways = (self._begun.get(begins[:length], ()) for length in range(1, len(begins) + 1))
        return tuple(candidate for candidates in ways for candidate in candidates)

    def _find_hinted(self, hints: int) -> tuple[_Candidate, ...]:
        return tuple(candidate for place, candidate in enumerate(self._hinted) if hints >> place & 1)

    def _told(self, found: Iterable[int], length: int, nothing: Reading) -> Reading:
        told: dict[str, Any] = {}
        for number in sorted(found):
            family = self.families[number]
            for field in _FIELDS[family.use]:
                told.setdefault(field, family.name if length <= family.longest else None)
        return nothing._replace(**told)


def _likeliest(needs: Needs) -> Iterable[str]:
    """Of what a pattern needs, what is likeliest to be missing; a number is not, in a table."""
    return next((words for words in needs if not any(map(str.isdecimal, words))), needs[0])


def _require(needs: Needs, part: str) -> None:
    if not needs:
        raise ValueError(f"{_FILE.name}: {part!r} fits lines without a word or digit of its own. Next: let it need one")


def _read() -> dict[str, Any]:
    text = _FILE.read_text(encoding="utf-8")
    for name, part in tomllib.loads(text)["shared"].items():
        text = text.replace(f"<{name}>", part)
    return tomllib.loads(text)


def _families(told: dict[str, Any]) -> Iterator[Family]:
    for use in ("labels", "sentences", "weak"):
        for row in told["family"]:
            if row["use"] == use:
                yield Family(row["name"], use, row["longest"], tuple(_parts(row["patterns"])))
    for name, end in _SECTIONS:
        parts = _parts(told["section"][name.replace(" ", "_")]["patterns"])
        yield Family(name, "section", _LONGEST_SECTION, tuple(part + end for part in parts))


def _parts(patterns: Iterable[str]) -> Iterator[str]:
    return (part for pattern in patterns for part in alternatives(pattern))


def _numbers(parts: Iterable[str]) -> frozenset[str]:
    """The numbers that patterns name; 5 and 6 of `(?:5|6) stars`, none of `\\d{2}`."""
    return frozenset(number for part in parts for number in _NUMBER.findall(_NO_NUMBER.sub("", part)))


_TOLD = _read()
CONSENT_WORDS: tuple[str, ...] = tuple(_TOLD["consent"]["words"])
CONSENT_THINGS = re.compile("|".join(_TOLD["consent"]["things"]))
WORDINGS = Wordings(_families(_TOLD), CONSENT_WORDS)
NUMBERS = _numbers(part for _, part in WORDINGS.parts())
NAV_WORDS = frozenset(_TOLD["menu"]["words"].split())
