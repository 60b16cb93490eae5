"""Takes regular expressions apart, so that each is tried only on texts that it may fit.

A search for a fixed word takes a hundredth of the time of a search for a pattern. Made for patterns as they are written
here: what is not understood needs no word, which costs time and nothing else.
"""

import re
from collections.abc import Iterator
from itertools import starmap

Needs = tuple[frozenset[str], ...]
_QUANTIFIER = re.compile(r"(?:[?*+]|\{(?P<least>\d*)(?:,\d*)?\})[?+]?")
_SIGN_LETTERS = 4  # a / or @ is as rare as a word of so many letters
_SPECIAL = frozenset("\\.[]()|^$*+?{}")
# Letters that a search without regard to case takes for i, and that casefold() does not make one.
_LETTERS_I = ("ı", "i"), ("İ", "i")


def fold_case(text: str) -> str:
    """The text as the words of `needed()` are looked for in it. Line breaks stay what they are."""
    folded = text.casefold()
    if not folded.isascii():
        for letter, plain in _LETTERS_I:
            folded = folded.replace(letter.casefold(), plain)
    return folded


def holds(needs: Needs, folded: str) -> bool:
    """Whether a folded text holds what a pattern needs."""
    for words in needs:
        for word in words:
            if word in folded:
                break
        else:
            return False
    return True


def needed(pattern: str) -> Needs:
    """Sets of words: whatever the pattern fits, with or without regard to case, holds one of each set.

    The set with the longest words comes first: it is the likeliest to be missing. A sign is as rare as a long word.
    """
    parts = alternatives(pattern)
    if len(parts) > 1:
        best = [needed(part)[:1] for part in parts]
        return (frozenset(word for sets in best for words in sets for word in words),) if all(best) else ()
    found: list[frozenset[str]] = []
    run = ""
    for element, quantifier in elements(pattern):
        least = 1 if quantifier == "" else _least(quantifier)
        literal = _literal(element) if least else ""
        run += literal
        if literal and not quantifier:
            continue
        if run:
            found.append(frozenset((fold_case(run),)))
            run = ""
        if least and element.startswith("(?:"):
            found += needed(element[3:-1])
    if run:
        found.append(frozenset((fold_case(run),)))
    told = [words for words in found if words != {" "}]
    return tuple(sorted(told, key=lambda words: -min(map(_rarity, words))))


def _rarity(word: str) -> int:
    return len(word) if any(map(str.isalpha, word)) else max(len(word), _SIGN_LETTERS)


def alternatives(pattern: str) -> list[str]:
    """The parts between the |s that stand in no group."""
    parts, start, position = [], 0, 0
    while position < len(pattern):
        if pattern[position] == "|":
            parts.append(pattern[start:position])
            start = position = position + 1
        else:
            position = _end_of_element(pattern, position)
    return [*parts, pattern[start:]]


def elements(pattern: str) -> Iterator[tuple[str, str]]:
    """Each letter, class, escape or group of a pattern without |s of its own, and its quantifier, empty for none."""
    position = 0
    while position < len(pattern):
        end = _end_of_element(pattern, position)
        quantifier = _QUANTIFIER.match(pattern, end)
        yield pattern[position:end], quantifier.group() if quantifier else ""
        position = quantifier.end() if quantifier else end


def needs_digit(pattern: str) -> bool:
    """Whether whatever the pattern fits holds a digit that `\\d` stands for."""
    return all(any(starmap(_is_digit, elements(part))) for part in alternatives(pattern))


def _is_digit(element: str, quantifier: str) -> bool:
    if may_be_absent(quantifier):
        return False
    return element == r"\d" or (element.startswith("(?:") and needs_digit(element[3:-1]))


def may_be_absent(quantifier: str) -> bool:
    """Whether an element with this quantifier fits nothing, too."""
    return quantifier != "" and _least(quantifier) == 0


def _least(quantifier: str) -> int:
    if quantifier[0] in "?*":
        return 0
    return 1 if quantifier[0] == "+" else int("0" + quantifier[1:].split(",")[0].rstrip("}?+"))


def _literal(element: str) -> str:
    """The letter or sign that an element stands for, or nothing."""
    if element[0] == "\\":
        return "" if element[1].isalnum() else element[1]
    return element if element not in _SPECIAL and len(element) == 1 else ""


def _end_of_element(pattern: str, position: int) -> int:
    sign = pattern[position]
    if sign == "\\":
        return position + 2
    if sign == "[":
        return _end_of_class(pattern, position)
    if sign != "(":
        return position + 1
    position += 1
    while position < len(pattern) and pattern[position] != ")":
        position = _end_of_element(pattern, position)
    return position + 1


def _end_of_class(pattern: str, position: int) -> int:
    position += 2 if pattern[position + 1 : position + 2] == "^" else 1
    if pattern[position : position + 1] == "]":
        position += 1
    while position < len(pattern) and pattern[position] != "]":
        position += 2 if pattern[position] == "\\" else 1
    return position + 1
