"""Waiting for something to become true, in place of sleeping for as long as it might take."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(look: Callable[[], T], timeout: float = 10.0, *, every: float = 0.02, what: str | None = None) -> T:
    """Calls `look` until it returns something true, and returns that.

    Raises:
        TimeoutError: nothing true came within `timeout` seconds; names what was waited for and last seen.
    """
    end = time.monotonic() + timeout
    while True:
        seen = look()
        if seen:
            return seen
        if time.monotonic() >= end:
            waited_for = what or getattr(look, "__qualname__", repr(look))
            raise TimeoutError(f"waited {timeout:g} s for {waited_for}; last seen: {seen!r}")
        time.sleep(every)


def stays(look: Callable[[], object], seconds: float, *, what: str | None = None) -> None:
    """Looks for `seconds` whether `look` stays true; fails at the first time that it is not."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        seen = look()
        assert seen, f"{what or getattr(look, '__qualname__', repr(look))} did not stay true: {seen!r}"
        time.sleep(0.02)
