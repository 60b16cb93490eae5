"""What the server offers: context, parameters and prices of the models, kept for hours.

OpenRouter is asked (GET /models, whose list is whole when no page is asked for); a server of one's own is what the
settings say, and costs nothing. Where the catalogue cannot be had, prices are the upper limits that every request
carries, so that a budget still holds.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from openrouter_client.error_body import as_mapping
from openrouter_client.offers import ASKED_AGAIN_SECONDS, KEPT_SECONDS, Offers
from openrouter_client.profile import Profile
from openrouter_client.transport import Client
from openrouter_client.usage import cost_of
from openrouter_client.verdicts import Kind

EXPIRES_SOON = timedelta(days=30)
UNKNOWN_CONTEXT_TOKENS = 32_768  # of a model that no catalogue describes: less than any that is offered today
PER_MILLION = Decimal(1_000_000)
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


@dataclass(frozen=True)
class Price:
    """USD per token, and per request. `is_known` False: an upper limit."""

    prompt: Decimal
    completion: Decimal
    request: Decimal = Decimal(0)
    is_known: bool = True

    def is_within(self, limit: "Price") -> bool:
        return self.prompt <= limit.prompt and self.completion <= limit.completion

    def cost(self, prompt_tokens: int, completion_tokens: int) -> Decimal:
        return self.prompt * prompt_tokens + self.completion * completion_tokens + self.request


@dataclass(frozen=True)
class Model:
    """One entry of the catalogue."""

    context_tokens: int | None
    most_output_tokens: int | None
    parameters: frozenset[str]
    expires: date | None
    pricing: Mapping[str, Any]


FREE = Price(Decimal(0), Decimal(0))


class Catalogue:
    """What is known of models. It asks at its first use, not before."""

    def __init__(self, client: Client, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._profile = client.profile
        self._offers = Offers(client, monotonic=monotonic)
        self._monotonic = monotonic
        self._models: dict[str, Model] = {}
        self._ask_at = 0.0

    @property
    def is_known(self) -> bool:
        """Whether requests could be fitted to what the models take."""
        return bool(self._models) or not self._profile.is_openrouter

    def context_tokens(self, model: str | None = None) -> int:
        """Prompt and answer together; the smallest of the model and its fallbacks, and never more than the setting."""
        names = (model,) if model else (self._profile.model, *self._profile.fallbacks)
        found = [entry.context_tokens for name in names if (entry := self.find(name)) and entry.context_tokens]
        if self._profile.context_tokens:
            return min([self._profile.context_tokens, *found])
        return min(found) if found else UNKNOWN_CONTEXT_TOKENS

    def most_output_tokens(self, model: str | None = None) -> int | None:
        """The longest answer, where the catalogue says one."""
        entry = self.find(model or self._profile.model)
        return entry.most_output_tokens if entry else None

    def price(self, model: str, prompt_tokens: int, at: datetime) -> Price:
        """The most that a call with so many tokens in the prompt costs at that time, whichever provider answers."""
        if not self._profile.is_openrouter:
            return FREE
        entry, limit = self.find(model), self._limit()
        base = _price(entry.pricing, prompt_tokens, at) if entry else None
        if base is None:
            return limit
        name = model if model in self._models else model.partition(":")[0]
        found = [base]
        for pricing in self._offers.pricing(name):
            short, price = _price(pricing, 0, at), _price(pricing, prompt_tokens, at)
            if price and short and short.is_within(limit):  # others are not asked: `max_price`
                found.append(price)
        return Price(*(max(getattr(price, part) for price in found) for part in ("prompt", "completion", "request")))

    def problem(self, model: str, today: date | None = None) -> str | None:
        """What a person should know about a model before it is asked, or None."""
        if not self._profile.is_openrouter or not self._is_filled():
            return None
        entry = self.find(model)
        if entry is None:
            return f"{model} is not offered; set OPENROUTER_MODEL to one that is"
        today = today or datetime.now(UTC).date()
        price = _price(entry.pricing, 0, datetime.now(UTC))
        limit = self._limit()
        found = (
            entry.expires and entry.expires <= today + EXPIRES_SOON and f"{model} is withdrawn on {entry.expires}",
            "structured_outputs" not in entry.parameters
            and f"{model} takes no JSON schema, so the form of its answers is only asked for",
            price
            and not price.is_within(limit)
            and f"{model} costs {_per_million(price.prompt)} and {_per_million(price.completion)} USD per million "
            "tokens, more than OPENROUTER_MAX_PRICE_PROMPT and OPENROUTER_MAX_PRICE_COMPLETION allow",
        )
        return "; ".join(text for text in found if text) or None

    def fit(self, profile: Profile) -> Profile:
        """The profile with the parameters that its models all take: to ask for others leaves no provider."""
        entries = [self.find(name) for name in (profile.model, *profile.fallbacks)]
        known = [entry.parameters for entry in entries if entry is not None]
        if not known or len(known) < len(entries):
            return profile.with_supported(None)
        return profile.with_supported(frozenset.intersection(*known))

    def find(self, model: str) -> Model | None:
        """The entry of a model, by its name with or without a variant such as `:nitro`."""
        if not self._is_filled():
            return None
        return self._models.get(model) or self._models.get(model.partition(":")[0])

    def _is_filled(self) -> bool:
        if self._profile.is_openrouter and self._monotonic() >= self._ask_at:
            self._fetch()
        return bool(self._models)

    def _fetch(self) -> None:
        reply = self._client.get("/models")
        entries = (reply.body or {}).get("data")
        read = _read(entries) if reply.verdict.kind is Kind.OK and isinstance(entries, list) else {}
        self._models = read or self._models
        self._ask_at = self._monotonic() + (KEPT_SECONDS if read else ASKED_AGAIN_SECONDS)

    def _limit(self) -> Price:
        """The prices that `max_price` of every request allows at most."""
        profile = self._profile
        return Price(
            (profile.max_price_prompt or Decimal(0)) / PER_MILLION,
            (profile.max_price_completion or Decimal(0)) / PER_MILLION,
            is_known=False,
        )


def _read(entries: list[Any]) -> dict[str, Model]:
    models: dict[str, Model] = {}
    for entry in map(as_mapping, entries):
        model = _model(entry)
        for name in (entry.get("canonical_slug"), entry.get("id")):
            if isinstance(name, str) and name:
                models[name] = model
    return models


def _model(entry: Mapping[str, Any]) -> Model:
    provider = as_mapping(entry.get("top_provider"))
    contexts = [_count(entry.get("context_length")), _count(provider.get("context_length"))]
    parameters = entry.get("supported_parameters")
    return Model(
        context_tokens=min((count for count in contexts if count), default=None),
        most_output_tokens=_count(provider.get("max_completion_tokens")),
        parameters=frozenset(map(str, parameters if isinstance(parameters, list) else ())),
        expires=_date(entry.get("expiration_date")),
        pricing=as_mapping(entry.get("pricing")),
    )


def _price(pricing: Mapping[str, Any], prompt_tokens: int, at: datetime) -> Price | None:
    """The base price with the overrides that apply, later ones first; None when it is not fixed (-1) or not told."""
    told = dict(pricing)
    overrides = pricing.get("overrides")
    for override in map(as_mapping, overrides if isinstance(overrides, list) else ()):
        if _applies(override, prompt_tokens, at.astimezone(UTC)):
            told |= {name: override[name] for name in ("prompt", "completion", "request") if name in override}
    prompt, completion = cost_of(told.get("prompt")), cost_of(told.get("completion"))
    request = cost_of(told.get("request") or 0)
    if prompt is None or completion is None or request is None:
        return None
    return Price(prompt, completion, request)


def _applies(override: Mapping[str, Any], prompt_tokens: int, at: datetime) -> bool:
    least = override.get("min_prompt_tokens")
    if isinstance(least, int | float) and prompt_tokens < least:
        return False
    days = override.get("utc_days")
    if isinstance(days, list) and _DAYS[at.weekday()] not in [str(day).lower()[:3] for day in days]:
        return False
    start, end = override.get("utc_start"), override.get("utc_end")
    if not isinstance(start, int | float) or not isinstance(end, int | float):
        return True
    clock = at.hour * 100 + at.minute
    return start <= clock < end if start <= end else clock >= start or clock < end


def _per_million(price: Decimal) -> str:
    return f"{(price * PER_MILLION).normalize():f}"


def _count(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None


def _date(value: object) -> date | None:
    try:
        return date.fromisoformat(value[:10]) if isinstance(value, str) else None
    except ValueError:
        return None
