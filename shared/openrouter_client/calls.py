"""One question through the ledger: an answer that was paid for is used again, and whatever is sent is written before
and after.

    found received   its answer is used again, nothing is sent
    found unknown    sent by a run that died, or lost on the way: it may have been paid for. Its cost is asked for where
                     its id is known; then the same is sent again, which OpenRouter's cache may answer for nothing, and
                     is flagged where it did not
    found nothing    reserved, sent, settled
"""

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import psycopg

from openrouter_client import usage as usage_of
from openrouter_client.catalogue import Catalogue
from openrouter_client.content import finish_of, first_choice, text_of
from openrouter_client.ledger import Budgets, Ledger, PastCall, Settlement
from openrouter_client.metrics import ModelMetrics
from openrouter_client.outage import Outage
from openrouter_client.outcomes import budget_error
from openrouter_client.request import ChatRequest
from openrouter_client.transport import Client, Reply
from openrouter_client.usage import CostSource, Usage
from openrouter_client.verdicts import ANSWERED, Verdict, classify
from sidelinja_jobs.errors import PermanentError

LOST_LIMIT = 2  # a question is not sent again after so many calls that may have been paid for without an answer
STOPPED = "stopped"  # we ended the call ourselves: it is no sign that the next one will be lost, too
GENERATION_WAITS_SECONDS = (0.0, 5.0, 10.0)  # a generation is known to OpenRouter some seconds after its end
CACHE_HEADER, CACHE_CLEAR_HEADER = "X-OpenRouter-Cache", "X-OpenRouter-Cache-Clear"
LONGEST_NAME = 300  # letters of a model or provider


@dataclass(frozen=True)
class Exchange:
    """What a question brought. `body` is what was received, `usage.cost_usd` what it cost the job, also in the past."""

    request: ChatRequest
    verdict: Verdict
    body: dict[str, Any]
    usage: Usage
    generation_id: str | None
    is_reused: bool = False
    is_cache_hit: bool = False
    is_possible_duplicate: bool = False

    @property
    def text(self) -> str:
        return text_of(first_choice(self.body))

    @property
    def finish_reason(self) -> str | None:
        """Why the answer ended, in the provider's own word where it gives one."""
        return finish_of(first_choice(self.body))[1] or None

    def told(self, name: str) -> str | None:
        """A text of the body's top, such as model or provider."""
        value = self.body.get(name)
        return value[:LONGEST_NAME] if isinstance(value, str) and value else None


class Calls:
    """The calls of one run, in its ledger. Used by one thread."""

    def __init__(
        self,
        client: Client,
        catalogue: Catalogue,
        ledger: Ledger,
        budgets: Budgets,
        outage: Outage,
        metrics: ModelMetrics | None = None,
    ) -> None:
        self._client, self._catalogue, self._ledger = client, catalogue, ledger
        self._budgets, self._outage, self._metrics = budgets, outage, metrics

    def exchange(self, step: str, request: ChatRequest) -> Exchange:
        """The answer to a request, from the ledger or from the server.

        Raises:
            HandlerError: a budget has too little left, or the request was lost too often.
            LeaseLostError: the run is no longer held; nothing was sent.
        """
        past = self._ledger.find(step, request.sha256)
        kept = [call for call in past if not call.is_discarded]
        answers = [call for call in kept if call.state == "received" and call.body is not None]
        if answers:
            return self._reuse(request, answers[-1])
        lost = self._lost(kept)
        if past and past[-1].is_useless_answer:
            request = _uncached(request)
        self._refuse_if_lost_too_often(step, request, lost)
        self._ledger.require_time()
        call_id, postponements = self._reserve(step, request, is_again=bool(lost))
        self._ledger.mark_sent(call_id)
        reply = self._send(call_id, request)
        exchange = _exchange(request, reply, is_local=not self._client.profile.is_openrouter, is_again=bool(lost))
        exchange = self._settle(call_id, reply, exchange)
        self._outage.note(exchange.verdict, self._ledger)
        self._record(exchange, reply)
        return replace(exchange, verdict=self._outage.patient(exchange.verdict, self._ledger, postponements))

    def _reuse(self, request: ChatRequest, call: PastCall) -> Exchange:
        body = call.body or {}
        told = usage_of.read_usage(body, {}, is_local=not self._client.profile.is_openrouter)
        source = CostSource(call.cost_source or CostSource.UNKNOWN)
        exchange = Exchange(
            request=request,
            verdict=classify(call.http_status or 200, {}, body),
            body=body,
            usage=replace(told, cost_usd=call.cost_usd, cost_source=source),
            generation_id=call.generation_id,
            is_reused=True,
            is_possible_duplicate=call.is_possible_duplicate and source is not CostSource.CACHE,
        )
        if self._metrics is not None:
            self._metrics.requests["reused"].inc()
        return exchange

    def _lost(self, past: Sequence[PastCall]) -> list[PastCall]:
        """Calls that may have been paid for. At a server of one's own, none is."""
        if not self._client.profile.is_openrouter:
            return []
        unknown = [call for call in past if call.state == "unknown"]
        return [call for call in map(self._look_up, unknown) if call.cost_usd != 0]

    def _look_up(self, call: PastCall) -> PastCall:
        """A lost call, with what it cost if that can be known by now."""
        if call.cost_usd is not None or call.generation_id is None:
            return call
        cost = self._generation_cost(call.generation_id, GENERATION_WAITS_SECONDS[:1])
        if cost is None:
            return call
        self._ledger.settle(call.id, Settlement("unknown", cost, CostSource.GENERATION))
        if self._metrics is not None:
            self._metrics.record_cost(cost)
        return replace(call, cost_usd=cost)

    def _refuse_if_lost_too_often(self, step: str, request: ChatRequest, lost: Sequence[PastCall]) -> None:
        counted = [call for call in lost if call.error_class != STOPPED]
        if len(counted) < LOST_LIMIT:
            return
        last = counted[-1]
        self._ledger.discard(step, [request.sha256])  # or a retry by hand could not go on
        raise PermanentError(
            f"the same question was sent {len(counted)} times without an answer, and may be paid for each time; last: "
            f"{last.error_msg or last.error_class}. Next: look at the provider's activity, then retry the job, which "
            "asks again",
            error_class=last.error_class if last.error_class in ("timeout", "upstream") else "transport",
        )

    def _reserve(self, step: str, request: ChatRequest, *, is_again: bool) -> tuple[UUID, int]:
        most = self._most_usd(request)
        told = self._ledger.reserve(step, request.sha256, request.model, most, self._budgets, is_again=is_again)
        if told.call_id is None:
            raise budget_error(told, most, request.model, now=datetime.now(UTC))
        return told.call_id, told.postponements

    def _most_usd(self, request: ChatRequest) -> Decimal:
        """What a request can cost at most, whichever of its models answers."""
        profile = self._client.profile
        prompt = usage_of.bound_of(request.body)
        now = datetime.now(UTC)
        prices = [self._catalogue.price(model, prompt, now) for model in (request.model, *profile.fallbacks)]
        return max(price.cost(prompt, request.max_tokens) for price in prices)

    def _send(self, call_id: UUID, request: ChatRequest) -> Reply:
        def note(generation_id: str) -> None:
            self._ledger.note_generation(call_id, generation_id)

        try:
            self._ledger.live()
            return self._client.send(request, note, self._ledger.live)
        except BaseException as stop:
            settlement = Settlement("unknown", None, CostSource.UNKNOWN, error_class=STOPPED, error_msg=str(stop)[:500])
            with contextlib.suppress(psycopg.Error):
                self._ledger.settle_once(call_id, settlement)
            raise

    def _settle(self, call_id: UUID, reply: Reply, exchange: Exchange) -> Exchange:
        """Writes the answer at once; then looks for its cost, if it did not say."""
        settlement = _settlement(reply, exchange.usage)
        self._ledger.settle(call_id, settlement, reply.body)
        if settlement.cost_usd is not None:
            return replace(exchange, usage=_with_cost(exchange.usage, settlement.cost_usd, settlement.cost_source))
        waits = GENERATION_WAITS_SECONDS if settlement.state == "received" else GENERATION_WAITS_SECONDS[:1]
        cost = None if reply.generation_id is None else self._generation_cost(reply.generation_id, waits)
        source = CostSource.GENERATION
        if cost is None and settlement.state != "unknown":
            cost, source = self._estimate(exchange), CostSource.ESTIMATE
        if cost is None:
            return exchange
        self._ledger.settle(call_id, replace(settlement, cost_usd=cost, cost_source=source), reply.body)
        return replace(exchange, usage=_with_cost(exchange.usage, cost, source))

    def _generation_cost(self, generation_id: str, waits: Sequence[float]) -> Decimal | None:
        for wait in waits:
            time.sleep(wait)
            found = self._client.generation(generation_id)
            if found is not None:
                return usage_of.generation_cost(found)
        return None

    def _estimate(self, exchange: Exchange) -> Decimal:
        """Tokens as counted, or from above by the letters."""
        prompt = exchange.usage.prompt_tokens or usage_of.bound_of(exchange.request.body)
        completion = exchange.usage.completion_tokens or usage_of.bound_of(exchange.text.encode())
        answered = exchange.told("model")
        model = answered if answered and self._catalogue.find(answered) else exchange.request.model
        return self._catalogue.price(model, prompt, datetime.now(UTC)).cost(prompt, completion)

    def _record(self, exchange: Exchange, reply: Reply) -> None:
        if self._metrics is None:
            return
        outcome = "cache_hit" if exchange.is_cache_hit else exchange.verdict.kind.value
        self._metrics.requests[outcome].inc()
        self._metrics.seconds.observe(reply.seconds)
        self._metrics.record_usage(exchange.usage)
        if exchange.is_possible_duplicate:
            self._metrics.duplicates.inc()


def _exchange(request: ChatRequest, reply: Reply, *, is_local: bool, is_again: bool) -> Exchange:
    is_hit = usage_of.is_cache_hit(reply.headers)
    return Exchange(
        request=request,
        verdict=reply.verdict,
        body=reply.body or {},
        usage=usage_of.read_usage(reply.body, reply.headers, is_local=is_local),
        generation_id=reply.generation_id,
        is_cache_hit=is_hit,
        is_possible_duplicate=is_again and not is_hit,
    )


def _uncached(request: ChatRequest) -> ChatRequest:
    """The same request, to be answered anew: OpenRouter's cache holds an answer that was of no use."""
    if CACHE_HEADER not in request.headers:
        return request
    return replace(request, headers={**request.headers, CACHE_CLEAR_HEADER: "true"})


def _settlement(reply: Reply, usage: Usage) -> Settlement:
    """What the ledger holds of a reply. Without an answer, it is unknown only where it may have been billed."""
    verdict = reply.verdict
    body = reply.body or {}
    _, finish = finish_of(first_choice(body))
    settlement = Settlement(
        state="received",
        cost_usd=usage.cost_usd,
        cost_source=usage.cost_source,
        generation_id=reply.generation_id,
        model_used=_text(body.get("model")),
        provider=_text(body.get("provider")) or verdict.provider,
        http_status=reply.status,
        finish_reason=finish or None,
        usage=body.get("usage"),
        error_class=verdict.error_class or None,
        error_msg=verdict.message or None,
    )
    if verdict.kind in ANSWERED:
        return settlement
    if not reply.was_sent or verdict.is_billed is False:
        return replace(settlement, state="failed", cost_usd=Decimal(0), cost_source=CostSource.UNBILLED)
    is_told = usage.cost_usd is not None and reply.body is not None
    return replace(settlement, state="failed" if is_told or verdict.is_billed else "unknown")


def _with_cost(usage: Usage, cost_usd: Decimal, source: str) -> Usage:
    return replace(usage, cost_usd=cost_usd, cost_source=CostSource(source))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
