"""Tokens and money of a call. Money is Decimal, in USD.

A provider's own price stands in `cost`. With a key of one's own at the provider (`is_byok`), `cost` is OpenRouter's
fee alone, and what the provider takes comes on top; without one, the provider's part is in `cost` already.
"""

import math
import string
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Any

from openrouter_client.error_body import as_mapping

CHARACTERS_PER_TOKEN = 2.5  # fewer than any tokenizer measured on Norwegian: what a prompt has at most
LIKELY_CHARACTERS_PER_TOKEN = 3.3
_WORD_LETTERS = string.ascii_letters.encode() + b" "
_LATIN_1 = b"\xc3"
MOST_TOKENS = 10**9
MOST_USD = Decimal(100_000)
CACHE_STATUS = "x-openrouter-cache-status"


class CostSource(StrEnum):
    """Where a cost is known from."""

    PROVIDER = "provider"  # the answer's own usage
    GENERATION = "generation"  # asked for afterwards
    ESTIMATE = "estimate"  # tokens times the catalogue's price
    LOCAL = "local"  # a server of one's own takes no money
    CACHE = "cache"  # the answer came from OpenRouter's response cache
    UNBILLED = "unbilled"  # it cannot have cost anything
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Usage:
    """What one call used. `cost_usd` None = it does not say. `completion_tokens` include `reasoning_tokens`."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: Decimal | None = None
    cost_source: CostSource = CostSource.UNKNOWN


def read_usage(body: object, headers: Mapping[str, str], *, is_local: bool = False) -> Usage:
    """The usage that an answer reports. Numbers that are none count as not reported."""
    told = as_mapping(as_mapping(body).get("usage"))
    prompt, completion = _count(told.get("prompt_tokens")), _count(told.get("completion_tokens"))
    cost, source = _cost(told, prompt + completion, headers, is_local=is_local)
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        reasoning_tokens=_count(as_mapping(told.get("completion_tokens_details")).get("reasoning_tokens")),
        cached_tokens=_count(as_mapping(told.get("prompt_tokens_details")).get("cached_tokens")),
        cost_usd=cost,
        cost_source=source,
    )


def is_cache_hit(headers: Mapping[str, str]) -> bool:
    """Whether OpenRouter answered from its response cache, which is free. `headers` has names in lower case."""
    return headers.get(CACHE_STATUS, "").strip().upper() == "HIT"


def generation_cost(generation: Mapping[str, Any]) -> Decimal | None:
    """The cost that GET /generation tells; None when it tells none."""
    told = as_mapping(generation.get("data")) or generation
    cost = cost_of(told.get("total_cost"))
    if cost is not None and told.get("is_byok") is True:
        cost += cost_of(told.get("upstream_inference_cost")) or Decimal(0)
    return cost


def bound_tokens(characters: int) -> int:
    """The most tokens that a text of this length can have."""
    return math.ceil(characters / CHARACTERS_PER_TOKEN)


def bound_of(text: bytes) -> int:
    """The most tokens that a text of these bytes has: figures, signs and rare letters are tokens of their own."""
    latin = text.count(_LATIN_1)  # the first of the two bytes of å, ø, æ
    words = len(text) - len(text.translate(None, _WORD_LETTERS)) + 2 * latin
    return bound_tokens(words - latin) + len(text) - words


def amount(value: object) -> Decimal | None:
    """An amount in USD as it stands in JSON, a number or a text; None when it is neither or not finite."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = Decimal(str(value))
    except InvalidOperation:
        return None
    return found if found.is_finite() else None


def cost_of(value: object) -> Decimal | None:
    """An amount that a call can have cost; None for what is none."""
    found = amount(value)
    return found if found is not None and 0 <= found <= MOST_USD else None


def _cost(
    told: Mapping[str, Any], tokens: int, headers: Mapping[str, str], *, is_local: bool
) -> tuple[Decimal | None, CostSource]:
    if is_local:
        return Decimal(0), CostSource.LOCAL
    if is_cache_hit(headers):
        return Decimal(0), CostSource.CACHE
    cost = cost_of(told.get("cost"))
    if cost is None or tokens == 0:  # zeros beside an answer: nobody has counted
        return None, CostSource.UNKNOWN
    if told.get("is_byok") is True:
        cost += cost_of(as_mapping(told.get("cost_details")).get("upstream_inference_cost")) or Decimal(0)
    return cost, CostSource.PROVIDER


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return 0
    return int(min(max(value, 0), MOST_TOKENS))
