"""Tells of a single word, and remembers, which wordings a line that holds it may have."""

from collections.abc import Iterable

_MOST_WORDS = 20_000  # that are remembered: more than one paste of a megabyte repeats
_START = 3  # letters by which pieces are looked up


class Hints(dict[str, int]):
    """Word -> the numbers of what it hints at, as bits.

    A word hints at what needs it, or a piece of it. Of several words with blanks between, the longest is the hint.
    """

    def __init__(self, needed_words: Iterable[tuple[int, Iterable[str]]]) -> None:
        super().__init__()
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
            return 0  # a table has more of them than are worth remembering
        if len(self) >= _MOST_WORDS:
            self.clear()
        self[word] = bits = self._of_short(word) | self._of_long(word)
        return bits

    def _of_short(self, word: str) -> int:
        return _joined(bits for piece, bits in self._short if piece in word)

    def _of_long(self, word: str) -> int:
        return _joined(
            bits
            for start in range(len(word) - _START + 1)
            for piece, bits in self._by_start.get(word[start : start + _START], ())
            if word.startswith(piece, start)
        )


def _joined(bits: Iterable[int]) -> int:
    joined = 0
    for one in bits:
        joined |= one
    return joined
