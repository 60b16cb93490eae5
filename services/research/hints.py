"""Tells of a single word, and remembers, whether a line that holds it may be worded as a page's own lines are."""

from collections.abc import Iterable

_MOST_WORDS = 20_000  # that are remembered: more than one paste of a megabyte repeats
_START = 3  # letters by which pieces are looked up


class Hints(dict[str, bool]):
    """Word -> whether it holds one of the words that patterns need, or a piece of one that has blanks inside."""

    def __init__(self, needed_words: Iterable[str]) -> None:
        super().__init__()
        pieces = {max(words.split(" "), key=len) for words in needed_words}
        self._has_numbers = any(map(str.isdecimal, pieces))
        self._short = [piece for piece in pieces if len(piece) < _START]
        self._by_start: dict[str, list[str]] = {}
        for piece in pieces:
            if len(piece) >= _START:
                self._by_start.setdefault(piece[:_START], []).append(piece)

    def __missing__(self, word: str) -> bool:
        if word.isdecimal() and not self._has_numbers:
            return False  # a table has more of them than are worth remembering
        if len(self) >= _MOST_WORDS:
            self.clear()
        self[word] = told = self._holds_short(word) or self._holds_long(word)
        return told

    def _holds_short(self, word: str) -> bool:
        return any(piece in word for piece in self._short)

    def _holds_long(self, word: str) -> bool:
        for start in range(len(word) - _START + 1):
            for piece in self._by_start.get(word[start : start + _START], ()):
                if word.startswith(piece, start):
                    return True
        return False
