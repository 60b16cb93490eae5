"""Each shape of request is one that OpenRouter takes, by the official SDK's models, and always the same bytes."""

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openrouter_client.profile import Profile, ProfileKind, Secret
from openrouter_client.request import AnswerSchema, ChatRequest, Message, Question, build_request, output_budget
from openrouter_client.settings import EFFORTS
from tests.openrouter_standin.contract import request_problems

KEY = "sk-or-v1-0123456789abcdef"
SCHEMA = AnswerSchema(
    "analysis",
    "3",
    {
        "type": "object",
        "properties": {"title": {"type": "string", "maxLength": 100}},
        "required": ["title"],
        "additionalProperties": False,
    },
)
QUESTION = Question(
    step="analyze",
    messages=(Message("system", "Du er redaktør."), Message("user", "B1 Hei på deg."), Message("user", "Lag tittel.")),
    schema=SCHEMA,
    max_output_tokens=1000,
    session_id="0b6c1f0e-job",
)
OPENROUTER = Profile(
    base_url="https://openrouter.ai/api/v1",
    kind=ProfileKind.OPENROUTER,
    key=Secret(KEY),
    model="google/gemini-2.5-flash",
    cache_seconds=3600,
    max_price_prompt=Decimal("3"),
    max_price_completion=Decimal("15"),
    reasoning="low",
)
GENERIC = Profile("http://ollama:11434/v1", ProfileKind.GENERIC, None, "llama3.2", reasoning="low")

PARAMETERS = [
    "temperature",
    "seed",
    "max_tokens",
    "max_completion_tokens",
    "response_format",
    "structured_outputs",
    "reasoning",
    "top_p",
    "stop",
]
prices = st.none() | st.decimals(0, 10_000, allow_nan=False, allow_infinity=False, places=9)
names = st.from_regex(r"[a-z0-9-]{1,20}/[a-z0-9.-]{1,30}(:free)?", fullmatch=True)
texts = st.text(st.characters(), max_size=60)  # lone surrogates and NUL, too
profiles = st.builds(
    Profile,
    base_url=st.sampled_from(["https://openrouter.ai/api/v1", "http://127.0.0.1:8080/v1"]),
    kind=st.sampled_from(ProfileKind),
    key=st.sampled_from([None, Secret(KEY)]),
    model=names,
    fallbacks=st.lists(names, max_size=3).map(tuple),
    data_collection=st.sampled_from(["deny", "allow"]),
    is_zdr=st.booleans(),
    cache_seconds=st.integers(0, 86_400),
    max_price_prompt=prices,
    max_price_completion=prices,
    reasoning=st.sampled_from(EFFORTS),
    supported=st.none() | st.frozensets(st.sampled_from(PARAMETERS)),
)
schemas = st.builds(
    AnswerSchema,
    name=st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True),
    version=st.text(max_size=5),
    schema=st.just(SCHEMA.schema),
)
questions = st.builds(
    Question,
    step=st.just("analyze"),
    messages=st.lists(st.builds(Message, st.sampled_from(["system", "user"]), texts), min_size=1, max_size=4).map(
        tuple
    ),
    schema=schemas,
    max_output_tokens=st.integers(1, 200_000),
    session_id=st.text(st.characters(), min_size=1, max_size=256),
    user=st.none() | st.text(st.characters(), min_size=1, max_size=256),
    temperature=st.floats(0, 2),
    seed=st.integers(0, 2**31),
    degraded=st.booleans(),
)


def body_of(request: ChatRequest) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(request.body)
    return body


def built(profile: Profile = OPENROUTER, question: Question = QUESTION) -> dict[str, Any]:
    return body_of(build_request(profile, question))


@given(profiles, questions)
@settings(deadline=None)
def test_every_request_is_one_that_the_sdk_would_send(profile: Profile, question: Question) -> None:
    """glibsonoran/Plush-for-ComfyUI#227: a misspelt field is a 400, or is dropped without a word."""
    request = build_request(profile, question)
    body = body_of(request)

    assert request_problems(body) == []
    assert 0 <= body.get("temperature", 0) <= 2
    assert body.get("max_completion_tokens", body.get("max_tokens")) == request.max_tokens >= 16
    assert request.max_tokens >= question.max_output_tokens
    assert [message["role"] for message in body["messages"]] == [message.role for message in question.messages]
    assert 1 <= len(body.get("session_id", "x")) <= 256
    assert body["stream"] is True
    assert all(isinstance(price, str) for price in body.get("provider", {}).get("max_price", {}).values())
    assert request.body.isascii() or request.body.decode("utf-8")
    assert b"\x00" not in request.body


@given(profiles, questions)
@settings(max_examples=30, deadline=None)
def test_the_same_question_is_always_the_same_bytes(profile: Profile, question: Question) -> None:
    """OpenRouter's cache and the ledger compare them."""
    first, second = build_request(profile, question), build_request(replace(profile), replace(question))

    assert (first.body, first.sha256, first.headers) == (second.body, second.sha256, second.headers)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda body: body.update(transforms=[]),
        lambda body: body.update(tempratur=1),
        lambda body: body["provider"].update(requireParameters=True),
        lambda body: body["response_format"].update(type="json"),
        lambda body: body.update(messages=[]),
        lambda body: body["messages"][0].update(role="boss"),
        lambda body: body["plugins"][0].update(id="middle-out"),
        lambda body: body["response_format"]["json_schema"].update(name="x" * 80),
        lambda body: body.update(temperature=9),
    ],
)
def test_the_contract_sees_each_known_mistake(spoil: Any) -> None:
    body = built()
    assert request_problems(body) == []
    spoil(body)

    assert request_problems(body) != []


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
