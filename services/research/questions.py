"""The questions put to a model about a clip: instructions, the text in its fence, then the task and the rules again.

The same job and text always give the same bytes, so an answer that was paid for is found again after a crash.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from uuid import UUID

from openrouter_client.request import AnswerSchema, Message, Question
from openrouter_client.usage import bound_of
from openrouter_client.wording import Wording

WORDING = Wording(Path(__file__).parent, "v1")
OUTPUT_LANGUAGES = ("nb", "nn", "en")
MARKER_TOKENS = 64
OUTPUT_SHARE = 0.25  # of the context, at most, for the answer
USED_SHARE = 0.85  # of the context: sizes are bounds of prompts seen, not of all there can be
THOUGHTS = 1.25  # room for the model's thoughts, on top of the answer
Step = Literal["clip", "part", "whole"]
HEAD = ("title", "author", "published")
_FROM_TEXT = ("summary", "topics", "entities", "claims", "facts", "quotes", "headings")
_ANSWER_TOKENS: dict[Step, int] = {"clip": 6000, "part": 6000, "whole": 1200}


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
        return WORDING.again(self.language, problems)

    def _answer_tokens(self, step: Step) -> int:
        return max(256, min(_ANSWER_TOKENS[step], int(self.context_tokens * OUTPUT_SHARE)))

    def _schema(self, step: Step) -> AnswerSchema:
        return WORDING.schema("clip", f"jobbko_{step}", self.fields(step))

    def _messages(self, step: Step, material: str, *, is_again: bool) -> tuple[Message, ...]:
        return WORDING.messages(self.language, self.job_id, step, self.fields(step), material, is_again=is_again)
