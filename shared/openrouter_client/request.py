"""From a question to the bytes of a request: pure, the same input always gives the same bytes.

OpenRouter's response cache compares bodies byte by byte, so the order of the fields is fixed here. The key is not part
of a request; the transport adds it.
"""

import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any, Literal

from openrouter_client.profile import Profile
from openrouter_client.unicode_text import sound_text, sound_value

SEED = 20210  # any fixed number: the same question shall get the same answer where a model can do that
LEAST_OUTPUT_TOKENS = 16  # some providers refuse less
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LONGEST_ID = 256
# A model's thoughts share the budget of its answer: OpenRouter gives them this part of it, by effort.
_REASONING_SHARE = {"minimal": 0.1, "low": 0.2, "medium": 0.5, "high": 0.8}


@dataclass(frozen=True)
class Message:
    role: Literal["system", "user"]
    text: str


@dataclass(frozen=True)
class AnswerSchema:
    """The JSON Schema that an answer must fit. A change of it is a new version."""

    name: str
    version: str
    schema: dict[str, Any] = field(hash=False)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"schema name is {self.name!r}, expected 1 to 64 of A-Z a-z 0-9 _ -")

    @property
    def fields(self) -> list[str]:
        """The fields that an answer must have."""
        return list(self.schema["required"])


@dataclass(frozen=True)
class Question:
    """One call. `max_output_tokens` is for the answer alone; room for thoughts is added."""

    step: str
    messages: tuple[Message, ...]
    schema: AnswerSchema
    max_output_tokens: int
    session_id: str
    user: str | None = None
    temperature: float = 0.2
    seed: int = SEED
    degraded: bool = False  # for providers that cannot hold to a schema: JSON asked for, the schema in the prompt

    def __post_init__(self) -> None:
        problems = [
            problem
            for is_wrong, problem in (
                (not self.messages, "messages is empty"),
                (self.max_output_tokens < 1, f"max_output_tokens is {self.max_output_tokens}, expected 1 or more"),
                (not 0 <= self.temperature <= 2, f"temperature is {self.temperature}, expected 0 to 2"),
                (not 0 < len(self.session_id) <= _LONGEST_ID, "session_id has not 1 to 256 characters"),
                (self.user is not None and not 0 < len(self.user) <= _LONGEST_ID, "user has not 1 to 256 characters"),
            )
            if is_wrong
        ]
        if problems:
            raise ValueError(f"question {self.step!r}: " + "; ".join(problems))


@dataclass(frozen=True)
class ChatRequest:
    """What is sent. `max_tokens` is the whole output that may be billed, thoughts included."""

    url: str
    body: bytes = field(repr=False)
    headers: dict[str, str] = field(hash=False)
    sha256: str
    model: str
    max_tokens: int


def build_request(profile: Profile, question: Question) -> ChatRequest:
    """The request that asks a question under a profile.

    Its hash is that of the question, whichever parameters the catalogue lets through today: an answer that was paid for
    is found again although the catalogue has changed, or cannot be had.
    """
    return ChatRequest(
        url=f"{profile.base_url}/chat/completions",
        body=_body(profile, question),
        headers=_headers(profile),
        sha256=_hash(_body(profile.with_supported(None), question), question.schema),
        model=profile.model,
        max_tokens=output_budget(profile, question.max_output_tokens),
    )


def _body(profile: Profile, question: Question) -> bytes:
    max_tokens = output_budget(profile, question.max_output_tokens)
    fields = {"model": profile.model, **_openrouter_first(profile), "messages": _messages(profile, question)}
    fields |= _format(profile, question)
    fields |= {name: value for name, value in _sampling(question).items() if profile.takes(name)}
    fields |= _openrouter_last(profile, question, max_tokens) if profile.is_openrouter else {"max_tokens": max_tokens}
    fields["stream"] = True
    if not profile.is_openrouter:  # OpenRouter always reports the usage; others must be asked
        fields["stream_options"] = {"include_usage": True}
    return json.dumps(sound_value(fields), ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def output_budget(profile: Profile, answer_tokens: int) -> int:
    """The `max_tokens` that leave `answer_tokens` for the answer after the model's thoughts."""
    share = _REASONING_SHARE.get(profile.reasoning, 0.0) if _reasons(profile) else 0.0
    return max(LEAST_OUTPUT_TOKENS, -int(-answer_tokens // (1 - share)))


def _reasons(profile: Profile) -> bool:
    return profile.is_openrouter and profile.reasoning != "unset" and profile.takes("reasoning")


def _openrouter_first(profile: Profile) -> dict[str, Any]:
    return {"models": list(profile.fallbacks)} if profile.is_openrouter and profile.fallbacks else {}


def _messages(profile: Profile, question: Question) -> list[dict[str, str]]:
    messages = [{"role": message.role, "content": sound_text(message.text)} for message in question.messages]
    if _is_degraded(profile, question):
        schema = json.dumps(question.schema.schema, ensure_ascii=False, separators=(",", ":"))
        messages[-1]["content"] += f"\n\nJSON Schema:\n{schema}"
    return messages


def _is_degraded(profile: Profile, question: Question) -> bool:
    return question.degraded or not profile.takes("structured_outputs")


def _format(profile: Profile, question: Question) -> dict[str, Any]:
    if _is_degraded(profile, question):
        return {"response_format": {"type": "json_object"}} if profile.takes("response_format") else {}
    schema = {"name": question.schema.name, "strict": True, "schema": question.schema.schema}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def _sampling(question: Question) -> dict[str, Any]:
    return {"temperature": question.temperature, "seed": question.seed}


def _openrouter_last(profile: Profile, question: Question, max_tokens: int) -> dict[str, Any]:
    # `max_tokens` is the older name; it is the only one that many models of the catalogue say they take.
    is_older = profile.takes("max_tokens") and not profile.takes("max_completion_tokens")
    fields: dict[str, Any] = {"max_tokens" if is_older else "max_completion_tokens": max_tokens}
    if _reasons(profile):
        fields["reasoning"] = {"effort": profile.reasoning}
    fields["provider"] = _provider(profile)
    # Left on, it cuts the middle out of a prompt that is too long, which is a transcript's middle: better an error.
    fields["plugins"] = [{"id": "context-compression", "enabled": False}]
    fields["session_id"] = question.session_id
    if question.user is not None:
        fields["user"] = question.user
    return fields


def _provider(profile: Profile) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "allow_fallbacks": True,
        "require_parameters": True,  # else a provider that knows no schema drops it without a word
        "data_collection": profile.data_collection,
    }
    if profile.is_zdr:
        fields["zdr"] = True
    prices = {"prompt": profile.max_price_prompt, "completion": profile.max_price_completion}
    limits = {name: f"{price:f}" for name, price in prices.items() if price is not None}
    return {**fields, "max_price": limits} if limits else fields


def _headers(profile: Profile) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "Accept": "text/event-stream, application/json"}
    if profile.is_openrouter and profile.cache_seconds:
        headers |= {"X-OpenRouter-Cache": "true", "X-OpenRouter-Cache-TTL": str(profile.cache_seconds)}
    return headers


def _hash(body: bytes, schema: AnswerSchema) -> str:
    return hashlib.sha256(b"\n".join((schema.name.encode(), schema.version.encode(), body))).hexdigest()
