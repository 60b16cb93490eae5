"""What a model answers about a clip, by its form. Whether the text says so is checked in grounding.py.

Lengths are cut later and never refused: providers disagree on which limits of a schema they keep.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

MOST_ITEMS = 200  # of a list; the schema asks for far fewer, and each is looked up in the text
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


def read_description(data: dict[str, Any]) -> Description:
    """The answer; fields of another form than they should have are left empty, endless lists are cut short."""
    fields = {name: value[:MOST_ITEMS] if isinstance(value, list) else value for name, value in data.items()}
    return msgspec.convert(
        {name: value for name, value in fields.items() if _problem(name, value) is None}, Description
    )


def has_summary(data: object) -> bool:
    """Whether an answer is of use although something is wrong with it."""
    return isinstance(data, dict) and "summary" in data and _problem("summary", data["summary"]) is None


def checker(names: Sequence[str]) -> Callable[[object], list[str]]:
    """What names everything that is wrong with the form of an answer, for the model to mend."""

    def problems(data: object) -> list[str]:
        if not isinstance(data, dict):
            return [f"expected an object with the fields {', '.join(names)}"]
        found = [f"the field {name!r} is missing" for name in names if name not in data]
        return found + [problem for name in names if name in data and (problem := _problem(name, data[name]))]

    return problems


def _problem(name: str, value: Any) -> str | None:
    try:
        msgspec.convert({name: value}, Description)
    except msgspec.ValidationError as error:
        return str(error).replace("$.", "")
    if name == "summary" and not str(value).strip():
        return "the field 'summary' is empty"
    return None
