"""The account behind the key: its balance, what was billed, the generations it can ask for, and the response cache."""

import hashlib
import itertools
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from tests.openrouter_standin.answers import Answer, ChatCall
from tests.openrouter_standin.catalogue import Endpoint

DEFAULT_CACHE_SECONDS = 300
MOST_CACHE_SECONDS = 86_400


@dataclass(frozen=True)
class Billed:
    """A charge that the account was given."""

    generation_id: str
    model: str
    prompt_tokens: int
    completion_tokens: int
    cost: Decimal
    is_cancelled: bool  # the client went away in the middle
    session_id: str
    text: str  # all that the request's messages said, by which a test finds its own


@dataclass
class Generation:
    """One run of a model, or one answer from the cache, as GET /generation tells of it."""

    call: ChatCall
    endpoint: Endpoint
    answer: Answer
    prompt_tokens: int
    id: str
    created_at: float
    cost: Decimal = Decimal(0)
    is_cancelled: bool = False
    is_settled: bool = False
    source_id: str | None = None  # the generation whose answer the cache held

    @property
    def is_hit(self) -> bool:
        return self.source_id is not None

    def usage(self) -> dict[str, Any] | None:
        """The usage of the answer: counted, zero for a cached one, and as the answer overrides it."""
        if self.answer.usage is None:
            return None
        prompt, completion = (0, 0) if self.is_hit else (self.prompt_tokens, self.answer.tokens())
        cost = Decimal(0) if self.is_hit or self.answer.is_insured else self.endpoint.cost(prompt, completion)
        reasoning = Answer(self.answer.reasoning or "").tokens()
        counted = {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "cost": float(cost),
            "is_byok": False,
            "prompt_tokens_details": {"cached_tokens": 0},
            "cost_details": {
                "upstream_inference_cost": None,
                "upstream_inference_prompt_cost": float(prompt * Decimal(self.endpoint.prompt_price)),
                "upstream_inference_completions_cost": float(completion * Decimal(self.endpoint.completion_price)),
            },
            "completion_tokens_details": {"reasoning_tokens": reasoning},
        }
        return counted if self.is_hit else counted | dict(self.answer.usage)


class Account:
    """The books. Every method may be called by many connections at once."""

    def __init__(
        self, key: str, balance: Decimal, *, generation_lag_seconds: float, is_zdr: bool, clock: Callable[[], float]
    ) -> None:
        self.key = key
        self.balance = balance
        self.billing: list[Billed] = []
        self.generation_lag_seconds = generation_lag_seconds
        self.is_zdr = is_zdr
        self._clock = clock
        self._generations: dict[str, Generation] = {}
        self._cached: dict[str, tuple[Generation, float]] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def open(self, call: ChatCall, endpoint: Endpoint, answer: Answer, prompt_tokens: int) -> Generation:
        """A generation that has begun; `settle` has to follow."""
        with self._lock:
            generation = Generation(call, endpoint, answer, prompt_tokens, self._new_id(), self._clock())
            self._generations[generation.id] = generation
            return generation

    def settle(self, generation: Generation, *, said: str | None = None, is_whole: bool = True) -> None:
        """Bills a generation once: all of it, or what was `said` when the client of a stream went away."""
        answer = generation.answer if said is None else Answer(said, finish_reason="cancelled")
        with self._lock:
            if generation.is_settled or generation.is_hit:
                return
            generation.is_settled, generation.is_cancelled = True, said is not None
            if answer.is_insured:
                return
            completion = answer.tokens()
            generation.cost = generation.endpoint.cost(generation.prompt_tokens, completion)
            self.balance -= generation.cost
            self.billing.append(
                Billed(
                    generation.id,
                    answer.model or generation.answer.model,
                    generation.prompt_tokens,
                    completion,
                    generation.cost,
                    generation.is_cancelled,
                    generation.call.session_id,
                    generation.call.text,
                )
            )
        if said is None and is_whole:
            self._keep(generation)

    def cached(self, call: ChatCall) -> tuple[Generation, dict[str, str]] | None:
        """A new generation that repeats a cached answer, with its headers; None when there is nothing to repeat."""
        if not self._caches(call):
            return None
        with self._lock:
            if call.headers.get("x-openrouter-cache-clear", "").lower() == "true":
                self._cached.pop(_cache_key(call), None)
            source, expires = self._cached.get(_cache_key(call), (None, 0.0))
            now = self._clock()
            if source is None or now >= expires:
                return None
            hit = replace(source, call=call, id=self._new_id(), created_at=now, cost=Decimal(0), source_id=source.id)
            self._generations[hit.id] = hit
        headers = {
            "X-OpenRouter-Cache-Status": "HIT",
            "X-OpenRouter-Cache-Age": str(int(now - source.created_at)),
            "X-OpenRouter-Cache-TTL": str(int(expires - now)),
            "X-OpenRouter-Cache-Source-Id": source.id,
        }
        return hit, headers

    def miss_headers(self, call: ChatCall) -> dict[str, str]:
        if not self._caches(call):
            return {}
        return {"X-OpenRouter-Cache-Status": "MISS", "X-OpenRouter-Cache-TTL": str(_ttl(call))}

    def generation(self, id_: str) -> dict[str, Any] | None:
        """What GET /generation answers; None while it is not known yet, or at all."""
        with self._lock:
            known = self._generations.get(id_)
            if known is None or not (known.is_settled or known.is_hit):
                return None
            if self._clock() < known.created_at + self.generation_lag_seconds:
                return None
            return {"data": _report(known)}

    def key_state(self) -> dict[str, Any]:
        """What GET /key answers."""
        with self._lock:
            spent = float(sum((one.cost for one in self.billing), Decimal(0)))
            return {"data": _key_report(spent, float(self.balance))}

    def _keep(self, generation: Generation) -> None:
        call, answer = generation.call, generation.answer
        if self._caches(call) and answer.choices == "one" and answer.finish_reason is not None:
            with self._lock:
                self._cached[_cache_key(call)] = (generation, self._clock() + _ttl(call))

    def _new_id(self) -> str:
        return f"gen-{int(self._clock())}-{next(self._numbers):020d}"

    def _caches(self, call: ChatCall) -> bool:
        return call.headers.get("x-openrouter-cache", "").lower() == "true" and not self.is_zdr


def _cache_key(call: ChatCall) -> str:
    """Auth, model, streaming, and the bytes of the body: the order of its keys counts."""
    digest = hashlib.sha256(call.raw).hexdigest()
    return "|".join((call.headers.get("authorization", ""), call.model, str(call.is_stream), digest))


def _ttl(call: ChatCall) -> int:
    given = call.headers.get("x-openrouter-cache-ttl", "")
    return min(max(int(given), 1), MOST_CACHE_SECONDS) if given.isdigit() else DEFAULT_CACHE_SECONDS


NOTHING: Mapping[str, None] = dict.fromkeys(
    (
        "app_id", "cache_discount", "external_user", "http_referer", "moderation_latency", "native_tokens_cached",
        "native_tokens_completion_images", "num_fetches", "num_input_audio_prompt", "num_media_completion",
        "num_media_prompt", "num_search_results", "preset_id", "provider_responses", "router", "service_tier",
        "upstream_inference_cost", "user_agent", "web_search_engine", "workspace_id", "request_id",
    )
)  # fmt: skip


def _report(known: Generation) -> dict[str, Any]:
    answer, hit = known.answer, known.is_hit
    prompt, completion = (0, 0) if hit else (known.prompt_tokens, answer.tokens())
    return {
        **NOTHING,
        "id": known.id,
        "api_type": "completions",
        "cancelled": known.is_cancelled,
        "created_at": datetime.fromtimestamp(known.created_at, UTC).isoformat(),
        "data_region": "global",
        "finish_reason": answer.finish_reason,
        "native_finish_reason": answer.native_finish_reason or answer.finish_reason,
        "generation_time": 12.0,
        "latency": 3.0,
        "is_byok": False,
        "model": answer.model,
        "native_tokens_completion": completion,
        "native_tokens_prompt": prompt,
        "native_tokens_reasoning": Answer(answer.reasoning or "").tokens(),
        "tokens_completion": completion,
        "tokens_prompt": prompt,
        "origin": "",
        "provider_name": known.endpoint.provider,
        "streamed": known.call.is_stream,
        "total_cost": float(known.cost),
        "upstream_id": f"up-{known.id}",
        "usage": float(known.cost),
        "session_id": known.call.session_id or None,
        "response_cache_source_id": known.source_id,
    }


def _key_report(spent: float, remaining: float) -> dict[str, Any]:
    used = {f"usage{span}": spent for span in ("", "_daily", "_weekly", "_monthly")}
    own = {f"byok_usage{span}": 0.0 for span in ("", "_daily", "_weekly", "_monthly")}
    return {
        **used,
        **own,
        "allowed_data_regions": ["global"],
        "budgets": [],
        "creator_user_id": None,
        "effective_budget": None,
        "free_model_daily_requests": {"limit": 50, "remaining": 50, "used": 0},
        "include_byok_in_limit": False,
        "is_free_tier": False,
        "is_management_key": False,
        "is_provisioning_key": False,
        "label": "sk-or-v1-abc...xyz",
        "limit": spent + remaining,
        "limit_remaining": remaining,
        "limit_reset": "monthly",
        "organization_id": None,
        "rate_limit": {"interval": "10s", "note": "deprecated", "requests": -1},
        "workspace_id": None,
        "expires_at": None,
    }
