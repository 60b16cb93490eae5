"""Which letters a pattern's matches can begin with, so that a line is held against the few patterns that may fit it.

Made for the patterns of wordings.py: what is not understood counts as any letter, which costs time and nothing else.
"""

ANY = None
Letters = frozenset[str] | None
_DIGITS = frozenset("0123456789")


def first_letters(pattern: str) -> Letters:
    """The letters, or ANY."""
    found: set[str] = set()
    for alternative in alternatives(pattern):
        letters = _of_sequence(alternative)
        if letters is ANY:
            return ANY
        found |= letters
    return frozenset(found)


def alternatives(pattern: str) -> list[str]:
    """The parts between the |s that stand in no group."""
    parts, depth, start, position = [], 0, 0, 0
    while position < len(pattern):
        sign = pattern[position]
        if sign == "\\":
            position += 1
        elif sign == "[":
            position = _end_of_class(pattern, position)
        elif sign == "(":
            depth += 1
        elif sign == ")":
            depth -= 1
        elif sign == "|" and depth == 0:
            parts.append(pattern[start:position])
            start = position + 1
        position += 1
    return [*parts, pattern[start:]]


def _of_sequence(pattern: str) -> Letters:
    found: set[str] = set()
    position = 0
    while position < len(pattern):
        letters, end = _of_element(pattern, position)
        if letters is ANY:
            return ANY
        found |= letters
        rest = pattern[end:]
        if not rest.startswith(("?", "*", "{0")):
            return frozenset(found)
        position = end + (rest.index("}") + 1 if rest[0] == "{" else 1)
    return ANY  # it may be empty


def _of_element(pattern: str, position: int) -> tuple[Letters, int]:
    """The letters of one element, and where it ends."""
    sign = pattern[position]
    if sign == "(":
        end = _end_of_group(pattern, position)
        inner = pattern[position + 1 : end - 1]
        return (first_letters(inner[2:]) if inner.startswith("?:") else ANY), end
    if sign == "\\":
        following = pattern[position + 1]
        if following == "d":
            return _DIGITS, position + 2
        return (ANY if following.isalpha() else frozenset(following)), position + 2
    if sign in ".[^$":
        return ANY, position + 1
    return frozenset(sign), position + 1


def _end_of_group(pattern: str, position: int) -> int:
    depth = 0
    while position < len(pattern):
        sign = pattern[position]
        if sign == "\\":
            position += 1
        elif sign == "[":
            position = _end_of_class(pattern, position)
        elif sign == "(":
            depth += 1
        elif sign == ")":
            depth -= 1
            if depth == 0:
                return position + 1
        position += 1
    return position


def _end_of_class(pattern: str, position: int) -> int:
    position += 1
    if pattern[position : position + 1] == "^":
        position += 1
    if pattern[position : position + 1] == "]":
        position += 1
    while position < len(pattern) and pattern[position] != "]":
        position += 2 if pattern[position] == "\\" else 1
    return position
