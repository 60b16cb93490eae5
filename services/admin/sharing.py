"""One look at the database for all pages that look again at the same moment.

When a job changes, every open first page asks for itself again, all of them after the same look of the feed: what
they are told is read once. Only what pages ask by themselves is shared; who clicks sees what is there then.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar

from starlette.requests import Request

from services.admin.rendering import LIVE_HEADER

T = TypeVar("T")
SECONDS = 0.5  # and never older than the last look of the feed


class Shared:
    """What was read last, by what it is."""

    def __init__(self) -> None:
        self._found: dict[Hashable, tuple[int, float, Any]] = {}
        self._locks: dict[Hashable, asyncio.Lock] = {}

    async def read(self, request: Request, key: Hashable, read: Callable[[], Awaitable[T]]) -> T:
        """What `read` answers, or what it has just answered to another page that looked again."""
        if LIVE_HEADER not in request.headers:
            return await read()
        async with self._locks.setdefault(key, asyncio.Lock()):
            look, now = request.app.state.feed.number, time.monotonic()
            known = self._found.get(key)
            if known is None or known[0] != look or now - known[1] > SECONDS:
                known = self._found[key] = (look, now, await read())
            found: T = known[2]
            return found
