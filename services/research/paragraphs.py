"""Numbered paragraphs: what a model sees of a clip, and what it refers to."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from openrouter_client.parts import grouped, named, part_tokens
from services.research.paste import Clip
from services.research.questions import tokens

MOST_LETTERS = 3000  # of a paragraph; a longer one gets several numbers


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
    """The paragraph that a model's answer names, if there is one."""
    return named(reference, paragraphs, "P")


def divide(paragraphs: Sequence[Paragraph], room: int) -> list[list[Paragraph]]:
    """Parts that fit the room, of about the same size; together they are the paragraphs, in order."""
    most = part_tokens([paragraph.tokens for paragraph in paragraphs], room)
    return grouped(paragraphs, lambda paragraph: paragraph.tokens, most)


def _pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A block, or pieces of a long one, each ending with a sentence or at least a word where there is one."""
    while end - start > MOST_LETTERS:
        least, most = start + MOST_LETTERS // 2, start + MOST_LETTERS
        cuts = (text.rfind(sign, least, most) for sign in (". ", " "))
        cut = next((place + 1 for place in cuts if place >= 0), most)
        yield start, cut
        start = cut
    yield start, end
