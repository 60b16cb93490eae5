"""The questions of one job: what each step asks for, and how much material goes into one of them.

The same job and material always give the same bytes, so an answer that was paid for is found again after a crash.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from openrouter_client.request import AnswerSchema, Message, Question
from openrouter_client.wording import Wording
from sidelinja_jobs.errors import PermanentError

USED_SHARE = 0.85  # of the context: sizes are bounds of prompts seen, not of all there can be
OUTPUT_SHARE = 0.25  # of the context, at most, for the answer
THOUGHTS = 1.25  # room for the model's thoughts, on top of the answer
MARKER_TOKENS = 64  # of the fence
LEAST_ANSWER_TOKENS = 256  # a smaller one is not worth asking for
LEAST_ROOM_TOKENS = 800  # with less, a text would fall into too many parts


@dataclass(frozen=True)
class Task:
    """What a step asks for: sections of the prompt, and the schema of the answer.

    `wanted_tokens` is the longest answer, where the context has room for it. Without the field `core`, an answer is of
    no use. `preface` are lines that stand before all material.
    """

    sections: tuple[str, ...]
    schema: AnswerSchema
    wanted_tokens: int
    core: str
    preface: tuple[str, ...] = ()


@dataclass(frozen=True)
class Asker:
    """What all questions of a job have in common. `tokens` bounds the size of a text from above."""

    wording: Wording
    job_id: UUID
    language: str
    context_tokens: int
    tasks: Mapping[str, Task]
    tokens: Callable[[str], int]

    def question(self, step: str, name: str, material: Sequence[str], *, is_again: bool = False) -> Question:
        """One question about lines of material. `is_again`: the last answer was in another language."""
        return Question(
            step=f"{name}:language" if is_again else name,
            messages=self._messages(step, material, is_again=is_again),
            schema=self.tasks[step].schema,
            max_output_tokens=self._answer_tokens(step),
            session_id=str(self.job_id),
        )

    def again(self, problems: Sequence[str]) -> str:
        """What asks once more for an answer of the right form."""
        told = "\n".join(f"- {problem}" for problem in problems)
        return self.wording.sections(self.language)["answer_again"].format(problems=told)

    def room(self, step: str) -> int:
        """What is left of the context for material. The schema counts: some servers put it into the prompt."""
        texts = [message.text for message in self._messages(step, [""], is_again=True)]
        prompt = sum(map(self.tokens, [*texts, str(self.tasks[step].schema.schema)])) + MARKER_TOKENS
        return int(self.context_tokens * USED_SHARE) - prompt - int(self._answer_tokens(step) * THOUGHTS)

    def require_room(self, *steps: str, least: int = LEAST_ROOM_TOKENS) -> None:
        """Raises PermanentError where one of the steps has less room."""
        room = min(map(self.room, steps))
        if room < least:
            raise self.too_small_error(f"leaves {max(room, 0)} for the text, at least {least} are needed")

    def too_small_error(self, why: str) -> PermanentError:
        """What ends a job whose model has too small a context."""
        return PermanentError(
            f"The model's context of {self.context_tokens} tokens {why}. Next: give the server a larger context and "
            "set OPENROUTER_CONTEXT_TOKENS, or choose another model",
            error_class="config",
        )

    def _answer_tokens(self, step: str) -> int:
        return max(LEAST_ANSWER_TOKENS, min(self.tasks[step].wanted_tokens, int(self.context_tokens * OUTPUT_SHARE)))

    def _messages(self, step: str, material: Sequence[str], *, is_again: bool) -> tuple[Message, ...]:
        task = self.tasks[step]
        text = "\n".join([*task.preface, *material])
        return self.wording.messages(self.language, self.job_id, step, task.sections, text, is_again=is_again)
