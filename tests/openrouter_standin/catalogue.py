"""The models that the stand-in offers, what they cost, and which endpoints of a model a request may use."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from tests.openrouter_standin.answers import ChatCall

CREATED = 1_750_000_000
MILLION = Decimal(1_000_000)
ALL_PARAMETERS = (
    "include_reasoning", "max_completion_tokens", "max_tokens", "reasoning", "response_format", "seed", "stop",
    "structured_outputs", "temperature", "top_p",
)  # fmt: skip
# What a provider must know when the request says require_parameters.
CHECKED = (
    "max_completion_tokens",
    "max_tokens",
    "reasoning",
    "response_format",
    "seed",
    "stop",
    "temperature",
    "top_p",
)


@dataclass(frozen=True)
class Endpoint:
    """One provider's offer of a model. Prices are USD per token, as the catalogue writes them: strings."""

    provider: str = "Google"
    prompt_price: str = "0.0000003"
    completion_price: str = "0.0000025"
    request_price: str = "0"
    context_tokens: int = 1_048_576
    max_completion_tokens: int = 65_536
    parameters: tuple[str, ...] = ALL_PARAMETERS
    is_zdr: bool = True
    collects: bool = False
    overrides: tuple[Mapping[str, Any], ...] = ()

    def pricing(self) -> dict[str, Any]:
        prices: dict[str, Any] = {
            "prompt": self.prompt_price,
            "completion": self.completion_price,
            "request": self.request_price,
        }
        return prices | ({"overrides": [dict(one) for one in self.overrides]} if self.overrides else {})

    def cost(self, prompt_tokens: int, completion_tokens: int) -> Decimal:
        """The charge for a call; an override counts from its `min_prompt_tokens` on."""
        prices = {"prompt": self.prompt_price, "completion": self.completion_price}
        for one in self.overrides:
            if prompt_tokens >= one.get("min_prompt_tokens", 0):
                prices |= {name: one[name] for name in prices if name in one}
        tokens = prompt_tokens * Decimal(prices["prompt"]) + completion_tokens * Decimal(prices["completion"])
        return tokens + Decimal(self.request_price)


@dataclass(frozen=True)
class Model:
    """A model of the catalogue."""

    id: str
    endpoints: tuple[Endpoint, ...] = field(default_factory=lambda: (Endpoint(),))
    expiration_date: str | None = None

    def entry(self) -> dict[str, Any]:
        """As GET /models lists it."""
        best = self.endpoints[0]
        return {
            "id": self.id,
            "canonical_slug": self.id,
            "name": self.id.replace("/", ": "),
            "created": CREATED,
            "description": "A model of the stand-in.",
            "context_length": best.context_tokens,
            "architecture": _architecture(),
            "pricing": best.pricing(),
            "top_provider": {
                "context_length": best.context_tokens,
                "max_completion_tokens": best.max_completion_tokens,
                "is_moderated": False,
            },
            "per_request_limits": None,
            "supported_parameters": sorted({name for one in self.endpoints for name in one.parameters}),
            "default_parameters": None,
            "supported_voices": None,
            "links": {"details": f"/api/v1/models/{self.id}/endpoints"},
            "expiration_date": self.expiration_date,
        }

    def offers(self) -> dict[str, Any]:
        """As GET /models/{author}/{slug}/endpoints shows it."""
        return {
            "id": self.id,
            "name": self.id,
            "created": CREATED,
            "description": "A model of the stand-in.",
            "architecture": {**_architecture(), "tokenizer": "Other", "instruct_type": None},
            "endpoints": [_offer(self, one) for one in self.endpoints],
        }


MODELS = (
    Model("google/gemini-2.5-flash"),
    Model("openai/gpt-small", (Endpoint("OpenAI", "0.0000004", "0.0000016", context_tokens=128_000, is_zdr=False),)),
    Model("mistralai/tiny", (Endpoint("Mistral", "0.0000001", "0.0000001", context_tokens=8_192),)),
    Model("qwen/no-schema", (Endpoint("Alibaba", parameters=("max_tokens", "temperature"), collects=True),)),
    Model("anthropic/dear", (Endpoint("Anthropic", "0.000015", "0.000075", context_tokens=200_000),)),
    Model("google/going", expiration_date="2026-12-31"),
    Model("meta/old", (Endpoint("Together", "0.0000002", "0.0000002", context_tokens=4_096),)),
    Model(
        "google/gemini-long",
        (Endpoint(overrides=({"min_prompt_tokens": 200_000, "prompt": "0.0000006", "completion": "0.000005"},)),),
    ),
)  # fmt: skip


def excluded_by(call: ChatCall, endpoint: Endpoint) -> list[str]:
    """Which wishes of the request rule an endpoint out."""
    wishes = call.body.get("provider") or {}
    limit = wishes.get("max_price") or {}
    reasons = {
        "data_collection": wishes.get("data_collection") == "deny" and endpoint.collects,
        "zdr": bool(wishes.get("zdr")) and not endpoint.is_zdr,
        "max_price": _is_over(limit.get("prompt"), endpoint.prompt_price)
        or _is_over(limit.get("completion"), endpoint.completion_price),
        "ignore": endpoint.provider in (wishes.get("ignore") or ()),
        "require_parameters": bool(wishes.get("require_parameters")) and bool(unsupported(call, endpoint)),
    }
    return [name for name, holds in reasons.items() if holds]


def unsupported(call: ChatCall, endpoint: Endpoint) -> list[str]:
    """Parameters of the request that the endpoint does not know; without require_parameters they are dropped."""
    asked = [name for name in CHECKED if call.body.get(name) is not None]
    unknown = [name for name in asked if name not in endpoint.parameters]
    if call.schema is not None and "structured_outputs" not in endpoint.parameters and "response_format" not in unknown:
        unknown.append("response_format")
    return unknown


def listing(models: Iterable[Model]) -> dict[str, Any]:
    entries = [model.entry() for model in models]
    return {"data": entries, "links": {"next": None}, "total_count": len(entries)}


def _is_over(limit: str | None, price: str) -> bool:
    """Limits are USD per million tokens, prices USD per token."""
    return limit is not None and Decimal(price) * MILLION > Decimal(limit)


def _architecture() -> dict[str, Any]:
    return {"modality": "text->text", "input_modalities": ["text"], "output_modalities": ["text"], "tokenizer": "Other"}


def _offer(model: Model, endpoint: Endpoint) -> dict[str, Any]:
    return {
        "name": f"{endpoint.provider} | {model.id}",
        "model_id": model.id,
        "model_name": model.id,
        "provider_name": endpoint.provider,
        "tag": endpoint.provider.lower(),
        "context_length": endpoint.context_tokens,
        "max_completion_tokens": endpoint.max_completion_tokens,
        "max_prompt_tokens": None,
        "pricing": endpoint.pricing(),
        "quantization": None,
        "service_tier": None,
        "status": 0,
        "supported_parameters": list(endpoint.parameters),
        "supports_implicit_caching": False,
        "supports_diarization": False,
        "supports_tool_choice": {"auto": False, "function": False, "none": False, "required": False},
        "native_tools": {},
        "latency_last_30m": None,
        "throughput_last_30m": None,
        "uptime_last_5m": None,
        "uptime_last_30m": None,
        "uptime_last_1d": None,
    }
