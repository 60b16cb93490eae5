"""What is asked in each step: the sections of the prompt, and the fields of the schema."""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from openrouter_client.request import AnswerSchema
from openrouter_client.wording import Wording
from services.openrouter.payload import WANTS, Want

WORDING = Wording(Path(__file__).parent, "v1")
Step = Literal["analysis", "part", "condense", "whole"]
STEPS: tuple[Step, ...] = ("analysis", "part", "condense", "whole")

# The section of the prompt that asks, and the fields of the schema that it asks for.
Part = tuple[str, tuple[str, ...]]
_HEAD: dict[Want, Part] = {
    "title": ("title", ("title", "title_alternatives")),
    "summary": ("summary", ("summary_short", "summary_long")),
    "keywords": ("keywords", ("keywords", "topics")),
}
_NOTE: Part = ("note", ("summary",))
_TOPICS: Part = ("topics", ("topics",))
_FROM_SOURCE: dict[Want, Part] = {
    "chapters": ("chapters", ("chapters",)),
    "guests": ("guests", ("people",)),
    "quotes": ("quotes", ("quotes",)),
}
_CHOSEN: Part = ("chapters_from_notes", ("chapters",))


def everything_in(wants: Iterable[Want]) -> frozenset[Want]:
    """The wants, and all others beside show notes, which are made of them."""
    return frozenset(WANTS) if "shownotes" in wants else frozenset(wants)


def asked(step: Step, wants: frozenset[Want]) -> list[Part]:
    """The sections and fields of a step's question."""
    wants = everything_in(wants)
    head = [part for want, part in _HEAD.items() if want in wants]
    from_source = [part for want, part in _FROM_SOURCE.items() if want in wants]
    chosen = [_CHOSEN] if "chapters" in wants else []
    match step:
        case "analysis":
            return head + from_source
        case "part":
            return [_NOTE, _TOPICS, *from_source]
        case "condense":
            return [_NOTE, _TOPICS, *chosen]
        case "whole":
            return head + chosen


def answer_schema(step: Step, wants: frozenset[Want]) -> AnswerSchema:
    """The schema of a step's answer, with the asked fields alone."""
    names = [name for _, fields in asked(step, wants) for name in fields]
    return WORDING.schema(step, f"jobbko_{step}", names)
