"""Who is asked, and under which conditions: one frozen value, made from the settings.

Two kinds: `openrouter` knows routing, prices, sessions and the response cache; `generic` is any OpenAI-compatible
server (Ollama, llama.cpp, vLLM) and gets only what all of them understand.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from openrouter_client.settings import DEFAULT_MODEL, ClientSettings

GENERIC_CONTEXT_TOKENS = 8192  # for a server of one's own that nobody gave a number for: what most of them serve


class ProfileKind(StrEnum):
    OPENROUTER = "openrouter"
    GENERIC = "generic"


class Secret:
    """A text that is never printed, compared by accident or pickled; `reveal` is the only way to it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return "Secret(hidden)"

    def __reduce__(self) -> str:
        raise TypeError("a secret is not pickled")


@dataclass(frozen=True)
class Profile:
    """The server, the model and the limits of each call. Prices are USD per million tokens."""

    base_url: str
    kind: ProfileKind
    key: Secret | None
    model: str
    fallbacks: tuple[str, ...] = ()
    context_tokens: int = 0  # 0 = what the catalogue says
    data_collection: str = "deny"
    is_zdr: bool = False
    cache_seconds: int = 0
    max_price_prompt: Decimal | None = None
    max_price_completion: Decimal | None = None
    reasoning: str = "unset"
    supported: frozenset[str] | None = None  # parameters that all the models take; None = not known, so all are sent

    @classmethod
    def from_settings(cls, settings: ClientSettings) -> Profile:
        kind = ProfileKind.OPENROUTER if settings.is_openrouter else ProfileKind.GENERIC
        context = settings.context_tokens
        if kind is ProfileKind.GENERIC:
            context = context or GENERIC_CONTEXT_TOKENS
        return cls(
            base_url=settings.base_url,
            kind=kind,
            key=Secret(settings.api_key) if settings.api_key else None,
            model=settings.model or DEFAULT_MODEL,
            fallbacks=settings.fallbacks,
            context_tokens=context,
            data_collection=settings.data_collection,
            is_zdr=settings.zdr,
            cache_seconds=0 if settings.zdr else settings.cache_seconds,
            max_price_prompt=settings.max_price_prompt,
            max_price_completion=settings.max_price_completion,
            reasoning=settings.reasoning,
        )

    @property
    def is_openrouter(self) -> bool:
        return self.kind is ProfileKind.OPENROUTER

    @property
    def is_usable(self) -> bool:
        """Whether a call can be made at all: OpenRouter wants a key, a server of one's own may not."""
        return self.key is not None or not self.is_openrouter

    def with_supported(self, parameters: frozenset[str] | None) -> Profile:
        """The same, for models that take these parameters only (`Catalogue.fit` knows them)."""
        return dataclasses.replace(self, supported=parameters)

    def takes(self, parameter: str) -> bool:
        return self.supported is None or parameter in self.supported
