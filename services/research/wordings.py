"""The families of wording in wordings.toml, made ready to be asked.

Read once at import. A folded line is held only against the patterns that can begin with its first letter.
"""

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.research.first_letters import ANY, alternatives, first_letters

_FILE = Path(__file__).with_name("wordings.toml")
_LABEL_END = r"(?: ?[:|–-])?(?: ?\(.{0,30}\)?)?\Z"
_CONTENTS_END = r"(?: ?\[?(?:skjul|gøym|hide|vis|show)\]?)?\Z"


@dataclass(frozen=True)
class Family:
    """Wordings of one purpose."""

    name: str
    longest: int  # characters of a line that may be worded so
    parts: tuple[str, ...]


class Wordings:
    """Several families; the first that fits a line counts."""

    def __init__(self, families: Iterable[Family]) -> None:
        self._families = tuple(families)
        self.longest = max(family.longest for family in self._families)
        self._letters = [[(part, first_letters(part)) for part in family.parts] for family in self._families]
        self._by_letter: dict[str, re.Pattern[str]] = {}  # compiled when a line first begins with the letter

    def family_of(self, folded: str) -> str | None:
        """The family that a folded line is worded as, or None."""
        if len(folded) > self.longest:
            return None
        letter = folded[:1]
        if letter not in self._by_letter:
            self._by_letter[letter] = self._pattern(letter)
        found = self._by_letter[letter].match(folded)
        if found is None or found.lastgroup is None:
            return None
        family = self._families[int(found.lastgroup[1:])]
        return family.name if len(folded) <= family.longest else None

    def _pattern(self, letter: str) -> re.Pattern[str]:
        groups = []
        for number, parts in enumerate(self._letters):
            fitting = [part for part, begins in parts if begins is ANY or letter in begins]
            if fitting:
                groups.append(f"(?P<f{number}>{'|'.join(fitting)})")
        return re.compile(f"(?:{'|'.join(groups)})\\Z" if groups else r"(?!)")


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
