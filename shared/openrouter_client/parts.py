"""Material in numbered pieces: how much of it goes into one question, and which piece a model means."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

MOST_PART_TOKENS = 40_000  # a model overlooks what stands in the middle of more
_LONGEST_REFERENCE = 40  # characters that are looked at
_REFERENCE = re.compile(r"\W*(?:([^\W\d_])\s*)?(\d{1,7})\W*")
T = TypeVar("T")


def part_tokens(sizes: Sequence[int], room: int) -> int:
    """What a part may hold at most, so that each fits the room and all are of about the same size."""
    room = min(room, MOST_PART_TOKENS)
    total = sum(sizes)
    return min(room, -(-total // -(-total // room)) + max(sizes)) if total else room


def grouped(items: Iterable[T], size: Callable[[T], int], most: int) -> list[list[T]]:
    """Neighbours that fit together, at least one in a group."""
    groups: list[list[T]] = [[]]
    held = 0
    for item in items:
        own = size(item)
        if groups[-1] and held + own > most:
            groups.append([])
            held = 0
        groups[-1].append(item)
        held += own
    return groups


def named(reference: object, items: Sequence[T], letter: str) -> T | None:
    """The item that is meant by B7, 7 or [b7], where items count from 1 and their letter is B."""
    found = _REFERENCE.fullmatch(str(reference)[:_LONGEST_REFERENCE]) if isinstance(reference, str | int) else None
    if found is None or (found[1] or letter).upper() != letter:
        return None
    number = int(found[2])
    return items[number - 1] if 1 <= number <= len(items) else None
