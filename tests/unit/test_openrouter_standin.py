"""The stand-in of OpenRouter is held to the official SDK: its answers, its errors, its judgement, its books."""

import json
from decimal import Decimal
from typing import Any

import httpx
import pytest
from openrouter import OpenRouter, errors

from tests.openrouter_standin import Answer, Fault, StandIn, faults
from tests.openrouter_standin.catalogue import MODELS
from tests.openrouter_standin.contract import ERROR_MODELS, answer_problems
from tests.unit.standin_client import BODY, CACHED, ask, client, client_of, events_of
from tests.waiting import wait_until

__all__ = ["client"]  # the fixture


# Its answers are those that the SDK reads.


@pytest.mark.parametrize(
    "fault", [None, faults.refuses(), faults.in_parts(), faults.cut_off(), faults.only_reasoning(), faults.byok(0.01)]
)
def test_answer_is_what_the_sdk_reads(standin: StandIn, client: httpx.Client, fault: Fault | None) -> None:
    if fault:
        standin.script(fault, repeats=True)
    whole, streamed = ask(client), ask(client, stream=True)

    assert answer_problems("chat", whole.json()) == []
    assert [problem for chunk in events_of(streamed) for problem in answer_problems("chunk", chunk)] == []
    assert whole.headers["X-Generation-Id"] == whole.json()["id"]
    assert streamed.text.endswith("data: [DONE]\n\n")


def test_answer_with_a_field_of_its_own_is_not(client: httpx.Client) -> None:
    answer = ask(client).json()
    answer["choices"][0]["frobnicate"] = answer["colour"] = 1

    assert answer_problems("chat", answer) == [".colour", ".choices[0].frobnicate"]


def test_what_is_looked_up_is_what_the_sdk_reads(client: httpx.Client) -> None:
    generation = ask(client).json()["id"]

    assert answer_problems("models", client.get("models").json()) == []
    assert answer_problems("endpoints", client.get("models/google/gemini-long/endpoints").json()) == []
    assert answer_problems("key", client.get("key").json()) == []
    assert answer_problems("generation", client.get(f"generation?id={generation}").json()) == []
    assert client.get("credits").status_code == 403
    assert client.get(f"generation/content?id={generation}").status_code == 404


@pytest.mark.parametrize(
    "fault",
    [
        *(faults.refused(status, error_type="unmapped") for status in ERROR_MODELS),
        faults.upstream(400, "json_schema is not supported"),
        faults.free_models_per_day(5),
        faults.in_flight_budget(),
        faults.affords(4000, 100),
        faults.moderated("violence"),
    ],
    ids=lambda fault: fault.name,
)
def test_error_is_what_the_sdk_reads(standin: StandIn, client: httpx.Client, fault: Fault) -> None:
    standin.script(fault)
    answer = ask(client)

    assert answer.status_code == fault.status
    assert answer_problems(str(answer.status_code), answer.json()) == []


def test_sdk_itself_speaks_with_it(standin: StandIn) -> None:
    with OpenRouter(api_key=standin.key, server_url=standin.base_url) as sdk:
        answer = sdk.chat.send(**BODY)
        assert json.loads(str(answer.choices[0].message.content)) == {"title": "Svar"}
        with sdk.chat.send(**BODY, stream=True) as stream:
            said = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
        assert json.loads(said) == {"title": "Svar"}
        standin.script(faults.rate_limited(retry_after="7"))
        with pytest.raises(errors.TooManyRequestsResponseError, match="Rate limit exceeded") as raised:
            sdk.chat.send(**BODY)

    assert raised.value.headers["Retry-After"] == "7"


# It judges requests.


@pytest.mark.parametrize(
    ("mistake", "named"),
    [
        ({"transforms": ["middle-out"]}, "transforms"),
        ({"tempratur": 1}, "tempratur"),
        ({"provider": {"requireParameters": True}}, "requireParameters"),
        ({"temperature": "warm"}, "temperature"),
        ({"temperature": 9}, "temperature"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "boss", "content": "Hei"}]}, "messages"),
        ({"response_format": {"type": "jason"}}, "response_format"),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "n" * 80}}}, "json_schema.name"),
        ({"plugins": [{"id": "no-such"}]}, "plugins"),
        ({"session_id": "x" * 257}, "session_id"),
        ({"provider": {"max_price": {"prompt": 3}}}, "max_price"),
        ({"reasoning": {"effort": "some"}}, "effort"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_wrong_request_is_refused(client: httpx.Client, mistake: dict[str, Any], named: str) -> None:
    answer = ask(client, **mistake)

    assert answer.status_code == 400
    assert named in answer.json()["error"]["message"]
    assert answer_problems("400", answer.json()) == []


def test_without_the_right_key_nothing_is_told(standin: StandIn) -> None:
    with httpx.Client(base_url=standin.base_url, headers={"Authorization": "Bearer sk-or-v1-other"}) as stranger:
        answers = [ask(stranger), stranger.get("key"), stranger.get("generation?id=gen-1")]

    assert [answer.status_code for answer in answers] == [401, 401, 401]
    assert answers[0].json()["error"]["metadata"]["error_type"] == "authentication"
    assert standin.billing == []


# Its books.


def test_completed_request_is_billed_by_its_tokens(standin: StandIn, client: httpx.Client) -> None:
    answer = ask(client).json()
    usage = answer["usage"]

    (billed,) = standin.billing
    price = usage["prompt_tokens"] * Decimal("0.0000003") + usage["completion_tokens"] * Decimal("0.0000025")
    assert (billed.generation_id, billed.cost, billed.session_id) == (answer["id"], price, "job-1")
    assert Decimal(str(usage["cost"])) == price
    assert standin.account.balance == Decimal(10) - price
    assert client.get("key").json()["data"]["usage"] == float(price)
    assert client.get(f"generation?id={answer['id']}").json()["data"]["total_cost"] == float(price)


@pytest.mark.parametrize(("prompt", "cost"), [(199_999, "0.0624997"), (200_000, "0.125")])
def test_long_prompt_is_billed_by_its_own_price(prompt: int, cost: str) -> None:
    (endpoint,) = next(model for model in MODELS if model.id == "google/gemini-long").endpoints

    assert endpoint.cost(prompt, 1000) == Decimal(cost)


@pytest.mark.parametrize(
    ("fault", "billed"),
    [
        (faults.empty("", finish_reason=None), 0),
        (faults.no_choices(), 0),
        (faults.died_halfway(), 0),
        (faults.empty("", finish_reason="stop"), 1),
        (faults.only_reasoning(), 1),
        (faults.cut_off(), 1),
        (faults.refused(503), 0),
        (faults.only_an_error(), 0),
        (faults.edge_page(), 0),
    ],
    ids=lambda value: getattr(value, "name", value),
)
@pytest.mark.parametrize("stream", [False, True])
def test_zero_completion_insurance(
    standin: StandIn, client: httpx.Client, fault: Fault, billed: int, stream: bool
) -> None:
    standin.script(fault)
    ask(client, stream=stream)

    assert standin.billed_count == billed


@pytest.mark.parametrize("stream", [False, True])
def test_request_that_the_client_gave_up_is_billed(standin: StandIn, client: httpx.Client, stream: bool) -> None:
    standin.script(faults.silent())
    with pytest.raises(httpx.ReadTimeout):
        client.post("chat/completions", json=BODY | {"stream": stream}, timeout=0.2, headers=CACHED)

    wait_until(lambda: standin.billed_count == 1, what="the bill")
    assert ask(client, CACHED, stream=stream).headers["X-OpenRouter-Cache-Status"] == "MISS"


def test_stream_that_the_client_left_is_billed_for_what_was_said(standin: StandIn, client: httpx.Client) -> None:
    standin.answers(lambda call: Answer("ord " * 500))
    standin.script(faults.dripping(0.03))
    with client.stream("POST", "chat/completions", json=BODY | {"stream": True}) as answer:
        next(line for line in answer.iter_lines() if '"content": "ord' in line)
    wait_until(lambda: standin.billing, what="the bill")

    (billed,) = standin.billing
    assert billed.is_cancelled
    assert 0 < billed.completion_tokens < 200


def test_prompt_that_is_not_affordable_is_refused_with_what_would_be(client: httpx.Client, standin: StandIn) -> None:
    standin.account.balance = Decimal("0.001")
    refused = ask(client, max_completion_tokens=65_000)
    message = refused.json()["error"]["message"]
    affordable = int(message.split("can only afford ")[1].split(".")[0])

    assert refused.status_code == 402
    assert "requested up to 65000 tokens" in message
    assert 300 < affordable < 400
    assert ask(client, max_completion_tokens=affordable).status_code == 200


def test_without_a_limit_the_longest_answer_has_to_be_affordable(client: httpx.Client, standin: StandIn) -> None:
    standin.account.balance = Decimal("0.1")
    body = {name: value for name, value in BODY.items() if name != "max_completion_tokens"}
    answer = client.post("chat/completions", json=body)

    assert answer.status_code == 402
    assert "requested up to 65536 tokens" in answer.json()["error"]["message"]


def test_generation_is_known_after_the_lag() -> None:
    now = [1_800_000_000.0]
    with StandIn(generation_lag_seconds=15, clock=lambda: now[0]) as standin, client_of(standin) as client:
        path = f"generation?id={ask(client).json()['id']}"
        early = client.get(path)
        now[0] += 16
        late = client.get(path)

    assert (early.status_code, late.status_code) == (404, 200)
    assert answer_problems("404", early.json()) == []
    assert late.json()["data"]["session_id"] == "job-1"


# The response cache.


@pytest.mark.parametrize("stream", [False, True])
def test_identical_request_is_answered_from_the_cache_for_nothing(
    standin: StandIn, client: httpx.Client, stream: bool
) -> None:
    first, second = (ask(client, CACHED, stream=stream) for _ in range(2))
    told = events_of(second)[-1] if stream else second.json()

    assert [answer.headers["X-OpenRouter-Cache-Status"] for answer in (first, second)] == ["MISS", "HIT"]
    assert second.headers["X-OpenRouter-Cache-Source-Id"] == first.headers["X-Generation-Id"]
    assert second.headers["X-Generation-Id"] != first.headers["X-Generation-Id"]
    assert 590 < int(second.headers["X-OpenRouter-Cache-TTL"]) <= 600
    assert (told["usage"]["total_tokens"], told["usage"]["cost"]) == (0, 0.0)
    assert standin.billed_count == 1
    known = client.get(f"generation?id={second.headers['X-Generation-Id']}").json()["data"]
    assert known["response_cache_source_id"] == first.headers["X-Generation-Id"]


def test_what_the_cache_tells_apart(standin: StandIn, client: httpx.Client) -> None:
    ask(client, CACHED)
    others = [
        ask(client, CACHED, stream=True),
        ask(client, CACHED, seed=1),
        client.post("chat/completions", json=dict(reversed(BODY.items())), headers=CACHED),
        ask(client, CACHED | {"X-OpenRouter-Cache-Clear": "true"}),
        ask(client),
    ]

    statuses = [answer.headers.get("X-OpenRouter-Cache-Status") for answer in others]
    assert statuses == ["MISS", "MISS", "MISS", "MISS", None]
    assert standin.billed_count == 6


def test_cache_forgets_in_time_and_keeps_no_failure_and_nothing_of_a_zdr_account() -> None:
    now = [1_800_000_000.0]
    with StandIn(clock=lambda: now[0]) as standin, client_of(standin) as client:
        unreasoned = faults.content("hei", finish_reason=None)
        standin.script(faults.ends_early(), faults.died_halfway(), unreasoned, faults.rate_limited())
        statuses = [ask(client, CACHED, stream=True).headers.get("X-OpenRouter-Cache-Status") for _ in range(6)]
        now[0] += 601
        statuses.append(ask(client, CACHED, stream=True).headers["X-OpenRouter-Cache-Status"])
    with StandIn(is_zdr_account=True) as standin, client_of(standin) as client:
        assert [ask(client, CACHED).headers.get("X-OpenRouter-Cache-Status") for _ in range(2)] == [None, None]

    assert statuses == ["MISS", "MISS", "MISS", None, "MISS", "HIT", "MISS"]
