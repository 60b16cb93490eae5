"""The questions put to a model about a clip: instructions, the text in its fence, then the task and the rules again.

Prompts and schema are versioned files; `fingerprint` changes with any letter of them. The same job and text always give
the same bytes, so an answer that was paid for is found again after a crash.
"""

import functools
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

from openrouter_client.fence import fence_for, without_template_tokens
from openrouter_client.request import AnswerSchema, Message, Question
from openrouter_client.usage import bound_of

VERSION = "v1"
FOLDER = Path(__file__).parent
OUTPUT_LANGUAGES = ("nb", "nn", "en")
MOST_PROBLEMS = 8
MARKER_TOKENS = 64
OUTPUT_SHARE = 0.25  # of the context, at most, for the answer
USED_SHARE = 0.85  # of the context: sizes are bounds of prompts seen, not of all there can be
THOUGHTS = 1.25  # room for the model's thoughts, on top of the answer
Step = Literal["clip", "part", "whole"]
HEAD = ("title", "author", "published")
_FROM_TEXT = ("summary", "topics", "entities", "claims", "facts", "quotes", "headings")
_ANSWER_TOKENS: dict[Step, int] = {"clip": 6000, "part": 6000, "whole": 1200}


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


def tokens(text: str) -> int:
    """More tokens than this a text hardly has."""
    return bound_of(text.encode("utf-8", "replace")) + 1


@dataclass(frozen=True)
class Asker:
    """What all questions of a job have in common. `head` names what the cleaning has not found of title and source."""

    job_id: UUID
    language: str
    head: tuple[str, ...]
    context_tokens: int

    def fields(self, step: Step) -> tuple[str, ...]:
        """The fields of a step's answer."""
        return ("summary", "topics") if step == "whole" else (*self.head, *_FROM_TEXT)

    def room(self, step: Step) -> int:
        """What is left of the context for the material. The schema counts: some servers put it into the prompt."""
        messages = self._messages(step, "", is_again=True)
        prompt = sum(tokens(message.text) for message in messages) + tokens(str(self._schema(step).schema))
        answer = int(self._answer_tokens(step) * THOUGHTS)
        return int(self.context_tokens * USED_SHARE) - prompt - MARKER_TOKENS - answer

    def question(self, step: Step, name: str, material: Sequence[str], *, is_again: bool = False) -> Question:
        """One question about lines of material. `is_again`: the last answer was in another language."""
        return Question(
            step=f"{name}:language" if is_again else name,
            messages=self._messages(step, "\n".join(material), is_again=is_again),
            schema=self._schema(step),
            max_output_tokens=self._answer_tokens(step),
            session_id=str(self.job_id),
        )

    def again(self, problems: Sequence[str]) -> str:
        """What asks once more for an answer of the right form."""
        told = "\n".join(f"- {problem[:300]}" for problem in problems[:MOST_PROBLEMS])
        return sections(self.language)["answer_again"].format(problems=told)

    def _answer_tokens(self, step: Step) -> int:
        return max(256, min(_ANSWER_TOKENS[step], int(self.context_tokens * OUTPUT_SHARE)))

    def _schema(self, step: Step) -> AnswerSchema:
        whole, names = _whole_schema(), list(self.fields(step))
        schema = {**whole, "properties": {name: whole["properties"][name] for name in names}, "required": names}
        return AnswerSchema(f"jobbko_{step}", fingerprint(), schema)

    def _messages(self, step: Step, material: str, *, is_again: bool) -> tuple[Message, ...]:
        words = sections(self.language)
        material = without_template_tokens(material)
        fence = fence_for(str(self.job_id), material)
        markers = {"opening": fence.opening, "closing": fence.closing}
        task = [words[f"task:{step}"].format(**markers), ""]
        task += [words[f"field:{name}"] for name in self.fields(step)]
        if is_again:
            task += ["", words["language_again"]]
        return (
            Message("system", words["system"].format(**markers)),
            Message("user", fence.wrap(material)),
            Message("user", "\n".join(task)),
        )


@functools.cache
def _whole_schema() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((FOLDER / "schemas" / f"clip.{VERSION}.json").read_text(encoding="utf-8"))
    return loaded
