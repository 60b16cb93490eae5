"""API tokens: made once, kept by whoever uses them, known here by their SHA-256 alone.

A token has 256 random bits: there is nothing to guess. The prefix lets people and scanners of
secrets see what it is.
"""

import re
import secrets
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

PREFIX = "jobbko_"
SCOPES = ("enqueue", "read", "operate")
_TOKEN = re.compile(rf"{PREFIX}[A-Za-z0-9_-]{{43}}")  # 32 bytes, URL-safe base64


@dataclass(frozen=True)
class Token:
    """A token that is valid; its name is the actor of what it does."""

    name: str
    scopes: Sequence[str]

    @property
    def actor(self) -> str:
        return f"token:{self.name}"


def new_token() -> str:
    """A token that nobody has had."""
    return PREFIX + secrets.token_urlsafe(32)


def has_form(text: str) -> bool:
    """Whether a text could be a token at all."""
    return _TOKEN.fullmatch(text) is not None


@dataclass
class Failures:
    """Counts the wrong tokens of each address, within a sliding window.

    An address that sent too many is refused before the database is asked, apart from tokens that were good before: a
    program behind the same proxy as the guesser goes on.
    """

    most: int = 20
    window_seconds: float = 60.0
    most_addresses: int = 10_000
    clock: Callable[[], float] = time.monotonic
    _times: dict[str, deque[float]] = field(default_factory=dict)

    def add(self, address: str) -> None:
        """One more wrong token."""
        times = self._times.pop(address, deque(maxlen=self.most))
        times.append(self.clock())
        self._times[address] = times  # newest last, so that the oldest address leaves when there are too many
        if len(self._times) > self.most_addresses:
            del self._times[next(iter(self._times))]

    def wait_seconds(self, address: str) -> float:
        """How long this address has to wait; 0 if it need not."""
        times = self._times.get(address)
        if times is None or len(times) < self.most:
            return 0.0
        return max(0.0, times[0] + self.window_seconds - self.clock())
