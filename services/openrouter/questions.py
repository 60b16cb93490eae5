"""The questions put to a model: instructions, material in its fence, then the task and the rules again.

The same job and material always give the same bytes, so an answer that was paid for is found again after a crash.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from openrouter_client.fence import without_template_tokens
from openrouter_client.request import Message, Question
from services.openrouter.payload import Hints, Want
from services.openrouter.plan import output_tokens, token_bound
from services.openrouter.wording import WORDING, Step, answer_schema, asked

ANSWER_TOKENS: dict[Step, int] = {"analysis": 6000, "part": 2000, "condense": 1200, "whole": 4000}
MARKER_TOKENS = 64


@dataclass(frozen=True)
class Asker:
    """What all questions of a job have in common."""

    job_id: UUID
    language: str
    wants: frozenset[Want]
    hints: Hints
    context_tokens: int

    def answer_tokens(self, step: Step) -> int:
        """The budget of a step's answer."""
        return output_tokens(ANSWER_TOKENS[step], self.context_tokens)

    def prompt_tokens(self, step: Step) -> int:
        """What a question of this step takes beside its material. The schema counts: some servers put it there."""
        messages = self._messages(step, "", is_again=True)
        schema = str(answer_schema(step, self.wants).schema)
        return sum(token_bound(message.text) for message in messages) + token_bound(schema) + MARKER_TOKENS

    def question(self, step: Step, name: str, material: Sequence[str], *, is_again: bool = False) -> Question:
        """One question about lines of material. `is_again`: the last answer was in another language."""
        return Question(
            step=f"{name}:language" if is_again else name,
            messages=self._messages(step, "\n".join(material), is_again=is_again),
            schema=answer_schema(step, self.wants),
            max_output_tokens=self.answer_tokens(step),
            session_id=str(self.job_id),
        )

    def again(self, problems: Sequence[str]) -> str:
        """What asks once more for an answer of the right form."""
        return WORDING.again(self.language, problems)

    def _messages(self, step: Step, material: str, *, is_again: bool) -> tuple[Message, ...]:
        if step in ("analysis", "part") and (hints := _hint_lines(self.hints)):
            material = "\n".join([WORDING.sections(self.language)["hints"], *hints, "", material])
        names = [section for section, _ in asked(step, self.wants)]
        return WORDING.messages(self.language, self.job_id, step, names, material, is_again=is_again)


def _hint_lines(hints: Hints) -> list[str]:
    lines = [
        ("show", hints.show_title),
        ("hosts", ", ".join(hints.hosts)),
        ("guests", ", ".join(hints.guests)),
        ("published", hints.published),
    ]
    return [f"{name}: {' '.join(without_template_tokens(value).split())}" for name, value in lines if value]
