"""A plain HTTP client of the stand-in of OpenRouter, and the request that it sends."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.openrouter_standin import StandIn

SCHEMA = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
FORMAT = {"type": "json_schema", "json_schema": {"name": "titles", "strict": True, "schema": SCHEMA}}
BODY: dict[str, Any] = {
    "model": "google/gemini-2.5-flash",
    "messages": [{"role": "system", "content": "Svar på norsk."}, {"role": "user", "content": "Hei, verden"}],
    "response_format": FORMAT,
    "temperature": 0.2,
    "max_completion_tokens": 400,
    "provider": {
        "require_parameters": True,
        "data_collection": "deny",
        "max_price": {"prompt": "3", "completion": "15"},
    },
    "plugins": [{"id": "context-compression", "enabled": False}],
    "session_id": "job-1",
}
CACHED = {"X-OpenRouter-Cache": "true", "X-OpenRouter-Cache-TTL": "600"}


@pytest.fixture
def client(standin: StandIn) -> Iterator[httpx.Client]:
    with client_of(standin) as made:
        yield made


def client_of(standin: StandIn) -> httpx.Client:
    return httpx.Client(base_url=standin.base_url, headers={"Authorization": f"Bearer {standin.key}"}, trust_env=False)


def ask(client: httpx.Client, headers: dict[str, str] | None = None, **changes: Any) -> httpx.Response:
    return client.post("chat/completions", json=BODY | changes, headers=headers)


def events_of(response: httpx.Response) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data:").strip() for line in response.text.splitlines() if line.startswith("data:")]
    return [json.loads(line) for line in lines if line != "[DONE]"]
