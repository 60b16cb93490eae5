"""What a model answers about a clip. Whether the text says so is checked in grounding.py."""

import msgspec

from openrouter_client.answer_form import AnswerForm

Reference = str | int


class EntityAnswer(msgspec.Struct, frozen=True):
    name: str
    type: str = "other"


class ClaimAnswer(msgspec.Struct, frozen=True):
    text: str
    paragraph: Reference
    quote: str


class FactAnswer(msgspec.Struct, frozen=True):
    subject: str
    predicate: str
    value: str | int | float
    paragraph: Reference
    quote: str
    unit: str | None = None


class QuoteAnswer(msgspec.Struct, frozen=True):
    paragraph: Reference
    quote: str


class HeadingAnswer(msgspec.Struct, frozen=True):
    paragraph: Reference
    title: str


class Description(msgspec.Struct, frozen=True):
    """The answer of any step; what was not asked for is empty."""

    title: str | None = None
    author: str | None = None
    published: str | None = None
    summary: str = ""
    topics: tuple[str, ...] = ()
    entities: tuple[EntityAnswer, ...] = ()
    claims: tuple[ClaimAnswer, ...] = ()
    facts: tuple[FactAnswer, ...] = ()
    quotes: tuple[QuoteAnswer, ...] = ()
    headings: tuple[HeadingAnswer, ...] = ()


FORM = AnswerForm(Description, must_say=frozenset({"summary"}))
