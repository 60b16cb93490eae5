"""Finds what a model quotes in the text that it quotes from, so that the text's own words can be stored.

Both sides are folded: case, accents written apart, punctuation, quotes, dashes, invisible letters and spacing do not
count. Found like that, a quote is `exact`. Else the place that differs least is looked for, by the number of letters
to change: a slip is `repaired`, an invention is found nowhere. Positions are code points of the source.
"""

import io
import unicodedata
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

LEAST_LETTERS = 20  # folded; a shorter quote stands in many places
LEAST_WORDS = 4  # for a repair
MOST_LETTERS = 1000
MOST_CHANGES = 0.08  # of the quote's letters
LONGEST_FOLD = 3  # letters that one becomes; a few stand for a whole sentence
_CLOSING = ".!?…"
_SIGNS = "%‰§#°"
_UNITS = "%‰§°"  # these may stand apart from their number
_DASHES = "-\u2010\u2011\u2012\u2013\u2212"
_POINTS = ".,:/"  # between two digits
_SKIPPED = "'’‘`´"  # inside a word in one spelling, absent in another

Match = Literal["exact", "repaired"]


@dataclass(frozen=True)
class Span:
    """A slice of the source: `source[start:end]`."""

    start: int
    end: int
    match: Match


class Folded:
    """A text made ready to be searched; for a long one, made once."""

    def __init__(self, text: str) -> None:
        self.source = text
        letters = io.StringIO()  # not a list: of letters beyond Latin-1, each would be an object of its own
        letters.write(" ")
        self._starts, self._ends = array("I", [0]), array("I", [0])
        before = " "
        for start, end, folded in _clusters(text):
            if folded == before == " ":
                continue
            before = folded
            letters.write(folded)
            for _ in folded:
                self._starts.append(start)
                self._ends.append(end)
        if before != " ":
            letters.write(" ")
            self._starts.append(len(text))
            self._ends.append(len(text))
        self.text = letters.getvalue()  # one blank before, between and after words

    def window(self, start: int, end: int) -> tuple[int, int]:
        """The folded letters of a slice of the source."""
        return bisect_left(self._starts, start), bisect_left(self._starts, end) + 1

    def span(self, start: int, end: int, match: Match) -> Span:
        """The slice of the source that folded letters stand for, with the sign that closes the sentence."""
        while start < end and self.text[start] == " ":
            start += 1
        while end > start and self.text[end - 1] == " ":
            end -= 1
        first, last = _whole_terms(self.source, self._starts[start], self._ends[end - 1])
        while last < len(self.source) and self.source[last] in _CLOSING:
            last += 1
        return Span(first, last, match)


def locate(quote: str, source: Folded, near: tuple[int, int] | None = None) -> Span | None:
    """Where a quote stands; None where it does not, or is too short to tell.

    Args:
        near: the slice of the source that the quote is said to stand in. There it may differ a little; elsewhere it
            must stand as it is. Without it, it may differ everywhere.
    """
    wanted = Folded(quote[: 4 * MOST_LETTERS]).text
    if not LEAST_LETTERS <= len(wanted) - 2 <= MOST_LETTERS:
        return None
    low, high = source.window(*near) if near else (0, len(source.text))
    for start, end in ((max(0, low - 1), high), (0, len(source.text))):
        found = source.text.find(wanted, start, end)
        if found >= 0:
            return source.span(found, found + len(wanted), "exact")
    if wanted.count(" ") - 1 < LEAST_WORDS:
        return None
    place = _nearest(wanted.strip(), source.text, max(0, low - 1), high)
    return source.span(*place, "repaired") if place else None


def changes_between(one: str, other: str) -> int:
    """The letters to change, add or leave out that make one text the other."""
    rows = list(range(len(other) + 1))
    for number, letter in enumerate(one, start=1):
        diagonal, rows[0] = rows[0], number
        for column, letter_there in enumerate(other, start=1):
            change = diagonal + (letter != letter_there)
            diagonal, rows[column] = rows[column], min(rows[column] + 1, rows[column - 1] + 1, change)
    return rows[-1]


def _whole_terms(text: str, first: int, last: int) -> tuple[int, int]:
    """The slice with the signs that are part of what it begins and ends with: -25, 1,5, 50 %, § 12, C++.

    They were folded away, and without them another number stands there.
    """
    while first > 0 and _belongs(text[first - 1], text[first], text[first - 2 : first - 1]):
        first -= 1
    if first > 1 and text[first].isdigit() and text[first - 1].isspace() and _is_unit(text[first - 2]):
        first -= 2
    while last < len(text) and _belongs(text[last], text[last - 1], text[last + 1 : last + 2], is_after=True):
        last += 1
    if last + 1 < len(text) and text[last - 1].isdigit() and text[last].isspace() and _is_unit(text[last + 1]):
        last += 2
    return first, last


def _belongs(sign: str, inner: str, outer: str, *, is_after: bool = False) -> bool:
    """Whether a letter just outside of the slice is of one piece with the letter inside; `outer` is the one beyond."""
    if unicodedata.category(sign)[0] in "SM" or sign in _SIGNS or sign.isalnum():
        return True
    if sign in _DASHES and inner.isdigit() and not is_after:
        return True
    if sign in _DASHES:
        return inner.isalnum() and outer.isalnum()
    return sign in _POINTS and inner.isdigit() and outer.isdigit()


def _is_unit(sign: str) -> bool:
    return sign in _UNITS or unicodedata.category(sign) == "Sc"


def _clusters(text: str) -> Iterator[tuple[int, int, str]]:
    """Letters with what combines with them: start, end, folded. What is no letter or digit is one blank."""
    position, length = 0, len(text)
    while position < length:
        end = position + 1
        while end < length and text[end] > "\u02ff" and unicodedata.combining(text[end]):
            end += 1
        folded = _fold(text[position:end])
        if folded:
            yield position, end, folded
        position = end


@lru_cache(maxsize=4096)
def _fold(cluster: str) -> str:
    """The letters and digits of a cluster, "" where it is to be skipped, else a blank."""
    if cluster in _SKIPPED or unicodedata.category(cluster[0]) == "Cf":
        return ""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", cluster).casefold())
    return "".join(letter for letter in folded if letter.isalnum())[:LONGEST_FOLD] or " "


def _nearest(wanted: str, text: str, low: int, high: int) -> tuple[int, int] | None:
    """The part of `text[low:high]` that needs the fewest changes, from word to word; None where too many."""
    limit = int(len(wanted) * MOST_CHANGES)
    changes, last = _best_end(wanted, text[low:high])
    if changes > limit:
        return None
    end = low + last
    begin = max(low, end - len(wanted) - limit)
    _, length = _best_end(wanted[::-1], text[begin:end][::-1], is_anchored=True)
    start = end - length
    while start > 0 and text[start - 1] != " ":
        start -= 1
    while end < len(text) and text[end] != " ":
        end += 1
    return start, end


def _best_end(pattern: str, text: str, *, is_anchored: bool = False) -> tuple[int, int]:
    """The fewest changes that turn the pattern into a part of the text, and where the first such part ends.

    Myers' bit-parallel search: a column of the table of distances is two numbers of as many bits as the pattern has
    letters. Anchored, the part begins where the text does.
    """
    bits: dict[str, int] = {}
    for number, letter in enumerate(pattern):
        bits[letter] = bits.get(letter, 0) | 1 << number
    mask, top = (1 << len(pattern)) - 1, 1 << len(pattern) - 1
    rises, falls, changes = mask, 0, len(pattern)
    best = (changes, 0)
    for position, letter in enumerate(text, start=1):
        equal = bits.get(letter, 0)
        vertical = equal | falls
        horizontal = (((equal & rises) + rises) ^ rises) | equal
        up = falls | (~(horizontal | rises) & mask)
        down = rises & horizontal
        changes += bool(up & top) - bool(down & top)
        up = (up << 1 | is_anchored) & mask
        down = down << 1 & mask
        rises = down | (~(vertical | up) & mask)
        falls = up & vertical
        if changes < best[0]:
            best = (changes, position)
    return best
