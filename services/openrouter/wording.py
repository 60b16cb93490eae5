"""The versioned files that a question is made of: prompts/<language>.<version>.md and schemas/<step>.<version>.json.

`fingerprint` changes with any letter of them, so that results and requests tell which wording they come from.
"""

import functools
import hashlib
import json
import re
from pathlib import Path
from typing import Any, Literal

from openrouter_client.request import AnswerSchema
from services.openrouter.payload import WANTS, Want

VERSION = "v1"
FOLDER = Path(__file__).parent
OUTPUT_LANGUAGES = ("nb", "nn", "en")
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


@functools.cache
def sections(language: str) -> dict[str, str]:
    """The prompt's sections by name."""
    text = (FOLDER / "prompts" / f"{language}.{VERSION}.md").read_text(encoding="utf-8")
    parts = re.split(r"^## (\S+)\n", text, flags=re.MULTILINE)[1:]
    return {name: body.strip() for name, body in zip(parts[::2], parts[1::2], strict=True)}


@functools.cache
def fingerprint() -> str:
    """Version and digest of all prompts and schemas."""
    files = sorted([*FOLDER.glob(f"prompts/*.{VERSION}.md"), *FOLDER.glob(f"schemas/*.{VERSION}.json")])
    digest = hashlib.sha256(b"\0".join(file.name.encode() + b"\0" + file.read_bytes() for file in files))
    return f"{VERSION}-{digest.hexdigest()[:8]}"


def asked(step: Step, wants: frozenset[Want]) -> list[Part]:
    """The sections and fields of a step's question. Show notes are made of everything, so they want everything."""
    if "shownotes" in wants:
        wants = frozenset(WANTS)
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
    whole = _schema(step)
    names = [name for _, fields in asked(step, wants) for name in fields]
    schema = {**whole, "properties": {name: whole["properties"][name] for name in names}, "required": names}
    return AnswerSchema(f"jobbko_{step}", fingerprint(), schema)


@functools.cache
def _schema(step: Step) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((FOLDER / "schemas" / f"{step}.{VERSION}.json").read_text(encoding="utf-8"))
    return loaded
