"""Asks a model for an object that fits a schema: the few second tries that one run allows, and no more.

At most once each: again with what was wrong with the answer, with twice the room after an answer that was cut off,
without the schema where the provider cannot hold to it, with less room where the credit is short. Everything else goes
back to the queue as an error. Each try is another request, so each is paid for once, also across crashes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from openrouter_client.asker import LEAST_ANSWER_TOKENS
from openrouter_client.calls import Calls, Exchange
from openrouter_client.catalogue import Catalogue
from openrouter_client.ledger import Budgets, Ledger, Spent
from openrouter_client.metrics import ModelMetrics
from openrouter_client.outage import Outage
from openrouter_client.outcomes import KEY_LIMIT, REFUSED_KEY, TruncatedError, error_for, no_key_error, usd
from openrouter_client.repair import NoObjectError, read_object
from openrouter_client.request import Message, Question, build_request
from openrouter_client.settings import ClientSettings
from openrouter_client.transport import Client
from openrouter_client.usage import LIKELY_CHARACTERS_PER_TOKEN, CostSource, Usage, bound_of
from openrouter_client.verdicts import Kind, Verdict
from sidelinja_jobs.context import Context
from sidelinja_jobs.errors import PermanentError
from sidelinja_jobs.models import Job

PROBLEMS_TOLD, LONGEST_PROBLEM = 8, 300
CUT_SHARE = 0.6  # of the tokens that the prompt likely has: with fewer, the server has cut it
CUT_LEAST_CHARACTERS = 4000  # below it, the estimate is too rough
Check = Callable[[object], list[str]]
Reask = Callable[[Sequence[str]], str]


@dataclass(frozen=True)
class Answer:
    """What a question brought.

    `cost_usd` is what the job's calls cost since the answer before, with all tries and lost calls, so that the answers
    of a run add up to what the job cost in all its runs. What this answer cost alone stands in `usage`.
    """

    data: dict[str, Any]
    text: str
    generation_id: str | None
    model: str
    provider: str | None
    usage: Usage
    cost_usd: Decimal
    cost_source: str
    finish_reason: str | None
    is_reused: bool
    is_cache_hit: bool
    is_possible_duplicate: bool
    is_repaired: bool
    warnings: tuple[str, ...] = ()


class LanguageModel:
    """The configured model. One per process, for the main thread.

    `on_refused_key` is told when a call finds the key refused, so that somebody watches for its recovery.
    """

    def __init__(
        self,
        client: Client,
        catalogue: Catalogue,
        settings: ClientSettings,
        *,
        metrics: ModelMetrics | None = None,
        on_refused_key: Callable[[], None] | None = None,
    ) -> None:
        self.client, self.catalogue, self.settings = client, catalogue, settings
        self.metrics = metrics
        self._on_refused_key = on_refused_key
        self._outage = Outage()
        if metrics is not None:
            metrics.unanswered.set_function(self._outage.unanswered_lately)
        self._told: tuple[UUID, Decimal] | None = None  # the run, and how much of its job's cost its answers have told

    @property
    def is_usable(self) -> bool:
        """Whether it can be asked at all: there is a key, or the server needs none."""
        return self.client.profile.is_usable

    @property
    def context_tokens(self) -> int:
        """Prompt and answer together. Asks the catalogue at its first use."""
        return self.catalogue.context_tokens()

    def require_usable(self) -> None:
        """Raises PauseJobTypeError when it cannot be asked: before any work that would be for nothing."""
        if not self.is_usable:
            raise no_key_error(datetime.now(UTC))

    def ask(
        self,
        question: Question,
        job: Job[Any],
        ctx: Context,
        *,
        check: Check,
        reask: Reask,
        accepts: Callable[[object], bool],
        max_cost_usd: Decimal | None = None,
    ) -> Answer:
        """The answer to a question, from the ledger where an earlier run of the job has paid for it.

        Args:
            check: what is wrong with an object; empty when nothing is.
            reask: the text that asks again, in the question's language, telling what was wrong and not the wrong
                answer itself: repeated, it would only be repeated.
            accepts: whether an object that is still wrong after the second try is of use all the same.
            max_cost_usd: the job's own limit, below the one of the settings.

        Raises:
            TooLongError, TruncatedError: prompt or answer do not fit; a caller may ask in parts.
            HandlerError: what the queue is to do with the job.
        """
        self.require_usable()
        with Ledger(job.id, ctx) as ledger:
            budgets = self._budgets(max_cost_usd)
            calls = Calls(self.client, self.catalogue, ledger, budgets, self._outage, self.metrics)
            tries = _Tries(self, ledger, calls, question, check)
            answer = tries.run(accepts, reask)
            return self._with_cost(answer, ledger.spent(), ctx.lease_token)

    def final_error(self, verdict: Verdict) -> Exception:
        """The queue's error for a verdict after which nothing more is tried; asks what is left of the key's limit."""
        if verdict.kind is Kind.PAUSE and verdict.error_class == "credits":
            state = self.client.key_state().verdict
            if state.kind is Kind.PAUSE and state.error_class == "credits":
                verdict = replace(state, error_class=KEY_LIMIT)
        if verdict.kind is Kind.PAUSE and verdict.error_class in (REFUSED_KEY, KEY_LIMIT) and self._on_refused_key:
            self._on_refused_key()
        if verdict.error_class == "policy_filtered" and not self.catalogue.is_known:
            told = f"{verdict.message}; the catalogue of models could not be had, so this may be for parameters alone"
            verdict = replace(verdict, kind=Kind.RETRY, error_class="upstream", message=told)
        return error_for(verdict, now=datetime.now(UTC))

    def _with_cost(self, answer: Answer, spent: Spent, run: UUID) -> Answer:
        told = self._told[1] if self._told is not None and self._told[0] == run else Decimal(0)
        self._told = (run, spent.cost_usd)
        warnings = answer.warnings
        if spent.unknown_calls:
            more = f"{spent.unknown_calls} calls without an answer may have cost up to {usd(spent.unknown_usd)} more"
            warnings = (*warnings, more)
        return replace(answer, cost_usd=spent.cost_usd - told, warnings=warnings)

    def _budgets(self, max_cost_usd: Decimal | None) -> Budgets:
        settings = self.settings
        job = settings.job_budget_usd if max_cost_usd is None else min(max_cost_usd, settings.job_budget_usd)
        return Budgets(job, settings.day_budget_usd, settings.type_day_budget_usd)


class _Tries:
    """The tries of one question."""

    def __init__(self, model: LanguageModel, ledger: Ledger, calls: Calls, question: Question, check: Check) -> None:
        self._model, self._ledger, self._calls = model, ledger, calls
        self._question, self._check = question, check
        profile = model.client.profile
        self._profile = model.catalogue.fit(profile) if profile.is_openrouter else profile
        self._done: set[Kind] = set()
        self._short_of_credit: Verdict | None = None
        self._hashes: list[str] = []

    def run(self, accepts: Callable[[object], bool], reask: Reask) -> Answer:
        while True:
            exchange = self._exchange()
            if exchange.verdict.kind is not Kind.OK:
                self._question = self._other(exchange)
                continue
            self._require_uncut(exchange)
            data, problems, is_repaired = self._read(exchange)
            if not problems:
                return _answer(exchange, data, is_repaired=is_repaired)
            self._count_invalid()
            if Kind.OK not in self._done:
                self._done.add(Kind.OK)
                messages = (*self._question.messages, Message("user", reask(_told(problems))))
                self._question = replace(self._question, messages=messages)
            elif data and accepts(data):
                return _answer(exchange, data, is_repaired=is_repaired, problems=problems)
            else:
                raise self._invalid(problems)

    def _exchange(self) -> Exchange:
        request = build_request(self._profile, self._question)
        self._hashes.append(request.sha256)
        return self._calls.exchange(self._question.step, request)

    def _read(self, exchange: Exchange) -> tuple[dict[str, Any], list[str], bool]:
        try:
            found = read_object(exchange.text, is_whole=True)
        except NoObjectError as error:
            return {}, [str(error)], False
        return found.data, self._check(found.data), found.is_repaired

    def _other(self, exchange: Exchange) -> Question:
        """The next try after an answer that is none. Raises the queue's error where there is no other."""
        verdict = exchange.verdict
        is_first = verdict.kind not in self._done
        self._done.add(verdict.kind)
        if is_first and verdict.kind is Kind.TRUNCATED and self._short_of_credit is None:
            if self._fits(2 * exchange.request.max_tokens, exchange):
                return replace(self._question, max_output_tokens=2 * self._question.max_output_tokens)
            raise TruncatedError(f"{verdict.message}; twice that does not fit the model's context")
        if is_first and verdict.kind is Kind.OTHER_FORMAT and not self._question.degraded:
            return replace(self._question, degraded=True)
        if is_first and verdict.kind is Kind.AFFORDS_LESS and (tokens := self._affordable(exchange)):
            self._short_of_credit = verdict
            return replace(self._question, max_output_tokens=tokens)
        if verdict.kind is Kind.TRUNCATED and self._short_of_credit is not None:
            verdict = self._short_of_credit  # more room would help, and there is no money for it
        raise self._model.final_error(verdict)

    def _fits(self, output_tokens: int, exchange: Exchange) -> bool:
        prompt = exchange.usage.prompt_tokens or bound_of(exchange.request.body)
        limit = self._model.catalogue.most_output_tokens()
        return prompt + output_tokens <= self._model.context_tokens and output_tokens <= (limit or output_tokens)

    def _affordable(self, exchange: Exchange) -> int | None:
        """The room for an answer that the credit still pays for; None when it is too little to be of use."""
        affordable = exchange.verdict.affordable_tokens or 0
        wanted = self._question.max_output_tokens
        tokens = min(affordable * wanted // exchange.request.max_tokens * 95 // 100, wanted - 1)
        return tokens if tokens >= max(LEAST_ANSWER_TOKENS, wanted // 4) else None

    def _require_uncut(self, exchange: Exchange) -> None:
        """A server that cuts a long prompt without a word has answered without having read the instructions."""
        characters = sum(len(message.text) for message in self._question.messages)
        counted = exchange.usage.prompt_tokens
        likely = characters / LIKELY_CHARACTERS_PER_TOKEN
        if self._profile.is_openrouter or not counted or characters < CUT_LEAST_CHARACTERS:
            return
        if counted < CUT_SHARE * likely:
            self._ledger.discard(self._question.step, self._hashes)
            raise PermanentError(
                f"the server has read {counted} tokens of a prompt of about {likely:.0f}: it cuts what is too long. "
                "Next: give it a larger context (Ollama: num_ctx), or set OPENROUTER_CONTEXT_TOKENS to what it has",
                error_class="config",
            )

    def _count_invalid(self) -> None:
        if self._model.metrics is not None:
            self._model.metrics.requests["invalid"].inc()

    def _invalid(self, problems: Sequence[str]) -> PermanentError:
        self._ledger.discard(self._question.step, self._hashes)
        told = "; ".join(_told(problems))
        return PermanentError(
            f"the model's answer does not fit, nor did its second one: {told}. Next: retry the job, or choose another "
            "OPENROUTER_MODEL; the answers stand in llm_call",
            error_class="invalid_output",
        )


def _told(problems: Sequence[str]) -> list[str]:
    return [problem[:LONGEST_PROBLEM] for problem in problems[:PROBLEMS_TOLD]]


def _answer(exchange: Exchange, data: dict[str, Any], *, is_repaired: bool, problems: Sequence[str] = ()) -> Answer:
    usage = exchange.usage
    model = exchange.told("model") or exchange.request.model
    return Answer(
        data=data,
        text=exchange.text,
        generation_id=exchange.generation_id,
        model=model,
        provider=exchange.told("provider"),
        usage=usage,
        cost_usd=usage.cost_usd or Decimal(0),
        cost_source=usage.cost_source.value,
        finish_reason=exchange.finish_reason,
        is_reused=exchange.is_reused,
        is_cache_hit=exchange.is_cache_hit,
        is_possible_duplicate=exchange.is_possible_duplicate,
        is_repaired=is_repaired,
        warnings=(
            *_warnings(exchange, model),
            *(f"accepted although {problem[:LONGEST_PROBLEM]}" for problem in problems),
        ),
    )


def _warnings(exchange: Exchange, model: str) -> list[str]:
    asked = exchange.request.model
    is_local = exchange.usage.cost_source is CostSource.LOCAL
    found = (
        (not is_local and not model.startswith(asked.partition(":")[0]), f"{model} answered, {asked} was asked"),
        (exchange.usage.cost_source is CostSource.ESTIMATE, "the cost is an estimate"),
        (exchange.is_possible_duplicate, "the same question was sent before and may have been paid for twice"),
    )
    return [text for is_so, text in found if is_so]
