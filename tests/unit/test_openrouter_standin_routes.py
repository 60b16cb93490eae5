"""The stand-in of OpenRouter routes, fails and breaks connections as its script says."""

import json
import threading
from typing import Any

import httpx
import pytest

from tests.openrouter_standin import Answer, Gate, StandIn, faults
from tests.openrouter_standin.contract import answer_problems
from tests.unit.standin_client import BODY, CACHED, ask, client, client_of, events_of
from tests.waiting import stays, wait_until

__all__ = ["client"]  # the fixture
LONG = [{"role": "user", "content": "ord " * 9_000}]


@pytest.mark.parametrize(
    ("model", "provider", "excluded"),
    [
        ("qwen/no-schema", {"data_collection": "deny"}, ["data_collection"]),
        ("qwen/no-schema", {"require_parameters": True}, ["require_parameters"]),
        ("openai/gpt-small", {"zdr": True}, ["zdr"]),
        ("anthropic/dear", {"max_price": {"prompt": "3"}}, ["max_price"]),
        ("anthropic/dear", {"max_price": {"completion": "15"}}, ["max_price"]),
        ("google/gemini-2.5-flash", {"ignore": ["Google"]}, ["ignore"]),
    ],
)
def test_wish_that_no_endpoint_meets_is_refused_with_its_name(
    standin: StandIn, client: httpx.Client, model: str, provider: dict[str, Any], excluded: list[str]
) -> None:
    answer = ask(client, model=model, provider=provider)

    assert answer.status_code == 404
    error = answer.json()["error"]
    assert error["availability"]["excluded_by"] == excluded
    assert error["metadata"]["error_type"] == "constraint_filtered"
    assert answer_problems("404", answer.json()) == []
    assert standin.billing == []


def test_parameter_that_a_provider_does_not_know_is_dropped_unless_required(client: httpx.Client) -> None:
    answer = ask(client, model="qwen/no-schema", provider={})

    with pytest.raises(ValueError, match="Expecting value"):
        json.loads(answer.json()["choices"][0]["message"]["content"])


def test_fallback_answers_for_the_first_model_and_is_billed_by_its_price(
    standin: StandIn, client: httpx.Client
) -> None:
    standin.script(faults.rate_limited())
    answer = ask(client, models=["openai/gpt-small"], provider={}).json()

    assert (answer["model"], answer["provider"]) == ("openai/gpt-small", "OpenAI")
    assert [billed.model for billed in standin.billing] == ["openai/gpt-small"]
    standin.script(faults.cut_off(), faults.refused(500))  # no matter of the first model alone
    assert ask(client, models=["openai/gpt-small"]).json()["model"] == BODY["model"]
    assert ask(client, models=["openai/gpt-small"]).status_code == 500
    assert ask(client, model="no/such").status_code == 400
    assert ask(client, model="no/such", models=["openai/gpt-small"], provider={}).status_code == 200


def test_prompt_that_is_too_long_is_refused_or_loses_its_middle(standin: StandIn, client: httpx.Client) -> None:
    forbidden = ask(client, model="mistralai/tiny", messages=LONG)
    silently = ask(client, model="mistralai/tiny", messages=LONG, plugins=[])
    no_compression = ask(client, model="openai/gpt-small", messages=[{"role": "user", "content": "ord " * 120_000}])
    no_room = ask(client, model="mistralai/tiny", max_completion_tokens=8_192)

    assert [one.status_code for one in (forbidden, silently, no_compression, no_room)] == [400, 200, 400, 400]
    assert forbidden.json()["error"]["metadata"]["error_type"] == "context_length_exceeded"
    assert silently.json()["usage"]["prompt_tokens"] == 8_192
    assert standin.billed_count == 1


def test_answer_ends_where_its_budget_ends(standin: StandIn, client: httpx.Client) -> None:
    standin.answers(lambda call: "a" * 3_500)
    choice = ask(client, max_completion_tokens=100).json()["choices"][0]

    assert (choice["finish_reason"], len(choice["message"]["content"])) == ("length", 350)


def test_server_of_another_make() -> None:
    with StandIn(is_generic=True, key="") as standin, httpx.Client(base_url=standin.base_url) as client:
        standin.models = (standin.models[2],)  # of 8,192 tokens
        fields = {"model": "any", "max_tokens": 100, "frobnicate": 1}
        answer = client.post("chat/completions", json={"messages": BODY["messages"], **fields})
        too_long = client.post("chat/completions", json={"messages": LONG, **fields})
        standin.cuts_silently = True
        cut = client.post("chat/completions", json={"messages": LONG, **fields})
        missing = [client.get(path).status_code for path in ("key", "generation?id=1", "credits")]

    assert answer.status_code == 200
    assert set(answer.json()) == {"id", "object", "created", "model", "choices", "usage"}
    assert set(answer.json()["usage"]) == {"prompt_tokens", "completion_tokens", "total_tokens"}
    assert too_long.status_code == 400
    assert too_long.json()["error"]["type"] == "exceed_context_size_error"
    assert cut.json()["usage"]["prompt_tokens"] == 8_192
    assert missing == [404, 404, 404]


def test_script_is_for_the_request_that_has_the_word(standin: StandIn, client: httpx.Client) -> None:
    standin.script(faults.refused(502), faults.refused(500), match="verden")
    standin.script(faults.refused(503), match="annet", repeats=True)
    other = {"messages": [{"role": "user", "content": "noe annet"}]}
    statuses = [ask(client, **change).status_code for change in (other, {}, other, {}, {})]

    assert statuses == [503, 502, 503, 500, 200]
    assert len(standin.chats_about("annet")) == 2


# The four failures inside a 200.


def test_shapes_of_failure_inside_a_200(standin: StandIn, client: httpx.Client) -> None:
    standin.script(faults.only_an_error(), faults.all_null(), faults.died_halfway(), faults.no_choices("null"))
    alone, nulls, halfway, nothing = (ask(client) for _ in range(4))

    assert {one.status_code for one in (alone, nulls, halfway, nothing)} == {200}
    assert set(alone.json()) == {"error", "user_id"}
    assert nulls.json()["choices"] is None
    assert nulls.json()["error"]["code"] == 429
    assert halfway.json()["choices"][0]["error"]["code"] == 502
    assert halfway.json()["choices"][0]["finish_reason"] == "error"
    assert halfway.json()["usage"] is None
    assert nothing.json()["choices"] is None


def test_shapes_of_failure_inside_a_stream(standin: StandIn, client: httpx.Client) -> None:
    standin.script(faults.only_an_error(is_event=True), faults.died_halfway(stream_code="server_error"))
    alone, halfway = ask(client, stream=True), ask(client, stream=True)

    assert set(events_of(alone)[0]) == {"error", "user_id"}
    assert events_of(halfway)[-1]["error"] == {"code": "server_error", "message": "The provider disconnected"}
    assert events_of(halfway)[-1]["choices"][0]["finish_reason"] == "error"


# The wire.


def test_streams_that_are_odd_and_whole(standin: StandIn, client: httpx.Client) -> None:
    standin.answers(lambda call: Answer("Blåbærsyltetøy på brødskive 🫐"))
    plain = [chunk["choices"] for chunk in events_of(ask(client, stream=True))]
    standin.script(faults.many_comments(), faults.tight_lines(), faults.split_characters())
    commented, tight, split = (ask(client, stream=True) for _ in range(3))
    assert "Blåb" in split.text

    assert commented.text.count(": OPENROUTER PROCESSING") == 30
    assert "data:{" in tight.text
    assert "data: " not in tight.text
    for odd in (commented, tight, split):
        assert [chunk["choices"] for chunk in events_of(odd)] == plain


def test_half_a_surrogate_pair_and_a_nul_arrive_escaped(standin: StandIn, client: httpx.Client) -> None:
    standin.answers(lambda call: Answer("a\ud83d b\0"))

    for answer in (ask(client), ask(client, stream=True)):
        assert "\\ud83d" in answer.text
        assert "\\u0000" in answer.text


def test_streams_that_end_where_they_should_not(standin: StandIn, client: httpx.Client) -> None:
    standin.script(faults.ends_early(), faults.breaks(), faults.silent_halfway())
    early = ask(client, stream=True)
    with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
        ask(client, stream=True)
    with pytest.raises(httpx.ReadTimeout):
        client.post("chat/completions", json=BODY | {"stream": True}, timeout=0.2)

    assert "[DONE]" not in early.text
    assert all(chunk["choices"][0]["finish_reason"] is None for chunk in events_of(early))
    wait_until(lambda: standin.billed_count == 3, what="the bill of the worst case: the model went on")
    stays(lambda: standin.billed_count == 3, 0.2, what="one bill each")


def test_connections_that_close(standin: StandIn, client: httpx.Client) -> None:
    standin.script(faults.closes_unanswered())
    with pytest.raises(httpx.RemoteProtocolError, match="without sending a response"):
        ask(client)
    client.get("models")
    standin.script(faults.stale_connection())
    with pytest.raises(httpx.RemoteProtocolError, match="without sending a response"):
        ask(client)
    standin.script(faults.stale_connection())
    with client_of(standin) as fresh:
        assert ask(fresh).status_code == 200

    assert standin.billed_count == 1


def test_bodies_that_are_no_answer(standin: StandIn, client: httpx.Client) -> None:
    standin.script(faults.edge_page(), faults.redirected(), faults.gzipped(), faults.huge(5))
    page, redirect, gzipped, huge = (ask(client) for _ in range(4))

    assert (page.status_code, page.headers["Content-Type"]) == (524, "text/html")
    assert (redirect.status_code, redirect.headers["Location"]) == (302, "http://127.0.0.1:9/elsewhere")
    assert (gzipped.headers["Content-Encoding"], gzipped.json()["error"]["code"]) == ("gzip", 429)
    assert len(huge.content) > 5_000_000


def test_answer_waits_at_its_gate(standin: StandIn, client: httpx.Client) -> None:
    gate = Gate()
    standin.script(faults.held(gate, "end"))
    answers: list[httpx.Response] = []
    asking = threading.Thread(target=lambda: answers.append(ask(client, CACHED, stream=True)))
    asking.start()
    assert gate.reached.wait(5)
    assert standin.billed_count == 0
    gate.opened.set()
    asking.join(5)

    assert answers[0].text.endswith("[DONE]\n\n")
    assert standin.billed_count == 1
