"""What models offer and cost, from the server's list, kept for hours and bounded where it cannot be had."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from openrouter import components

from openrouter_client.catalogue import KEPT_SECONDS, UNKNOWN_CONTEXT_TOKENS, Catalogue
from openrouter_client.profile import ProfileKind
from openrouter_client.settings import ClientSettings
from openrouter_client.transport import Client
from tests.openrouter_standin.contract import answer_problems
from tests.unit.openrouter_clients import answering, profile_of
from tests.unit.scripted_server import Script, ScriptedServer, http

MODEL = "google/gemini-2.5-flash"
NOON = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)  # a Sunday
PARAMETERS = ["max_tokens", "temperature", "seed", "response_format", "structured_outputs", "reasoning"]
M = Decimal(1_000_000)


def entry(name: str = MODEL, **changes: Any) -> dict[str, Any]:
    return {
        "id": name,
        "canonical_slug": f"{name}-2025-06",
        "name": name,
        "created": 1,
        "context_length": 1_000_000,
        "architecture": {
            "input_modalities": ["text"],
            "output_modalities": ["text"],
            "modality": "text->text",
            "tokenizer": "Gemini",
            "instruct_type": None,
        },
        "top_provider": {"is_moderated": False, "context_length": 900_000, "max_completion_tokens": 65_535},
        "supported_parameters": PARAMETERS,
        "supported_voices": None,
        "default_parameters": None,
        "per_request_limits": None,
        "links": {"details": "/x"},
        "expiration_date": None,
        "pricing": {"prompt": "0.0000003", "completion": "0.0000025"},
    } | changes


class Offer:
    """A catalogue over a real server; the clock is the test's."""

    def __init__(self, *scripts: Script, **profile: Any) -> None:
        self.server = ScriptedServer(list(scripts)).__enter__()
        self.client = Client(profile_of(self.server.url, **profile), ClientSettings())
        self.now = 1000.0
        self.catalogue = Catalogue(self.client, monotonic=lambda: self.now)

    def close(self) -> None:
        self.client.close()
        self.server.__exit__(None, None, None)


@pytest.fixture
def offer(request: pytest.FixtureRequest) -> Any:
    made: list[Offer] = []

    def make(*entries: dict[str, Any], raw: bytes | None = None, **profile: Any) -> Offer:
        made.append(Offer(answering(raw or http(200, {"data": list(entries)}, connection="close")), **profile))
        return made[-1]

    yield make
    for one in made:
        one.close()


def price(offered: Offer, prompt_tokens: int = 0, at: datetime = NOON, model: str = MODEL) -> tuple[Decimal, Decimal]:
    found = offered.catalogue.price(model, prompt_tokens, at)
    return found.prompt * M, found.completion * M


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


def test_money_is_exact(offer: Any) -> None:
    found = offer(entry()).catalogue.price(MODEL, 75_000, NOON)

    assert (found.prompt, found.completion, found.request) == (Decimal("0.0000003"), Decimal("0.0000025"), 0)
    assert found.cost(75_000, 6_000) == Decimal("0.0375")
    assert found.is_known


@pytest.mark.parametrize("name", [MODEL, f"{MODEL}-2025-06", f"{MODEL}:nitro"])
def test_a_model_is_found_by_each_of_its_names(offer: Any, name: str) -> None:
    assert price(offer(entry()), model=name) == (Decimal("0.3"), Decimal("2.5"))


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


@pytest.mark.parametrize(
    "raw", [http(500), http(200, "<html>"), http(200, {"data": None}), http(200, {"data": [7]}), b"x"]
)
def test_without_a_catalogue_limits_hold_and_it_is_asked_again_soon(offer: Any, raw: bytes) -> None:
    offered = offer(raw=raw, max_price_prompt=Decimal(3), max_price_completion=Decimal(15))

    assert price(offered) == (3, 15)
    assert offered.catalogue.context_tokens() == UNKNOWN_CONTEXT_TOKENS
    assert offered.catalogue.problem(MODEL) is None
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
