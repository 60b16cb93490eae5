"""What a model answers, by its form. Whether it is true is checked elsewhere.

Lengths are cut later and never refused: providers disagree on which limits of a schema they keep.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from services.openrouter.payload import Want
from services.openrouter.wording import Step, asked

MOST_ITEMS = 200  # of a list; the schemas ask for far fewer, and each is looked up in the transcript
BlockReference = str | int
MUST_SAY = ("title", "summary_short", "summary_long", "summary")


class ChapterAnswer(msgspec.Struct, frozen=True):
    start_block: BlockReference
    title: str


class PersonAnswer(msgspec.Struct, frozen=True):
    name: str
    role: str | None = None
    is_guest: bool = True
    blocks: tuple[BlockReference, ...] = ()


class QuoteAnswer(msgspec.Struct, frozen=True):
    block: BlockReference
    text: str


class Answer(msgspec.Struct, frozen=True):
    """The answer of any step; what was not asked for is empty."""

    title: str = ""
    title_alternatives: tuple[str, ...] = ()
    summary_short: str = ""
    summary_long: str = ""
    summary: str = ""
    keywords: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    chapters: tuple[ChapterAnswer, ...] = ()
    people: tuple[PersonAnswer, ...] = ()
    quotes: tuple[QuoteAnswer, ...] = ()


def read_answer(data: dict[str, Any]) -> Answer:
    """The answer; fields of another form than they should have are left empty, endless lists are cut short."""
    fields = {name: value[:MOST_ITEMS] if isinstance(value, list) else value for name, value in data.items()}
    return msgspec.convert({name: value for name, value in fields.items() if _problem(name, value) is None}, Answer)


def has_core(step: Step, wants: frozenset[Want]) -> Callable[[object], bool]:
    """What tells whether an answer is of use although something is wrong with it: its first text is there."""
    first = asked(step, wants)[0][1][0]
    return lambda data: isinstance(data, dict) and first in data and _problem(first, data[first]) is None


def checker(step: Step, wants: frozenset[Want]) -> Callable[[object], list[str]]:
    """What names everything that is wrong with the form of a step's answer, for the model to mend."""
    names = [name for _, fields in asked(step, wants) for name in fields]

    def problems(data: object) -> list[str]:
        if not isinstance(data, dict):
            return [f"expected an object with the fields {', '.join(names)}"]
        found = [f"the field {name!r} is missing" for name in names if name not in data]
        for name in names:
            if name in data and (problem := _problem(name, data[name])):
                found.append(problem)
        return found

    return problems


def _problem(name: str, value: Any) -> str | None:
    try:
        msgspec.convert({name: value}, Answer)
    except msgspec.ValidationError as error:
        return str(error).replace("$.", "")
    if name in MUST_SAY and not str(value).strip():
        return f"the field {name!r} is empty"
    return None
