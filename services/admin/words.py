"""The words of the pages, in Bokmål and English: `t("jobs.retry")` in a template.

words/*.toml hold them, a table per part and one line per word: `retry = { nb = "Prøv igjen", en = "Retry" }`. A word
may name values, `{n}`, and be a pair of one and many, picked by the value n. Numbers, times and durations are
written the way of the language, times in the zone of the setting.
"""

import contextlib
import itertools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from markupsafe import Markup

LANGUAGES = ("nb", "en")
FOLDER = Path(__file__).with_name("words")
Word = str | list[str]

_ACCEPTED = {"nb": "nb", "no": "nb", "nn": "nb", "da": "nb", "sv": "nb", "en": "en"}
_HOUR = {"nb": "t", "en": "h"}
_MONTHS = {
    "nb": ("jan.", "feb.", "mars", "april", "mai", "juni", "juli", "aug.", "sep.", "okt.", "nov.", "des."),
    "en": ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
}
_NARROW = "\u202f"  # narrow no-break space, between thousands and before units


@cache
def all_words(folder: Path = FOLDER) -> Mapping[str, Mapping[str, Word]]:
    """Key (`part.name`) -> language -> word.

    Raises:
        ValueError: a key stands in two files.
    """
    found: dict[str, Mapping[str, Word]] = {}
    for path in sorted(folder.glob("*.toml")):
        for part, entries in tomllib.loads(path.read_text(encoding="utf-8")).items():
            for name, word in entries.items():
                if f"{part}.{name}" in found:
                    raise ValueError(f"{path}: {part}.{name} stands in another file, too")
                found[f"{part}.{name}"] = word
    return found


def preferred_language(accept_language: str) -> str:
    """The language that a browser asks for: nb for a Scandinavian one, en for all others; nb where it asks nothing."""
    wanted = []
    for item in accept_language.split(","):
        tag, _, weight = item.strip().partition(";q=")
        language = tag.split("-")[0].lower()
        with contextlib.suppress(ValueError):
            if language.isalpha() or language == "*":
                wanted.append((float(weight or 1), language))
    for _, tag in sorted(wanted, key=lambda entry: -entry[0]):
        if tag in _ACCEPTED:
            return _ACCEPTED[tag]
    return "en" if wanted else "nb"


def doing(language: str, job: Mapping[str, Any]) -> str:
    """What a running job is at: Transkriberer … 2/3 forsøk. The type's own word where it has one."""
    words = all_words()
    key = "running.stopping" if job["cancel_requested_at"] is not None else f"running.{job['job_type']}"
    word = words.get(key, words["running.other"])[language]
    return str(words["running.attempt"][language]).format(word=word, n=job["attempts"] + 1, of=job["max_attempts"])


@dataclass(frozen=True)
class Speech:
    """What a page says, and how: language, zone, and the moment from which times are counted."""

    language: str
    zone: ZoneInfo
    now: datetime

    def t(self, key: str, **values: object) -> str:
        """The word of a key. Raises KeyError for a key that is none: a fault of ours."""
        word = all_words()[key][self.language]
        if isinstance(word, list):
            word = word[0 if values.get("n") == 1 else 1]
        shown = {name: self.number(value) if isinstance(value, int) else value for name, value in values.items()}
        return word.format(**shown) if values else word

    def number(self, value: float, digits: int = 0) -> str:
        """12 345,6 or 12,345.6."""
        text = f"{value:,d}" if isinstance(value, int) and digits == 0 else f"{value:,.{digits}f}"
        if self.language == "en":
            return text
        return text.replace(",", _NARROW).replace(".", ",")

    def money(self, value: float) -> str:
        """US dollars, with as many digits as small sums need."""
        return f"${self.number(value, 2 if value == 0 or value >= 0.1 else 4)}"

    def duration(self, value: float | timedelta | None) -> str:
        """Two units at most: 42 s, 3 min 12 s, 2 t 5 min, 3 d 4 t. Never negative."""
        if value is None:
            return ""
        seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
        if 0 < seconds < 1:
            return f"{seconds * 1000:.0f}{_NARROW}ms"
        if 0 < seconds < 10:
            return f"{self.number(seconds, 1)}{_NARROW}s"
        whole = max(0, round(seconds))
        units = ((86400, "d"), (3600, _HOUR[self.language]), (60, "min"), (1, "s"))
        for (size, unit), (smaller, next_unit) in itertools.pairwise(units):
            if whole >= size:
                rest = whole % size // smaller
                return f"{whole // size}{_NARROW}{unit}" + (f" {rest}{_NARROW}{next_unit}" if rest else "")
        return f"{whole}{_NARROW}s"

    def time(self, at: datetime | None) -> Markup:
        """A moment: the hour today, else with the date; UTC in the attribute, all of it in the title."""
        if at is None:
            return Markup("")
        local, today = at.astimezone(self.zone), self.now.astimezone(self.zone)
        text = f"{local:%H:%M:%S}" if local.date() == today.date() else f"{self.day(local)} {local:%H:%M}"
        return self._stamp(at, text)

    def ago(self, at: datetime | None) -> Markup:
        """How long ago a moment was, or in how long it comes."""
        if at is None:
            return Markup("")
        seconds = (self.now - at).total_seconds()
        key = "time.ago" if seconds >= 0 else "time.ahead"
        return self._stamp(at, self.t(key, span=self.duration(round(abs(seconds)))))

    def day(self, at: date) -> str:
        """28. nov., with the year where it is another one than this."""
        today = self.now.astimezone(self.zone)
        month = _MONTHS[self.language][at.month - 1]
        text = f"{at.day}. {month}" if self.language == "nb" else f"{at.day} {month}"
        return text if at.year == today.year else f"{text} {at.year}"

    def _stamp(self, at: datetime, text: str) -> Markup:
        machine = f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        whole = f"{at.astimezone(self.zone):%Y-%m-%d %H:%M:%S %Z}"
        return Markup('<time datetime="{}" title="{}">{}</time>').format(machine, whole, text)
