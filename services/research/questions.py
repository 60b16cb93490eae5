"""What a model is asked about a clip: sections of the prompt, fields of the schema, and how long the answer may be."""

from pathlib import Path
from typing import Literal, get_args
from uuid import UUID

from openrouter_client.asker import Asker, Task
from openrouter_client.usage import bound_of
from openrouter_client.wording import Wording

WORDING = Wording(Path(__file__).parent, "v1")
Step = Literal["clip", "part", "whole"]
HEAD = ("title", "author", "published")
_FROM_TEXT = ("summary", "topics", "entities", "claims", "facts", "quotes", "headings")
_ANSWER_TOKENS: dict[Step, int] = {"clip": 6000, "part": 6000, "whole": 1200}


def tokens(text: str) -> int:
    """More tokens than this a text hardly has."""
    return bound_of(text.encode("utf-8", "replace")) + 1


def make_asker(job_id: UUID, language: str, head: tuple[str, ...], context_tokens: int) -> Asker:
    """The questions of a job. `head` names what the cleaning has not found of title and source."""
    tasks = {step: _task(step, head) for step in get_args(Step)}
    return Asker(WORDING, job_id, language, context_tokens, tasks, tokens)


def _task(step: Step, head: tuple[str, ...]) -> Task:
    fields = ("summary", "topics") if step == "whole" else (*head, *_FROM_TEXT)
    return Task(fields, WORDING.schema("clip", f"jobbko_{step}", fields), _ANSWER_TOKENS[step], core="summary")
