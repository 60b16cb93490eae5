"""Tokens and money of a call, from usage as providers really send it."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openrouter_client.usage import (
    MOST_USD,
    CostSource,
    bound_of,
    bound_tokens,
    cost_of,
    generation_cost,
    read_usage,
)

TOKENS = {"prompt_tokens": 1000, "completion_tokens": 200}
UPSTREAM = {"cost_details": {"upstream_inference_cost": 0.02}}


def told_cost(usage: object, **headers: str) -> tuple[Decimal | None, str]:
    found = read_usage({"usage": usage}, headers)
    return found.cost_usd, str(found.cost_source)


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        ({**TOKENS, "cost": 0.0375}, "0.0375"),
        ({**TOKENS, "cost": "0.1"}, "0.1"),
        ({**TOKENS, "cost": 0}, "0"),  # a free model
        ({**TOKENS, "cost": 1e-07}, "0.0000001"),
        ({**TOKENS, "cost": 0.02, "is_byok": False, **UPSTREAM}, "0.02"),  # the provider's part is in it already
        ({**TOKENS, "cost": 0.001, "is_byok": True, **UPSTREAM}, "0.021"),
        ({**TOKENS, "cost": 0, "is_byok": True, **UPSTREAM}, "0.02"),
        ({**TOKENS, "cost": 0.001, "is_byok": True, "cost_details": None}, "0.001"),
    ],
)
def test_the_cost_is_the_whole_charge_and_no_more(usage: dict[str, Any], cost: str) -> None:
    assert told_cost(usage) == (Decimal(cost), "provider")


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        [],
        "free",
        {"prompt_tokens": 0, "completion_tokens": 0, "cost": 0},
        {**TOKENS},
        {**TOKENS, "cost": None},
        {**TOKENS, "cost": -1},
        {**TOKENS, "cost": float("nan")},
        {**TOKENS, "cost": True},
        {**TOKENS, "cost": "a lot"},
        {**TOKENS, "cost": [1]},
    ],
)
def test_what_nobody_has_counted_is_unknown_not_free(usage: object) -> None:
    assert told_cost(usage) == (None, "unknown")


def test_a_cached_answer_is_free_and_a_server_of_ones_own_takes_no_money() -> None:
    body = {"usage": {"prompt_tokens": 0, "completion_tokens": 0, "cost": 0}}

    assert told_cost(body["usage"], **{"x-openrouter-cache-status": "HIT"}) == (Decimal(0), "cache")
    assert told_cost(body["usage"], **{"x-openrouter-cache-status": "MISS"}) == (None, "unknown")
    local = read_usage({"usage": TOKENS}, {}, is_local=True)
    assert (local.cost_usd, local.cost_source, local.prompt_tokens) == (Decimal(0), CostSource.LOCAL, 1000)


def test_tokens_are_read_with_their_parts() -> None:
    details = {"prompt_tokens_details": {"cached_tokens": 7}, "completion_tokens_details": {"reasoning_tokens": 9}}

    found = read_usage({"usage": {**TOKENS, **details}}, {})

    assert (found.prompt_tokens, found.completion_tokens, found.cached_tokens, found.reasoning_tokens) == (
        1000, 200, 7, 9,
    )  # fmt: skip


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
USAGES = st.dictionaries(
    st.sampled_from(["prompt_tokens", "completion_tokens", "cost", "is_byok", "cost_details", "prompt_tokens_details"]),
    JSON | st.dictionaries(st.just("upstream_inference_cost"), JSON),
)


@given(JSON | USAGES)
def test_no_usage_breaks_the_reading_and_no_cost_is_beyond_bounds(usage: Any) -> None:
    found = read_usage({"usage": usage}, {})

    assert found.prompt_tokens >= 0
    assert found.completion_tokens >= 0
    assert found.cost_usd is None or 0 <= found.cost_usd <= 2 * MOST_USD
    assert (found.cost_usd is None) == (found.cost_source is CostSource.UNKNOWN)


def test_a_generation_tells_its_cost_by_the_same_rule() -> None:
    assert generation_cost({"data": {"total_cost": 0.5, "upstream_inference_cost": 0.4, "is_byok": False}}) == Decimal(
        "0.5"
    )
    assert generation_cost({"data": {"total_cost": 0.1, "upstream_inference_cost": 0.4, "is_byok": True}}) == Decimal(
        "0.5"
    )
    assert generation_cost({"total_cost": 0}) == 0
    assert generation_cost({"data": {"id": "gen-1"}}) is None


def test_a_bound_is_above_what_norwegian_really_needs() -> None:
    """423 characters of Norwegian were 122, 141 and 163 tokens in three tokenizers."""
    assert bound_tokens(423) == 170
    assert bound_tokens(0) == 0
    assert bound_tokens(1) == 1


@given(JSON)
def test_a_cost_is_an_amount_within_bounds_or_nothing(value: Any) -> None:
    amount = cost_of(value)

    assert amount is None or (amount.is_finite() and 0 <= amount <= MOST_USD)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("1234567890" * 100, 1000), ("!?#%&/()=" * 100, 900), ("😀" * 100, 300), ("日本" * 100, 400), ("\n\t" * 100, 200)],
)  # fmt: skip
def test_figures_and_signs_are_tokens_of_their_own(text: str, tokens: int) -> None:
    """What many tokenizers make of them: a budget must hold for a transcript of nothing else."""
    assert bound_of(text.encode()) >= tokens


def test_running_text_is_bounded_as_measured() -> None:
    text = "Så gikk vi ned til elva i går, og der lå båten. " * 100

    assert bound_tokens(len(text)) <= bound_of(text.encode()) <= 1.15 * bound_tokens(len(text))
    assert bound_of(b"") == 0
