"""Finds dates as Norwegian and English pages write them, also relative to the moment of pasting."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta

_MONTHS = """
    januar january januari jan ođđajagemánnu; februar february februari feb guovvamánnu;
    mars march mar marts njukčamánnu;
    april apr cuoŋománnu; mai may maj miessemánnu; juni june jun geassemánnu; juli july jul suoidnemánnu;
    august aug augusti borgemánnu; september sept sep čakčamánnu; oktober october okt oct golggotmánnu;
    november nov skábmamánnu; desember december des dec juovlamánnu
"""
_WEEK = """
    mandag måndag monday mon man; tirsdag tysdag tuesday tue tir tys; onsdag wednesday wed ons;
    torsdag thursday thu tor; fredag friday fri fre; lørdag laurdag saturday sat lør lau; søndag sundag sunday sun søn
"""


def _numbers(rows: str, first: int) -> dict[str, int]:
    return {name: number for number, names in enumerate(rows.split(";"), start=first) for name in names.split()}


_MONTH, _DAYS = _numbers(_MONTHS, 1), _numbers(_WEEK, 0)
_NAMES = "|".join(sorted(_MONTH, key=len, reverse=True))
_DAY_NAMES = "|".join(sorted(_DAYS, key=len, reverse=True))
_CLOCK = (
    r"(?:,? ?(?:(?:kl(?:okken|okka|\.)?|at|-|–|den|klo)\.? ?)?(?P<hour>[01]?\d"
    r"|2[0-3])[.:](?P<minute>[0-5]\d)(?![\d.])(?::\d\d)?(?: ?(?P<half>am|pm))?)?"
)
_FORMS = tuple(
    re.compile(rf"(?<![\w.]){pattern}", re.IGNORECASE)
    for pattern in (
        r"(?P<year>(?:19|20)\d\d)-(?P<month>0[1-9]|1[0-2])-(?P<day>0[1-9]|[12]\d"
        r"|3[01])(?:[T ](?P<hour>[01]\d|2[0-3]):(?P<minute>[0-5]\d))?",
        rf"(?P<day>0?[1-9]|[12]\d|3[01])(?P<sign>[./])(?P<month>0?[1-9]|1[0-2])(?P=sign)(?P<year>(?:19"
        rf"|20)\d\d)(?!\d){_CLOCK}",
        rf"(?P<day>0[1-9]|[12]\d|3[01])\.(?P<month>0[1-9]|1[0-2])\.(?P<short>[0-4]\d)(?![\d.]){_CLOCK}",
        rf"(?P<day>0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th|\.)? ?(?P<name>{_NAMES})\.?,? (?P<year>(?:19"
        rf"|20)\d\d)(?!\d){_CLOCK}",
        rf"(?P<name>{_NAMES})\.? (?P<day>0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?,? (?P<year>(?:19|20)\d\d)(?!\d){_CLOCK}",
        rf"(?P<name>{_NAMES})\.? (?P<year>(?:19|20)\d\d)(?!\d)",
    )
)
_YEARLESS = re.compile(rf"(?<![\w.])(?P<day>0?[1-9]|[12]\d|3[01])\.? ?(?P<name>{_NAMES})\b\.?{_CLOCK}", re.IGNORECASE)
_RELATIVE = re.compile(
    rf"(?<!\w)(?:(?P<today>i dag|idag|today|odne)|(?P<yesterday>i går|igår|yesterday|ikte)|(?P<before>i "
    rf"forgårs|i førgår)){_CLOCK}(?!\w)",
    re.IGNORECASE,
)
_AGO = re.compile(
    r"(?<!\w)(?:for |om lag |ca\.? )?(?P<count>\d{1,3}|ei?n|et|eitt?|an?|one|to|two|tre|three) ?"
    r"(?P<unit>min(?:utt\w*|utes?|s)?|m|t(?:imer?|ima)?|time|h(?:ours?|r|rs)?|hour|d(?:ager?|agar|ays?"
    r"|øgn)?|dag|day|uker?|veker?|weeks?|måned(?:er)?|månad(?:er)?|months?)\.?"
    r"(?P<end> siden| sidan| ago| sia)?(?!\w)",
    re.IGNORECASE,
)
_WEEKDAY = re.compile(rf"(?<!\w)(?:på )?(?P<weekday>{_DAY_NAMES})\b\.?{_CLOCK}", re.IGNORECASE)
_SMALL = {
    "en": 1,
    "ein": 1,
    "et": 1,
    "eit": 1,
    "eitt": 1,
    "a": 1,
    "an": 1,
    "one": 1,
    "to": 2,
    "two": 2,
    "tre": 3,
    "three": 3,
}
_SECONDS = {"m": 60, "t": 3600, "h": 3600, "d": 86400, "u": 604800, "v": 604800, "w": 604800}
_UPDATED = (
    r"sist (?:oppdatert|endret|endra|redigert|revidert|gjennomgått)|(?:last )?(?:updated|modified|edited"
    r"|reviewed)(?: on)?|oppdatert|ajourført|endret|endra|redigert"
)
_PUBLISHED = (
    r"publisert|publiserte|publicerad|publiceret|offentliggjort|almmuhuvvon|first published|published(?: on)?"
    r"|posted(?: on)?|lagt ut|lagd ut|opprettet|oppretta|dato|date|sendt|sent|skrevet|skrive|innlagt|kunngjort"
    r"|written"
)
_LABEL = re.compile(rf"(?:(?P<updated>{_UPDATED})|(?P<published>{_PUBLISHED}))\b\W{{0,3}}", re.IGNORECASE)
_REST = re.compile(
    rf"(?<!\w)(?:{_UPDATED}|{_PUBLISHED}|{_DAY_NAMES}|kl|klokken|klokka|den|on|at|av|by|bst|gmt|cet|cest"
    rf"|utc|est|edt|pst|denne|siden|sida|artikkelen|ble|blei|vart|neste|next|oppdatering|[ap]m|og|and"
    rf"|i)(?!\w)|\d{{1,2}}[.:]\d\d|[^\w]|_",
    re.IGNORECASE,
)
_LOOK_BACK = 40
_LONGEST = 200
_FARTHEST = 1000  # characters of a line that are looked at


@dataclass(frozen=True)
class FoundDate:
    """A date in a line: `start` and `end` in it, and what the line says that it is."""

    start: int
    end: int
    day: date
    clock: str | None  # HH:MM
    label: str | None  # published, updated
    is_relative: bool = False
    is_month: bool = False  # the day is not given

    @property
    def iso(self) -> str:
        """ISO 8601, as exact as the text is."""
        if self.is_month:
            return f"{self.day:%Y-%m}"
        return f"{self.day.isoformat()}T{self.clock}" if self.clock else self.day.isoformat()


def find_dates(text: str, base: datetime | None, *, takes_loose: bool = False) -> list[FoundDate]:
    """Dates in a text; `takes_loose`: also 3 t, Monday and 3 March, which mean a date only on a line of their own."""
    text = text[:_FARTHEST]
    found: list[FoundDate] = []
    for form in _FORMS:
        for match in form.finditer(text):
            if (day := _day(match)) and not _overlaps(found, match):
                found.append(_found(match, text, day, is_month="day" not in match.groupdict()))
    if base is not None:
        found += [
            one
            for one in _relative(text, base, takes_loose=takes_loose)
            if not any(o.start <= one.start < o.end for o in found)
        ]
    return sorted(found, key=lambda one: one.start)


def is_date_line(text: str, found: list[FoundDate]) -> bool:
    """Whether a line says nothing but when something was published."""
    if not found or len(text) > _LONGEST:
        return False
    rest = text
    for one in reversed(found):
        rest = f"{rest[: one.start]} {rest[one.end :]}"
    left = _REST.sub("", rest)
    has_label = any(one.label for one in found)
    return len(left) <= (12 if has_label else 3)


def _relative(text: str, base: datetime, *, takes_loose: bool) -> Iterator[FoundDate]:
    for match in _RELATIVE.finditer(text):
        back = 0 if match.group("today") else 1 if match.group("yesterday") else 2
        yield _found(match, text, base.date() - timedelta(days=back), is_relative=True)
    for match in _AGO.finditer(text):
        if match.group("end") or (takes_loose and match.group() == text.strip(" ·•-")) or (takes_loose and "·" in text):
            yield _found(match, text, (base - _span(match)).date(), is_relative=True)
    if not takes_loose:
        return
    for match in _YEARLESS.finditer(text):
        day = _day(match, base.year)
        if day is not None and day > base.date() + timedelta(days=1):
            day = _day(match, base.year - 1)
        if day is not None:
            yield _found(match, text, day, is_relative=True)
            return
    for match in _WEEKDAY.finditer(text):
        back = (base.weekday() - _DAYS[match.group("weekday").lower()]) % 7
        yield _found(match, text, base.date() - timedelta(days=back), is_relative=True)


def _span(match: re.Match[str]) -> timedelta:
    count, unit = match.group("count").lower(), match.group("unit").lower()
    number = _SMALL.get(count) or int(count if count.isdigit() else 1)
    if unit.startswith(("mån", "mon")):
        return timedelta(days=30 * number)
    return timedelta(seconds=_SECONDS[unit[0]] * number)


def _day(match: re.Match[str], year: int | None = None) -> date | None:
    parts = match.groupdict()
    month = int(parts["month"]) if parts.get("month") else _MONTH[parts["name"].lower()]
    try:
        return date(
            year or (2000 + int(parts["short"]) if parts.get("short") else int(parts["year"])),
            month,
            int(parts.get("day") or 1),
        )
    except ValueError:
        return None


def _found(
    match: re.Match[str], text: str, day: date, *, is_relative: bool = False, is_month: bool = False
) -> FoundDate:
    parts = match.groupdict()
    clock = None
    if parts.get("hour"):
        hour = (
            int(parts["hour"]) % 12 + (12 if (parts["half"] or "").lower() == "pm" else 0)
            if parts.get("half")
            else int(parts["hour"])
        )
        clock = f"{hour:02}:{parts['minute']}"
    before = text[max(0, match.start() - _LOOK_BACK) : match.start()]
    labels = list(_LABEL.finditer(before))
    label = None
    if labels:
        label = "updated" if labels[-1].group("updated") else "published"
    return FoundDate(match.start(), match.end(), day, clock, label, is_relative, is_month)


def _overlaps(found: list[FoundDate], match: re.Match[str]) -> bool:
    return any(one.start < match.end() and match.start() < one.end for one in found)
