"""Puts the questions of one run to the model, and keeps the answers: each is paid for, whatever becomes of it."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, Generic, TypeVar

import msgspec

from openrouter_client.answer_form import AnswerForm
from openrouter_client.asker import Asker
from openrouter_client.asking import Answer, LanguageModel
from sidelinja_jobs.context import Context
from sidelinja_jobs.models import Job

T = TypeVar("T", bound=msgspec.Struct)


class Inquiry(Generic[T]):
    """`answers` are all that were given so far, in order. `max_cost_usd`: the job's own limit."""

    def __init__(
        self,
        model: LanguageModel,
        job: Job[Any],
        ctx: Context,
        *,
        asker: Asker,
        form: AnswerForm[T],
        max_cost_usd: Decimal | None = None,
    ) -> None:
        self._model, self._job, self._ctx = model, job, ctx
        self._asker, self._form, self._max_cost_usd = asker, form, max_cost_usd
        self.answers: list[Answer] = []

    def ask(self, step: str, name: str, lines: Sequence[str], *, is_again: bool = False) -> T:
        """The answer about lines of material. Raises what `LanguageModel.ask` does."""
        question = self._asker.question(step, name, lines, is_again=is_again)
        answer = self._model.ask(
            question,
            self._job,
            self._ctx,
            check=partial(self._form.problems, names=question.schema.fields),
            accepts=partial(self._form.says, name=self._asker.tasks[step].core),
            reask=self._asker.again,
            max_cost_usd=self._max_cost_usd,
        )
        self.answers.append(answer)
        return self._form.read(answer.data)

    def ask_in_language(
        self, step: str, name: str, lines: Sequence[str], is_in: Callable[[T, str], bool]
    ) -> tuple[T, bool]:
        """The answer, and whether it is in its language; asked for once more where not, and then taken as it is."""
        language = self._asker.language
        answer = self.ask(step, name, lines)
        if is_in(answer, language):
            return answer, True
        self._ctx.progress(None, f"the answer is not in {language}, asking once more")
        self._ctx.log.warning("answer in another language", step=name, wanted=language)
        again = self.ask(step, name, lines, is_again=True)
        return again, is_in(again, language)
