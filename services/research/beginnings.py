"""How a pattern's matches can begin, so that a line is held against the few patterns that may fit it.

Made for the patterns of wordings.py: what is not understood may be anything, which costs time and nothing else.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from openrouter_client.pattern_parts import alternatives, elements, may_be_absent

LENGTH = 5  # letters of a beginning
_DIGITS = frozenset("0123456789")


@dataclass
class _Beginnings:
    """Of a part of a pattern: all that it fits and is short, and how the rest begins."""

    whole: set[str] = field(default_factory=set)
    cut: set[str] = field(default_factory=set)

    def add(self, other: "_Beginnings") -> None:
        self.whole |= other.whole
        self.cut |= other.cut


def beginnings(pattern: str) -> frozenset[str]:
    """Whatever the pattern fits begins with one of these; an empty one means anything."""
    found = _of_pattern(pattern)
    return frozenset(found.whole | found.cut)


def _of_pattern(pattern: str) -> _Beginnings:
    found = _Beginnings()
    for alternative in alternatives(pattern):
        found.add(_of_sequence(alternative))
    return found


def _of_sequence(pattern: str) -> _Beginnings:
    found = _Beginnings({""})
    for element, quantifier in elements(pattern):
        longer = _joined(found.whole, _of_element(element))
        found.cut |= longer.cut
        if quantifier not in ("", "?"):  # it may stand there again
            found.cut |= longer.whole
            longer.whole.clear()
        found.whole = longer.whole | found.whole if may_be_absent(quantifier) else longer.whole
        if not found.whole:
            break
    return found


def _joined(begun: Iterable[str], following: _Beginnings) -> _Beginnings:
    found = _Beginnings()
    for start in begun:
        for end in following.whole:
            joined = start + end
            (found.whole if len(joined) < LENGTH else found.cut).add(joined[:LENGTH])
        found.cut |= {(start + end)[:LENGTH] for end in following.cut}
    return found


def _of_element(element: str) -> _Beginnings:
    if element.startswith("(?:"):
        return _of_pattern(element[3:-1])
    if element == r"\d":
        return _Beginnings(set(_DIGITS))
    if element[0] == "\\" and not element[1].isalnum():
        return _Beginnings({element[1]})
    return _Beginnings(cut={""}) if element[0] in ".[^$(\\" else _Beginnings({element})
