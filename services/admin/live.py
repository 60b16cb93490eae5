"""Changes of jobs as they come, for every page that is open.

One reader per process looks at job_event and at the progress of running jobs twice a second while a page is open, and
the pages get what is new from its memory. There is no NOTIFY for it: that takes a lock of the whole server at each
commit, which the queue pays only to wake an idle worker.

The cursor is a snapshot of PostgreSQL: new is what it did not see, by the transaction in job_event.xid. So an event
whose transaction took long is neither missed (a cursor by id would pass it) nor waited for (one below the oldest
transaction would), and a cursor is good over restarts of this process. A page may hear of an event twice when it
begins, never not at all; all that it does then is look again.
"""

import asyncio
import re
from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import psycopg

from services.admin.database import TROUBLE, Database, Row
from services.admin.messages import first_line
from services.admin.pages.job_line import seconds_left
from services.admin.words import LANGUAGES, Speech, doing
from sidelinja_jobs.errors import JobQueueError
from sidelinja_jobs.log import get_logger

log = get_logger()

POLL_SECONDS = 0.5
MOST_EVENTS = 500  # in one look; of more, pages are told to look at everything again
KEPT_LOOKS = 120  # a minute, for a page whose connection is slow
_ZONE = ZoneInfo("UTC")  # of no matter: only spans are told
_TOLD = ("progress", "note", "attempts", "max_attempts", "cancel_requested_at")  # a change of which is told
CURSOR = re.compile(r"\d{1,20}:\d{1,20}:(\d{1,20}(,\d{1,20}){0,1000})?")


@dataclass(frozen=True)
class LiveLook:
    """What one look has found, as the bytes of an event stream. `number` counts the looks that found something."""

    number: int
    message: bytes


class LiveFeed:
    """Reads while somebody listens. Belongs to one event loop."""

    def __init__(self, database: Database, most_streams: int) -> None:
        self._database, self._most_streams = database, most_streams
        self._looks: deque[LiveLook] = deque(maxlen=KEPT_LOOKS)
        self._news = asyncio.Event()  # replaced by a new one with each look: whoever holds it, wakes
        self._reader: asyncio.Task[None] | None = None
        self._number = 0
        self.streams = 0
        self.is_stopping = False

    @property
    def number(self) -> int:
        """Counts the looks that found something."""
        return self._number

    @property
    def is_full(self) -> bool:
        """No further page may listen."""
        return self.streams >= self._most_streams

    def stop(self) -> None:
        """Ends every stream."""
        self.is_stopping = True
        self._wake()

    async def listen(self, after: str | None, idle_seconds: float) -> AsyncGenerator[bytes, None]:
        """Messages about all that the cursor did not see; b"" when nothing came for that long. Ends with the server."""
        self.streams += 1
        try:
            number = self._number  # first: what comes during the statement is heard twice rather than never
            cursor, first = await self._begin(after)
            self._start(cursor)
            yield first
            while not self.is_stopping:
                news = self._news
                fresh = [look for look in self._looks if look.number > number]
                if not fresh:
                    try:
                        await asyncio.wait_for(news.wait(), idle_seconds)
                    except TimeoutError:
                        yield b""
                    continue
                if fresh[0].number > number + 1:
                    yield b"event: reset\ndata: {}\n\n"
                number = fresh[-1].number
                yield b"".join(look.message for look in fresh)
        finally:
            self.streams -= 1

    async def _begin(self, after: str | None) -> tuple[str, bytes]:
        """What happened between the making of a page, or its last event, and now."""
        async with self._database.session() as session:
            if after is None or not CURSOR.fullmatch(after):
                cursor = await session.fetch_value("live_snapshot")
                return cursor, _message(cursor, [], [], is_reset=True)
            try:
                news = await session.fetch_one("live_events", after=after, most=MOST_EVENTS)
            except (psycopg.DataError, JobQueueError):  # looks like a snapshot and is none
                cursor = await session.fetch_value("live_snapshot")
                return cursor, _message(cursor, [], [], is_reset=True)
            running = await session.fetch_all("live_running")
        assert news is not None  # noqa: S101 - the statement always has one row
        events, is_reset = _events(news)
        return news["cursor"], _message(news["cursor"], events, [_progress(row) for row in running], is_reset=is_reset)

    def _start(self, cursor: str) -> None:
        if self._reader is None or self._reader.done():
            self._reader = asyncio.create_task(self._read(cursor))

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def _read(self, cursor: str) -> None:
        """Looks until nobody listens any more."""
        progress: dict[Any, Row] = {}
        while self.streams and not self.is_stopping:
            await asyncio.sleep(POLL_SECONDS)
            try:
                async with self._database.session() as session:
                    news = await session.fetch_one("live_events", after=cursor, most=MOST_EVENTS)
                    running = await session.fetch_all("live_running")
            except TROUBLE as error:
                log.warning("live view has no database", error=str(error).strip())
                continue
            assert news is not None  # noqa: S101 - the statement always has one row
            events, is_reset = _events(news)
            now = {row["id"]: {name: row[name] for name in _TOLD} for row in running}
            changed = [_progress(row) for row in running if progress.get(row["id"]) != now[row["id"]]]
            moved, cursor, progress = cursor != news["cursor"], news["cursor"], now
            if events or changed or is_reset or moved:
                self._number += 1
                self._looks.append(LiveLook(self._number, _message(cursor, events, changed, is_reset=is_reset)))
                self._wake()


def _events(news: Row) -> tuple[list[dict[str, Any]], bool]:
    """The events, and whether they were too many to tell."""
    too_many = news["is_foreign"] or len(news["events"]) > MOST_EVENTS
    return ([] if too_many else news["events"]), too_many


def _message(cursor: str, events: list[Any], progress: list[bytes], *, is_reset: bool) -> bytes:
    """The wire form of text/event-stream. The id stands in the last part: a page that got half starts before it."""
    parts = []
    if is_reset:
        parts.append(b"event: reset\ndata: {}\n\n")
    if events:
        parts.append(b"event: job\ndata: " + msgspec.json.encode(events) + b"\n\n")
    if progress:
        parts.append(b"event: progress\ndata: [" + b",".join(progress) + b"]\n\n")
    parts.append(f"id: {cursor}\nevent: cursor\ndata: {{}}\n\n".encode())
    return b"".join(parts)


def _progress(row: Row) -> bytes:
    return msgspec.json.encode(
        {
            "id": str(row["id"]),
            "progress": row["progress"],
            "note": first_line(row["note"]),
            "text": {language: doing(language, row) for language in LANGUAGES},
            "left": {language: _left(language, row) for language in LANGUAGES},
        }
    )


def _left(language: str, row: Row) -> str:
    """How long it will take at this pace; nothing where that would be a guess."""
    seconds = seconds_left(row)
    says = Speech(language, _ZONE, row["read_at"])
    return "" if seconds is None else says.t("jobs.left", span=says.duration(seconds))
