"""What stands in a request under each profile, and that it is always the same bytes."""

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from openrouter_client.request import AnswerSchema, Message, build_request, output_budget
from tests.unit.openrouter_questions import GENERIC, KEY, OPENROUTER, QUESTION, SCHEMA, body_of, built


def test_the_fields_for_openrouter_in_their_order() -> None:
    body = built(replace(OPENROUTER, fallbacks=("a/b", "c/d")), replace(QUESTION, user="u-1"))

    assert list(body) == (
        [
            "model",
            "models",
            "messages",
            "response_format",
            "temperature",
            "seed",
            "max_completion_tokens",
            "reasoning",
            "provider",
            "plugins",
            "session_id",
            "user",
            "stream",
        ]
    )
    assert body["models"] == ["a/b", "c/d"]
    assert body["provider"] == {
        "allow_fallbacks": True,
        "require_parameters": True,
        "data_collection": "deny",
        "max_price": {"prompt": "3", "completion": "15"},
    }
    assert body["plugins"] == [{"id": "context-compression", "enabled": False}]
    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "analysis", "strict": True, "schema": SCHEMA.schema},
    }
    assert body["reasoning"] == {"effort": "low"}


def test_a_server_of_ones_own_gets_what_every_server_knows() -> None:
    request = build_request(GENERIC, replace(QUESTION, user="u-1"))

    assert list(body_of(request)) == (
        ["model", "messages", "response_format", "temperature", "seed", "max_tokens", "stream", "stream_options"]
    )
    assert request.url == "http://ollama:11434/v1/chat/completions"
    assert not [name for name in request.headers if name.lower().startswith("x-openrouter")]


def test_fallbacks_are_sent_only_where_somebody_asked_for_them() -> None:
    """langchain-ai/openwiki#85: hard-coded fallbacks were billed."""
    assert "models" not in built()


def test_prices_are_texts_without_exponents() -> None:
    body = built(replace(OPENROUTER, max_price_prompt=Decimal("0.00000015"), max_price_completion=Decimal("1E+2")))

    assert body["provider"]["max_price"] == {"prompt": "0.00000015", "completion": "100"}
    assert "max_price" not in built(replace(OPENROUTER, max_price_prompt=None, max_price_completion=None))["provider"]


def test_privacy_is_asked_for() -> None:
    assert "zdr" not in built()["provider"]
    assert built(replace(OPENROUTER, is_zdr=True))["provider"]["zdr"] is True
    assert built(replace(OPENROUTER, data_collection="allow"))["provider"]["data_collection"] == "allow"


def test_the_cache_is_asked_for_in_headers_so_that_the_body_stays_the_same() -> None:
    request = build_request(OPENROUTER, QUESTION)
    without = build_request(replace(OPENROUTER, cache_seconds=0), QUESTION)

    assert request.headers["X-OpenRouter-Cache"] == "true"
    assert request.headers["X-OpenRouter-Cache-TTL"] == "3600"
    assert "X-OpenRouter-Cache" not in without.headers
    assert request.body == without.body


def test_thoughts_have_room_beside_the_answer() -> None:
    assert output_budget(replace(OPENROUTER, reasoning="low"), 1000) == 1250
    assert output_budget(replace(OPENROUTER, reasoning="medium"), 1000) == 2000
    assert output_budget(replace(OPENROUTER, reasoning="none"), 1000) == 1000
    assert output_budget(replace(OPENROUTER, reasoning="unset"), 1000) == 1000
    assert output_budget(GENERIC, 1000) == 1000
    assert output_budget(GENERIC, 1) == 16
    assert "reasoning" not in built(replace(OPENROUTER, reasoning="unset"))


def test_what_a_model_does_not_take_is_not_sent() -> None:
    """With require_parameters, a seed that a model does not know leaves no provider."""
    body = built(OPENROUTER.with_supported(frozenset({"structured_outputs", "response_format", "max_tokens"})))

    assert not {"temperature", "seed", "reasoning", "max_completion_tokens"} & set(body)
    assert body["max_tokens"] == 1000


def test_a_provider_without_schemas_gets_the_schema_in_the_prompt() -> None:
    degraded = built(OPENROUTER, replace(QUESTION, degraded=True))
    known = built(OPENROUTER.with_supported(frozenset({"response_format"})))
    plain = built(OPENROUTER.with_supported(frozenset({"max_tokens"})))

    assert degraded["response_format"] == known["response_format"] == {"type": "json_object"}
    assert "response_format" not in plain
    for body in (degraded, known, plain):
        assert body["messages"][-1]["content"].startswith("Lag tittel.\n\nJSON Schema:\n")
        assert json.loads(body["messages"][-1]["content"].partition("Schema:\n")[2]) == SCHEMA.schema
        assert body["messages"][0]["content"] == "Du er redaktør."


def test_halves_of_letters_become_whole_or_replaced() -> None:
    """Aider-AI/aider#3693: a lone surrogate raised where the request was encoded."""
    text = "a\ud83d\ude00b \ud83d c\ude00 d\x00e \U0001f600"
    body = built(OPENROUTER, replace(QUESTION, messages=(Message("user", text),)))

    assert body["messages"][0]["content"] == "a\U0001f600b \ufffd c\ufffd d\ufffde \U0001f600"
    assert "\ud83d".encode("utf-8", "surrogatepass") not in build_request(OPENROUTER, QUESTION).body


def test_the_key_is_no_part_of_a_request() -> None:
    request = build_request(OPENROUTER, QUESTION)

    assert KEY not in repr(request)
    assert KEY.encode() not in request.body
    assert KEY not in json.dumps(request.headers)
    assert "Hei på deg" not in repr(request), "nor is the text in what a log might show"


def test_the_hash_tells_texts_and_schema_versions_apart() -> None:
    hashes = {
        build_request(profile, question).sha256
        for profile, question in [
            (OPENROUTER, QUESTION),
            (GENERIC, QUESTION),
            (OPENROUTER, replace(QUESTION, schema=replace(SCHEMA, version="4"))),
            (OPENROUTER, replace(QUESTION, max_output_tokens=2000)),
            (OPENROUTER, replace(QUESTION, degraded=True)),
        ]
    }

    assert len(hashes) == 5


@pytest.mark.parametrize(
    "wrong",
    [
        {"messages": ()},
        {"max_output_tokens": 0},
        {"temperature": 2.1},
        {"temperature": float("nan")},
        {"session_id": ""},
        {"session_id": "x" * 257},
        {"user": "x" * 257},
    ],
)
def test_a_question_out_of_range_is_refused_here(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        replace(QUESTION, **wrong)


@pytest.mark.parametrize("name", ["", "x" * 65, "navn på norsk", "a.b", "a\n"])
def test_a_schema_has_a_name_that_openrouter_takes(name: str) -> None:
    with pytest.raises(ValueError, match="schema name"):
        AnswerSchema(name, "1", {})
