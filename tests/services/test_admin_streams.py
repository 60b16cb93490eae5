"""Pieces of the live view by themselves: a stream that nobody takes, one that cannot begin, one look for many pages."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request

from services.admin import sharing, streams
from services.admin.database import Database
from services.admin.live import LiveFeed
from services.admin.settings import read_settings


async def still_there() -> Any:
    """What a client says that does not leave."""
    await asyncio.sleep(3600)


def test_a_page_that_takes_nothing_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "SEND_SECONDS", 0.05)
    sent = []

    async def never_drained(message: Any) -> None:
        sent.append(message)
        if len(sent) > 1:
            await asyncio.sleep(3600)

    async def run() -> None:
        answer = streams.EventStream(None, LiveFeed(None, 1), None)  # type: ignore[arg-type]
        await asyncio.wait_for(answer({}, still_there, never_drained), 5)

    asyncio.run(run())
    assert len(sent) == 2


def test_a_stream_that_cannot_begin_without_the_database_ends_in_order() -> None:
    """The page was let in just before: its answer has begun, and no other can be given any more."""
    settings = read_settings({"DATABASE_URL": "postgresql://nobody@127.0.0.1/nothing"})
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def run() -> None:
        unopened = Database(settings)
        answer = streams.EventStream(None, LiveFeed(unopened, 1), None)  # type: ignore[arg-type]
        await asyncio.wait_for(answer({}, still_there, send), 5)

    asyncio.run(run())
    assert sent[-1] == {"type": "http.response.body", "body": b"", "more_body": False}


def test_pages_that_look_again_together_are_read_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """But who clicks sees what is there then, and after a change everybody does."""
    monkeypatch.setattr(sharing, "SECONDS", 3600.0)
    feed = SimpleNamespace(number=1)
    app = SimpleNamespace(state=SimpleNamespace(feed=feed))
    looking = Request({"type": "http", "headers": [(b"x-live", b"1")], "app": app})
    clicking = Request({"type": "http", "headers": [], "app": app})
    reads: list[int] = []

    async def read() -> int:
        await asyncio.sleep(0)
        reads.append(feed.number)
        return len(reads)

    async def run() -> list[int]:
        shared = sharing.Shared()
        found = await asyncio.gather(*(shared.read(looking, "nb", read) for _ in range(3)))
        found.append(await shared.read(looking, "en", read))
        found.append(await shared.read(clicking, "nb", read))
        feed.number = 2
        found.append(await shared.read(looking, "nb", read))
        monkeypatch.setattr(sharing, "SECONDS", 0.0)
        found.append(await shared.read(looking, "nb", read))
        return found

    assert asyncio.run(run()) == [1, 1, 1, 2, 3, 4, 5]
