"""A catalogue over a real server, for tests of what models offer and cost."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from openrouter_client.catalogue import Catalogue
from openrouter_client.settings import ClientSettings
from openrouter_client.transport import Client
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
