"""What a call can cost: the dearest that may answer, at that hour, for so long a prompt, exact to the last digit."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from tests.unit.openrouter_clients import answering
from tests.unit.openrouter_offers import MODEL, NOON, entry, offer, price
from tests.unit.scripted_server import http

__all__ = ["offer"]  # the fixture


def test_money_is_exact(offer: Any) -> None:
    found = offer(entry()).catalogue.price(MODEL, 75_000, NOON)

    assert (found.prompt, found.completion, found.request) == (Decimal("0.0000003"), Decimal("0.0000025"), 0)
    assert found.cost(75_000, 6_000) == Decimal("0.0375")
    assert found.is_known


def test_a_free_variant_has_its_own_entry(offer: Any) -> None:
    free = entry(f"{MODEL}:free", pricing={"prompt": "0", "completion": "0"})

    assert price(offer(entry(), free), model=f"{MODEL}:free") == (0, 0)


def test_long_prompts_cost_more_where_the_list_says_so(offer: Any) -> None:
    overrides = [{"min_prompt_tokens": 200_000, "prompt": "0.0000006", "completion": "0.000005"}]
    offered = offer(entry(pricing={"prompt": "0.0000003", "completion": "0.0000025", "overrides": overrides}))

    assert price(offered, 199_999) == (Decimal("0.3"), Decimal("2.5"))
    assert price(offered, 200_001) == (Decimal("0.6"), Decimal("5"))


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (datetime(2026, 11, 30, 2, 59, tzinfo=UTC), "0.1"),
        (datetime(2026, 11, 30, 3, 0, tzinfo=UTC), "0.3"),
        (datetime(2026, 11, 29, 23, 30, tzinfo=UTC), "0.3"),  # a Sunday
        (datetime(2026, 11, 30, 23, 30, tzinfo=UTC), "0.1"),
        (datetime(2026, 11, 30, 3, 30, tzinfo=timezone(timedelta(hours=1))), "0.1"),
    ],
)
def test_prices_by_the_hour_are_read_in_utc(offer: Any, at: datetime, expected: str) -> None:
    """The window goes over midnight, on Mondays; an unnamed price keeps its base."""
    cheap = {"utc_start": 2300, "utc_end": 300, "utc_days": ["monday"], "prompt": "0.0000001"}
    offered = offer(entry(pricing={"prompt": "0.0000003", "completion": "0.0000025", "overrides": [cheap]}))

    assert price(offered, at=at) == (Decimal(expected), Decimal("2.5"))


@pytest.mark.parametrize(("at", "expected"), [((9, 59), "0.3"), ((10, 0), "0.1"), ((11, 59), "0.1"), ((12, 0), "0.3")])
def test_a_window_within_a_day_ends_as_its_last_minute_does(offer: Any, at: tuple[int, int], expected: str) -> None:
    cheap = {"utc_start": 1000, "utc_end": 1200, "prompt": "0.0000001"}
    offered = offer(entry(pricing={"prompt": "0.0000003", "completion": "0.0000025", "overrides": [cheap]}))

    assert price(offered, at=datetime(2026, 11, 30, *at, tzinfo=UTC))[0] == Decimal(expected)


def test_of_several_overrides_the_last_one_holds(offer: Any) -> None:
    overrides = [{"prompt": "0.000001"}, {"prompt": "0.000002"}, {"prompt": "9", "min_prompt_tokens": 10**9}]
    offered = offer(entry(pricing={"prompt": "0", "completion": "0", "overrides": overrides}))

    assert price(offered)[0] == 2


@pytest.mark.parametrize(
    "pricing",
    [
        {"prompt": "-1", "completion": "-1"},
        {"prompt": "0", "completion": "0", "request": "-1"},
        {"prompt": "0", "completion": "9e999999"},  # more than any sum can hold
        {"prompt": "free", "completion": "NaN"},
        {"prompt": "0.1"},
        {},
        None,
    ],
)
def test_a_price_that_is_not_told_is_the_most_that_a_request_allows(offer: Any, pricing: Any) -> None:
    offered = offer(entry(pricing=pricing), max_price_prompt=Decimal(3), max_price_completion=Decimal(15))

    assert price(offered) == (3, 15)
    assert not offered.catalogue.price(MODEL, 0, NOON).is_known


def test_a_price_is_that_of_the_dearest_provider_that_may_answer(offer: Any) -> None:
    """One above the limits is not asked; one that grows dearer with a long prompt is."""
    grows = [{"min_prompt_tokens": 1000, "prompt": "0.000009"}]
    prices = [("0.0000001", "0.0000001"), ("0.000002", "0.000001"), ("0.00004", "0.00004"), ("-1", "-1")]
    endpoints: list[Any] = [{"pricing": {"prompt": one, "completion": other}} for one, other in prices]
    endpoints += [{"pricing": {"prompt": "0.0000001", "completion": "0.000003", "overrides": grows}}, {}, None, 7]
    offered = offer(entry(), max_price_prompt=Decimal(3), max_price_completion=Decimal(15))
    offered.server.scripts.append(answering(http(200, {"data": {"endpoints": endpoints}}, connection="close")))

    assert price(offered) == (Decimal(2), Decimal(3))
    assert price(offered, 1000) == (Decimal(9), Decimal(3))
    assert price(offered, 999) == (Decimal(2), Decimal(3))
    assert [request.line.split()[1] for request in offered.server.requests] == [
        "/api/v1/models",
        f"/api/v1/models/{MODEL}/endpoints",
    ]


@pytest.mark.parametrize("raw", [http(404), http(503), http(200, "x"), http(200, {"data": {"endpoints": 7}}), b"x"])
def test_without_providers_the_lists_price_holds(offer: Any, raw: bytes) -> None:
    offered = offer(entry(), max_price_prompt=Decimal(3), max_price_completion=Decimal(15))
    offered.server.scripts.append(answering(raw))

    assert price(offered) == (Decimal("0.3"), Decimal("2.5"))
