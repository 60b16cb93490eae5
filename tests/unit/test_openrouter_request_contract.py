"""Every request that can be built, over any configuration, is one that the official SDK would send."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openrouter_client.profile import Profile, ProfileKind, Secret
from openrouter_client.request import AnswerSchema, Message, Question, build_request
from openrouter_client.settings import EFFORTS
from tests.openrouter_standin.contract import request_problems
from tests.unit.openrouter_questions import KEY, SCHEMA, body_of, built

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
