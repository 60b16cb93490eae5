"""Failed logins, counted per name and per address: after a few, each further one waits longer.

Kept in memory: one process serves the view, and a restart costs an attacker more time than it gives him.
"""

import time
from collections.abc import Callable, Iterable

FREE = 5  # failures that cost nothing: people mistype
FIRST_WAIT_SECONDS = 2.0
LONGEST_WAIT_SECONDS = 900.0
FORGET_SECONDS = 3600.0
MOST_KEYS = 10_000


class Attempts:
    """How long a name or an address has to wait."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures: dict[str, tuple[int, float]] = {}  # key -> failures, when the last one was

    def wait_seconds(self, keys: Iterable[str]) -> float:
        """How long the one of them that has to wait longest has to wait; 0 = none."""
        return max((self._wait(key) for key in keys), default=0.0)

    def failed(self, keys: Iterable[str]) -> None:
        """Counts one more failure for each."""
        self._forget()
        now = self._clock()
        for key in keys:
            failures, _ = self._failures.pop(key, (0, now))
            self._failures[key] = (failures + 1, now)

    def succeeded(self, key: str) -> None:
        """A name that got in starts anew; its address does not, or one valid account would free it for guessing."""
        self._failures.pop(key, None)

    def forgive(self, key: str) -> None:
        """Takes back one failure that was counted ahead."""
        failures, last = self._failures.get(key, (0, 0.0))
        if failures > 1:
            self._failures[key] = (failures - 1, last)
        else:
            self._failures.pop(key, None)

    def _wait(self, key: str) -> float:
        failures, last = self._failures.get(key, (0, 0.0))
        if failures < FREE:
            return 0.0
        wait = min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2.0 ** min(failures - FREE, 30))
        return float(max(0.0, last + wait - self._clock()))

    def _forget(self) -> None:
        """Drops what is long past, then the oldest: they stand in the order of their last failure."""
        limit = self._clock() - FORGET_SECONDS
        while self._failures:
            oldest = next(iter(self._failures))
            if self._failures[oldest][1] >= limit and len(self._failures) < MOST_KEYS:
                return
            del self._failures[oldest]
