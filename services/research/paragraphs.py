"""Numbered paragraphs: what a model sees of a clip, and what it refers to."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from services.research.paste import Clip
from services.research.questions import tokens

MOST_LETTERS = 3000  # of a paragraph; a longer one gets several numbers
MOST_PART_TOKENS = 40_000  # a model overlooks what stands in the middle of more
_REFERENCE = re.compile(r"\W*[Pp]?\s*(\d{1,7})\W*")


@dataclass(frozen=True)
class Paragraph:
    """`clean_text[start:end]`. Numbers count from 1."""

    number: int
    start: int
    end: int
    line: str  # as a model sees it: the number, then the words on one line

    @property
    def tokens(self) -> int:
        return tokens(self.line) + 1


def number_paragraphs(clip: Clip) -> list[Paragraph]:
    """All that the clip's text says, in order."""
    text = clip["clean_text"]
    found: list[Paragraph] = []
    for block in clip["blocks"]:
        for start, end in _pieces(text, block["start"], block["end"]):
            if words := " ".join(text[start:end].split()):
                number = len(found) + 1
                found.append(Paragraph(number, start, end, f"P{number} {words}"))
    return found


def find_paragraph(reference: str | int, paragraphs: Sequence[Paragraph]) -> Paragraph | None:
    """The paragraph that is meant by P7, 7 or [p7]."""
    match = _REFERENCE.fullmatch(str(reference)[:40])
    number = int(match[1]) if match else 0
    return paragraphs[number - 1] if 1 <= number <= len(paragraphs) else None


def divide(paragraphs: Sequence[Paragraph], room: int) -> list[Sequence[Paragraph]]:
    """Parts that fit the room, of about the same size; together they are the paragraphs, in order."""
    room = min(room, MOST_PART_TOKENS)
    total = sum(paragraph.tokens for paragraph in paragraphs)
    target = min(room, -(-total // -(-total // room)) + max(paragraph.tokens for paragraph in paragraphs))
    parts: list[list[Paragraph]] = [[]]
    size = 0
    for paragraph in paragraphs:
        if parts[-1] and size + paragraph.tokens > target:
            parts.append([])
            size = 0
        parts[-1].append(paragraph)
        size += paragraph.tokens
    return list(parts)


def _pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A block, or pieces of a long one, each ending with a sentence or at least a word where there is one."""
    while end - start > MOST_LETTERS:
        least, most = start + MOST_LETTERS // 2, start + MOST_LETTERS
        cuts = (text.rfind(sign, least, most) for sign in (". ", " "))
        cut = next((place + 1 for place in cuts if place >= 0), most)
        yield start, cut
        start = cut
    yield start, end
