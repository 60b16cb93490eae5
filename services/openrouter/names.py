"""People: a name counts when it was said in the transcript, or is known beforehand.

A recognizer misspells names, so a word of the transcript may differ from a name's by a letter, by two in a long one.
All words of a name have to stand close together: a surname that nobody said is an invention, however likely.
"""

import re
import unicodedata
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from openrouter_client.language import is_small_word
from openrouter_client.prose import Prose
from openrouter_client.quotes import changes_between
from services.openrouter.answers import PersonAnswer
from services.openrouter.payload import Hints
from services.openrouter.transcript import Transcript

_NAME = re.compile(r"\b[A-ZÆØÅÄÖÉ][\w'’-]+(?:[ \u00a0]+[A-ZÆØÅÄÖÉ][\w'’-]+)+")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
LONGEST_NAME, LONGEST_ROLE = 80, 120
MOST_MENTIONS = 50
MOST_PEOPLE = 20
_CLOSE = 2  # other words that may stand between two words of a name


@dataclass(frozen=True)
class Person:
    """`is_known`: from the payload. `mentions` are segments in which the name is said."""

    name: str
    role: str | None
    is_guest: bool
    is_known: bool
    mentions: tuple[int, ...]


class Names:
    """The words of a transcript, and where they stand."""

    def __init__(self, transcript: Transcript, hints: Hints) -> None:
        self._transcript = transcript
        self._known = {_folded(name): name for name in (*hints.hosts, *hints.guests)}
        self._hosts = {_folded(name) for name in hints.hosts}
        self._places = array("I")
        self._words: dict[str, array[int]] = {}
        for number, word in enumerate(_WORD.finditer(transcript.text)):
            self._places.append(word.start())
            folded = _folded(word.group()[: 2 * LONGEST_NAME])
            if folded not in self._words:
                self._words[folded] = array("I")
            self._words[folded].append(number)

    def mentions(self, name: str) -> list[int]:
        """The segments in which a name is said, in full."""
        words = [_folded(word) for word in _WORD.findall(name)]
        if not words or max(map(len, words)) < 2:
            return []
        spots = [sorted(self._alike(word)) for word in words]
        found = (spot for spot in spots[0] if _stand_together(spot, spots[1:]))
        return sorted({self._transcript.segment_at(self._places[spot]) for spot in found})

    def is_grounded(self, name: str) -> bool:
        """Whether a name was said, or is known."""
        return self._known_as(name) is not None or bool(self.mentions(name))

    def people(self, answers: Iterable[PersonAnswer], prose: Prose, dropped: Counter[str]) -> list[Person]:
        """The people that hold, each once; what is known beforehand decides spelling and who is host."""
        found: dict[str, Person] = {}
        for answer in answers:
            name = prose.line(answer.name, LONGEST_NAME)
            known = self._known_as(name)
            mentions = self.mentions(known or name)
            if not name or (known is None and not mentions):
                dropped["name_not_said" if name else "no_name"] += 1
                continue
            key = _folded(known or name)
            if key in found or len(found) == MOST_PEOPLE:
                dropped["twice" if key in found else "too_many"] += 1
                continue
            role = prose.line(answer.role or "", LONGEST_ROLE) or None
            is_guest = answer.is_guest and key not in self._hosts
            found[key] = Person(known or name, role, is_guest, known is not None, tuple(mentions[:MOST_MENTIONS]))
        return list(found.values())

    def _known_as(self, name: str) -> str | None:
        folded = _folded(name)
        whole = [given for key, given in self._known.items() if _is_alike(key, folded)]
        if whole or " " in folded:
            return next(iter(whole), None)
        having = [given for key, given in self._known.items() if folded in key.split()]  # a first name alone
        return having[0] if len(having) == 1 else None

    def _alike(self, word: str) -> Iterable[int]:
        return {spot for other, spots in self._words.items() if _is_alike(word, other) for spot in spots}


def names_in(text: str) -> list[str]:
    """Names of two words or more, each once. A small word that begins a sentence is no part of one."""
    found = (name.split() for name in _NAME.findall(text))
    names = (words[1:] if is_small_word(words[0]) else words for words in found)
    return list(dict.fromkeys(" ".join(words) for words in names if len(words) > 1))


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _is_alike(name: str, other: str) -> bool:
    allowed = len(name) // 5 if len(name) < 15 else 3
    if abs(len(name) - len(other)) > allowed:
        return False
    return name == other or (allowed > 0 and changes_between(name, other) <= allowed)


def _stand_together(spot: int, others: Iterable[Sequence[int]]) -> bool:
    for spots in others:
        following = _next(spots, spot)
        if following is None:
            return False
        spot = following
    return True


def _next(spots: Sequence[int], after: int) -> int | None:
    index = bisect_right(spots, after)
    return spots[index] if index < len(spots) and spots[index] - after <= 1 + _CLOSE else None
