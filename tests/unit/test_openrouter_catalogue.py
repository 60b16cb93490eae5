"""What models offer, from the server's list, kept for hours and bounded where it cannot be had."""

from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from openrouter import components

from openrouter_client.catalogue import KEPT_SECONDS, UNKNOWN_CONTEXT_TOKENS
from openrouter_client.profile import ProfileKind
from tests.openrouter_standin.contract import answer_problems
from tests.unit.openrouter_clients import answering
from tests.unit.openrouter_offers import MODEL, NOON, PARAMETERS, entry, offer, price
from tests.unit.scripted_server import http

__all__ = ["offer"]  # the fixture


def test_the_entries_of_these_tests_are_what_the_sdk_knows() -> None:
    overrides = [{"prompt": "0.1", "min_prompt_tokens": 7, "utc_start": 100, "utc_end": 400, "utc_days": ["sunday"]}]
    priced = entry(pricing={"prompt": "1", "completion": "2", "overrides": overrides})

    assert answer_problems("models", {"data": [entry(), priced], "links": {"next": None}, "total_count": 2}) == []
    assert components.Model.model_validate(entry()).id == MODEL


def test_the_catalogue_is_asked_when_it_is_needed_and_kept_for_hours(offer: Any) -> None:
    offered = offer(entry())
    assert offered.server.connection_count == 0

    for _ in range(3):
        assert offered.catalogue.context_tokens(MODEL) == 900_000
    assert offered.server.requests[0].line == "GET /api/v1/models HTTP/1.1"
    assert offered.server.connection_count == 1
    offered.now += KEPT_SECONDS - 1
    offered.catalogue.context_tokens(MODEL)
    assert offered.server.connection_count == 1
    offered.now += 2
    offered.catalogue.context_tokens(MODEL)
    assert offered.server.connection_count == 2


@pytest.mark.parametrize("name", [MODEL, f"{MODEL}-2025-06", f"{MODEL}:nitro"])
def test_a_model_is_found_by_each_of_its_names(offer: Any, name: str) -> None:
    assert price(offer(entry()), model=name) == (Decimal("0.3"), Decimal("2.5"))


@pytest.mark.parametrize(
    "raw", [http(500), http(200, "<html>"), http(200, {"data": None}), http(200, {"data": [7]}), b"x"]
)
def test_without_a_catalogue_limits_hold_and_it_is_asked_again_soon(offer: Any, raw: bytes) -> None:
    offered = offer(raw=raw, max_price_prompt=Decimal(3), max_price_completion=Decimal(15))

    assert price(offered) == (3, 15)
    assert offered.catalogue.context_tokens() == UNKNOWN_CONTEXT_TOKENS
    assert offered.catalogue.problem(MODEL) is None
    assert not offered.catalogue.is_known
    assert offered.catalogue.fit(offered.client.profile).supported is None
    assert offered.server.connection_count == 1
    offered.now += 301
    offered.catalogue.context_tokens()
    assert offered.server.connection_count == 2


def test_an_old_catalogue_is_better_than_none(offer: Any) -> None:
    offered = offer(entry())
    offered.server.scripts.append(answering(http(503)))
    offered.catalogue.context_tokens()
    offered.now += KEPT_SECONDS + 1

    assert price(offered) == (Decimal("0.3"), Decimal("2.5"))
    assert [request.line.split()[1] for request in offered.server.requests[:2]] == ["/api/v1/models"] * 2


def test_the_context_is_the_smallest_of_all_that_may_answer(offer: Any) -> None:
    small = entry("a/small", context_length=32_000, top_provider={"is_moderated": False})

    assert offer(entry(), small, fallbacks=("a/small",)).catalogue.context_tokens() == 32_000
    assert offer(entry(), small).catalogue.context_tokens() == 900_000
    assert offer(entry(), context_tokens=50_000).catalogue.context_tokens() == 50_000
    assert offer(small, context_tokens=50_000).catalogue.context_tokens("a/small") == 32_000
    assert offer(entry()).catalogue.most_output_tokens() == 65_535


def test_a_request_is_fitted_to_what_all_models_take(offer: Any) -> None:
    plain = entry("a/plain", supported_parameters=["max_tokens", "temperature"])
    offered = offer(entry(), plain, fallbacks=("a/plain",))

    assert offered.catalogue.fit(offered.client.profile).supported == {"max_tokens", "temperature"}
    alone = offer(entry())
    assert alone.catalogue.fit(alone.client.profile).supported == frozenset(PARAMETERS)
    unknown = offer(entry(), fallbacks=("nobody/knows",))
    assert unknown.catalogue.fit(unknown.client.profile).supported is None


def test_what_is_wrong_with_a_model_is_told_before_it_is_asked(offer: Any) -> None:
    """OpenRouterTeam/openrouter-examples#20: which models hold to a schema?"""
    today = date(2026, 11, 29)
    offered = offer(
        entry(),
        entry("a/old", expiration_date="2026-12-10"),
        entry("a/later", expiration_date="2027-12-10"),
        entry("a/plain", supported_parameters=["max_tokens"]),
        entry("a/dear", pricing={"prompt": "0.00001", "completion": "0.00002"}),
        max_price_prompt=Decimal(3),
        max_price_completion=Decimal(15),
    )
    problems = {
        name: offered.catalogue.problem(name, today) for name in (MODEL, "a/old", "a/later", "a/plain", "a/dear")
    }

    assert problems[MODEL] is None
    assert problems["a/later"] is None
    assert "withdrawn on 2026-12-10" in str(problems["a/old"])
    assert "no JSON schema" in str(problems["a/plain"])
    assert "10 and 20 USD per million" in str(problems["a/dear"])
    assert "not offered" in str(offered.catalogue.problem("a/gone", today))


def test_a_server_of_ones_own_is_what_the_settings_say(offer: Any) -> None:
    offered = offer(entry(), kind=ProfileKind.GENERIC, model="llama", context_tokens=8192)

    assert offered.catalogue.is_known
    assert offered.catalogue.context_tokens() == 8192
    assert offered.catalogue.price("llama", 10**6, NOON).cost(10**6, 10**6) == 0
    assert offered.catalogue.problem("llama") is None
    assert offered.catalogue.fit(offered.client.profile).supported is None
    assert offered.server.connection_count == 0


@pytest.mark.parametrize("value", [None, 7, "x", [], {}, True, -1])
def test_members_of_any_type_are_survived(offer: Any, value: Any) -> None:
    members = ["canonical_slug", "context_length", "top_provider", "supported_parameters", "expiration_date", "pricing"]
    offered = offer(entry(**dict.fromkeys(members, value)), {"id": value}, entry("b/c", pricing={"overrides": [value]}))

    assert offered.catalogue.context_tokens() > 0
    assert offered.catalogue.price(MODEL, 5, NOON).cost(1, 1) == 0
    assert offered.catalogue.price("b/c", 5, NOON).cost(1, 1) == 0
    offered.catalogue.problem(MODEL)
