"""Tells of a single word, and remembers, which wordings a line that holds it may have."""

import re
from collections.abc import Iterable
from functools import reduce
from operator import or_

_MOST_WORDS = 20_000  # that are remembered: more than one paste of a megabyte repeats
_START = 3  # letters by which pieces are looked up
_DIGIT = re.compile(r"\d")


class Hints(dict[str, int]):
    """Word -> the numbers of what it hints at, as bits.

    A word hints at what needs it, or a piece of it. Of several words with blanks between, the longest is the hint.
    `by_digits`: what any digit hints at.
    """

    def __init__(self, needed_words: Iterable[tuple[int, Iterable[str]]], by_digits: int = 0) -> None:
        super().__init__()
        self._by_digits = by_digits
        pieces: dict[str, int] = {}
        for number, words in needed_words:
            for piece in (max(word.split(" "), key=len) for word in words):
                pieces[piece] = pieces.get(piece, 0) | 1 << number
        self._has_numbers = any(map(str.isdecimal, pieces))
        self._short = [(piece, bits) for piece, bits in pieces.items() if len(piece) < _START]
        self._by_start: dict[str, list[tuple[str, int]]] = {}
        for piece, bits in pieces.items():
            if len(piece) >= _START:
                self._by_start.setdefault(piece[:_START], []).append((piece, bits))

    def __missing__(self, word: str) -> int:
        if word.isdecimal() and not self._has_numbers:
            return self._by_digits  # a table has more of them than are worth remembering
        if len(self) >= _MOST_WORDS:
            self.clear()
        of_digits = self._by_digits if _DIGIT.search(word) else 0
        self[word] = bits = of_digits | self._of_short(word) | self._of_long(word)
        return bits

    def _of_short(self, word: str) -> int:
        return reduce(or_, (bits for piece, bits in self._short if piece in word), 0)

    def _of_long(self, word: str) -> int:
        found = (
            bits
            for start in range(len(word) - _START + 1)
            for piece, bits in self._by_start.get(word[start : start + _START], ())
            if word.startswith(piece, start)
        )
        return reduce(or_, found, 0)
