"""A question and the profiles under which it is asked."""

import json
from decimal import Decimal
from typing import Any

from openrouter_client.profile import Profile, ProfileKind, Secret
from openrouter_client.request import AnswerSchema, ChatRequest, Message, Question, build_request

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


def body_of(request: ChatRequest) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(request.body)
    return body


def built(profile: Profile = OPENROUTER, question: Question = QUESTION) -> dict[str, Any]:
    return body_of(build_request(profile, question))
