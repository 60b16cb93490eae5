"""The one place that talks HTTP."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from openrouter_client.profile import Profile
from openrouter_client.request import ChatRequest
from openrouter_client.settings import ClientSettings
from openrouter_client.verdicts import Verdict


@dataclass(frozen=True)
class Reply:
    """What came back. `body` is an ordinary chat.completion, also when it was streamed; `text` what was received."""

    status: int | None  # None: no answer
    headers: Mapping[str, str]  # names in lower case
    body: dict[str, Any] | None
    text: str
    verdict: Verdict
    generation_id: str | None
    was_sent: bool  # False: the server cannot have seen the request
    seconds: float


@dataclass(frozen=True)
class KeyState:
    """What the server says of the key. `verdict` is OK when it can be used."""

    verdict: Verdict
    limit_remaining: Any = None  # Decimal, USD; None = no limit
    usage_daily: Any = None
    expires_at: str | None = None
    is_free_tier: bool = False


class Client:
    """A connection to the profile's server, for one thread."""

    def __init__(self, profile: Profile, settings: ClientSettings) -> None:
        raise NotImplementedError

    def send(self, request: ChatRequest, on_generation_id: Callable[[str], None] | None = None) -> Reply:
        """Sends and collects; network trouble is a verdict, never an exception."""
        raise NotImplementedError

    def key_state(self) -> KeyState:
        raise NotImplementedError

    def generation(self, generation_id: str) -> dict[str, Any] | None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError
