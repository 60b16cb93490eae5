"""Numbers and dates in what a model says: each must stand in what it quotes, written in whatever way.

1 000, 1.000, 1,000 and 1000 are one number, 1,5 and 1.5 another; 1.5.2024, 1. mai 2024 and 2024-05-01 one date. A
number in figures needs figures: nothing is counted or reckoned here.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from services.research.dates import FoundDate, find_dates

_BLANK = r"[ \u00a0\u2009\u202f'’]"
_NUMBER = re.compile(
    rf"(?<![\d])(?:\d{{1,3}}(?:{_BLANK}\d{{3}})+(?!\d)(?:[.,]\d+)?|\d{{1,3}}(?:\.\d{{3}})+(?!\d)(?:,\d+)?"
    r"|\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+[.,:]\d+|\d+)"
)
_MINUS = re.compile(r"(?:(?<![\w%)])[-−]|\bminus )$", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+|[%‰½⅓⅔¼¾]")
_MOST_DIGITS = 40


def _values(rows: str, first: int = 1) -> dict[str, int]:
    return {name: number for number, names in enumerate(rows.split(";"), start=first) for name in names.split()}


# Words that are a number in one language and something else in another (to, fire) are left out.
_NUMBER_WORDS = {
    **_values("two; tre three; four; fem five; seks six; sju syv seven; åtte eight; nine; ten; elleve eleven", 2),
    **_values("tolv twelve; tretten thirteen; fjorten fourteen; femten fifteen; seksten sixteen; sytten seventeen", 12),
    **_values("atten eighteen; nitten nineteen; tjue twenty", 18),
    **_values("tretti thirty", 30), **_values("førti forty", 40), **_values("femti fifty", 50),
    **_values("seksti sixty", 60), **_values("sytti seventy", 70), **_values("åtti eighty", 80),
    **_values("nitti ninety", 90),
}  # fmt: skip
_SCALE_ROWS = (
    ("% prosent percent pst", {"%"}),
    ("‰ promille", {"‰"}),
    ("tusen thousand", {"10^3"}),
    ("million millionar millioner millions mill", {"10^6"}),
    ("milliard milliardar milliarder mrd", {"10^9"}),
    *((sign, {sign}) for sign in "½⅓⅔¼¾"),
    ("billion billionar billioner billions", {"10^9", "10^12"}),
)
_SCALES = {word: frozenset(meanings) for words, meanings in _SCALE_ROWS for word in words.split()}
_MONTHS = _values(
    "januar january; februar february; mars March; april; mai May; juni june; juli july; august; september; "
    "oktober october; november; desember december"
)
_DAYS = _values(
    "mandag måndag monday; tirsdag tysdag tuesday; onsdag wednesday; torsdag thursday; fredag friday; "
    "lørdag laurdag saturday; søndag sundag sunday"
)


@dataclass(frozen=True)
class Figures:
    """What a text says in figures, and in the words that stand for them."""

    dates: tuple[FoundDate, ...]
    numbers: tuple[frozenset[Decimal], ...]  # of each number outside of dates, what it can be read as
    words: tuple[frozenset[str], ...]  # of each word for a number, a scale, a month or a day, what it can mean

    def holds(self, other: "Figures") -> bool:
        """Whether all figures of the other text stand here, too."""
        known = frozenset().union(*self.numbers, *map(_parts, self.dates))
        meant = frozenset().union(*self.words, *map(_meanings, self.dates))
        in_words = {f"={number:f}" for number in known}
        return (
            all(any(_is_same(date, own) for own in self.dates) for date in other.dates)
            and all(readings & known for readings in other.numbers)
            and all(meanings & meant or meanings & in_words for meanings in other.words)
        )


def figures_in(text: str) -> Figures:
    """The figures of a text: a fact or a quote, of at most some hundred letters."""
    dates = find_dates(text, None)
    rest = text
    for date in dates:
        rest = rest[: date.start] + "§" * (date.end - date.start) + rest[date.end :]
    return Figures(tuple(dates), tuple(numbers_in(rest)), tuple(_words(rest)))


def numbers_in(text: str) -> Iterator[frozenset[Decimal]]:
    """What each number of a text can be read as."""
    for found in _NUMBER.finditer(text):
        sign = -1 if _MINUS.search(text, max(0, found.start() - 6), found.start()) else 1
        yield frozenset(sign * Decimal(reading) for reading in _readings(found.group()[:_MOST_DIGITS]))


def is_said(numbers: Iterable[frozenset[Decimal]], known: frozenset[Decimal]) -> bool:
    """Whether all numbers are among the known ones, without regard to their signs."""
    return all(any(abs(reading) in known for reading in readings) for readings in numbers)


def _readings(number: str) -> set[str]:
    number = re.sub(_BLANK, "", number).replace(":", ".").rstrip(".,")
    points, commas = number.count("."), number.count(",")
    if points and commas:  # the last one divides
        grouping = "." if number.rfind(",") > number.rfind(".") else ","
        return {number.replace(grouping, "").replace(",", ".")}
    if points + commas > 1:
        return {number.replace(".", "").replace(",", "")}
    plain = number.replace(",", ".")
    is_group = points + commas == 1 and re.fullmatch(r"[1-9]\d{0,2}\.\d{3}", plain) is not None
    return {plain, plain.replace(".", "")} if is_group else {plain}


def _words(text: str) -> Iterator[frozenset[str]]:
    for word in _WORD.findall(text):
        folded = word.casefold()
        if folded in _NUMBER_WORDS:
            yield frozenset({f"={_NUMBER_WORDS[folded]}"})
        elif folded in _SCALES:
            yield _SCALES[folded]
        elif month := _MONTHS.get(word) or _MONTHS.get(folded):
            yield frozenset({f"month {month}"})
        elif folded in _DAYS:
            yield frozenset({f"day {_DAYS[folded]}"})


def _parts(date: FoundDate) -> frozenset[Decimal]:
    numbers = {date.day.year, date.day.month} | (set() if date.is_month else {date.day.day})
    clock = {Decimal(date.clock.replace(":", "."))} if date.clock else set()
    return frozenset(map(Decimal, numbers)) | clock


def _meanings(date: FoundDate) -> frozenset[str]:
    return frozenset({f"month {date.day.month}"})


def _is_same(one: FoundDate, other: FoundDate) -> bool:
    if one.clock is not None and one.clock != other.clock:
        return False
    if one.is_month:
        return (one.day.year, one.day.month) == (other.day.year, other.day.month)
    return one.day == other.day and not other.is_month
