"""What each provider of a model takes (GET /models/AUTHOR/NAME/endpoints), kept for hours.

The list of models shows one price for each; the provider that answers may be a dearer one.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from openrouter_client.error_body import as_mapping
from openrouter_client.transport import Client
from openrouter_client.verdicts import Kind

KEPT_SECONDS = 6 * 3600.0
ASKED_AGAIN_SECONDS = 300.0  # after a failure


class Offers:
    """The prices of providers by model. It asks at its first use of each."""

    def __init__(self, client: Client, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._client, self._monotonic = client, monotonic
        self._known: dict[str, list[Mapping[str, Any]]] = {}
        self._ask_at: dict[str, float] = {}

    def pricing(self, model: str) -> list[Mapping[str, Any]]:
        """The `pricing` of each provider; empty where that cannot be had."""
        if model.count("/") == 1 and self._monotonic() >= self._ask_at.get(model, 0.0):
            self._fetch(model)
        return self._known.get(model, [])

    def _fetch(self, model: str) -> None:
        reply = self._client.get(f"/models/{quote(model, safe='/:')}/endpoints")
        endpoints = as_mapping((reply.body or {}).get("data")).get("endpoints")
        is_told = reply.verdict.kind is Kind.OK or reply.status == 404
        if reply.verdict.kind is Kind.OK and isinstance(endpoints, list):
            self._known[model] = [as_mapping(as_mapping(endpoint).get("pricing")) for endpoint in endpoints]
        self._ask_at[model] = self._monotonic() + (KEPT_SECONDS if is_told else ASKED_AGAIN_SECONDS)
