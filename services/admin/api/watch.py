"""Many who wait or listen, one look at the database for all of them.

While somebody waits for the end of a job or listens to events, one task looks twice a second: which of the waited-for
jobs have ended, and whether there are new events. Nobody holds a connection meanwhile, and what several listeners ask
for at the same cursor is read once.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterable
from uuid import UUID

from services.admin.api.events import Look, read_events
from services.admin.api.problems import ProblemError
from services.admin.api.shapes import EventsAfter
from services.admin.database import TROUBLE, Database

LOOK_SECONDS = 0.5
BEAT_SECONDS = 15.0  # a listener hears something at least so often, or proxies take the connection for dead
MOST_WAITING = 500
MOST_LISTENING = 50


class Watch:
    """Who waits for the end of which job, and who listens. A database that is away for a while ends nobody's wait."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: dict[UUID, list[asyncio.Future[None]]] = {}
        self._listening = 0
        self._newest: str | None = None
        self._tick = asyncio.Event()
        self._looks: dict[tuple[str | None, tuple[str, ...]], asyncio.Task[Look]] = {}
        self._looking: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.is_stopping = False

    async def wait_for(self, job_id: UUID, seconds: float) -> None:
        """Returns when the job has ended or is gone, when the time is up, or when the process ends.

        Raises:
            ProblemError: too many wait already.
        """
        if sum(map(len, self._waiting.values())) >= MOST_WAITING:
            raise _busy(f"{MOST_WAITING} requests wait for jobs already")
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(job_id, []).append(ended)
        self._start()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await ended
        finally:
            self._forget(job_id, ended)

    def check_room(self) -> None:
        """Refuses one listener too many.

        Raises:
            ProblemError: there are enough.
        """
        if self._listening >= MOST_LISTENING:
            raise _busy(f"{MOST_LISTENING} listen to events already")

    async def check_cursor(self, wanted: EventsAfter) -> None:
        """One look, before the answer begins: afterwards a problem could not be told any more.

        Raises:
            ProblemError: the database was restored since the cursor was given.
        """
        await self._shared_look(wanted)

    async def listen(self, wanted: EventsAfter) -> AsyncGenerator[Look, None]:
        """What happens after a cursor, as it comes; a look without events is a sign of life.

        A cursor that expires meanwhile ends it: the client hears why when it comes back.
        """
        self._listening += 1
        try:
            self._start()
            while not self.is_stopping:
                tick = self._tick
                with contextlib.suppress(*TROUBLE):
                    look = await self._shared_look(wanted)
                    wanted = EventsAfter(after=look.next_cursor, type=wanted.type, limit=wanted.limit)
                    yield look
                    if look.has_more:
                        continue
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(BEAT_SECONDS):
                        await tick.wait()
        except ProblemError:
            return
        finally:
            self._listening -= 1

    def stop(self) -> None:
        """Lets all go who wait or listen. From a signal handler or another thread, too."""
        self.is_stopping = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._release)

    def _release(self) -> None:
        self._tell(list(self._waiting))
        self._next_tick()

    def _start(self) -> None:
        self._loop = asyncio.get_running_loop()
        if self._looking is None or self._looking.done():
            self._looking = self._loop.create_task(self._look())

    async def _look(self) -> None:
        while (self._waiting or self._listening) and not self.is_stopping:
            with contextlib.suppress(*TROUBLE):
                if self._waiting:
                    rows = await self._database.fetch_all("api_ended", ids=list(self._waiting))
                    self._tell(row["id"] for row in rows)
                if self._listening:
                    newest = await self._database.fetch_value("api_newest_event")
                    if newest != self._newest:
                        self._newest = newest
                        self._next_tick()
            await asyncio.sleep(LOOK_SECONDS)

    def _next_tick(self) -> None:
        self._looks.clear()
        before, self._tick = self._tick, asyncio.Event()
        before.set()

    async def _shared_look(self, wanted: EventsAfter) -> Look:
        key = (wanted.after, tuple(wanted.type))
        if key not in self._looks:
            self._looks[key] = asyncio.create_task(read_events(self._database, wanted))
        look = self._looks[key]
        try:
            return await asyncio.shield(look)
        except BaseException:
            if look.done() and self._looks.get(key) is look:
                del self._looks[key]  # the next one tries anew
            raise

    def _tell(self, job_ids: Iterable[UUID]) -> None:
        for job_id in job_ids:
            for ended in self._waiting.get(job_id, ()):
                if not ended.done():
                    ended.set_result(None)

    def _forget(self, job_id: UUID, ended: asyncio.Future[None]) -> None:
        waiting = self._waiting[job_id]
        waiting.remove(ended)
        if not waiting:
            del self._waiting[job_id]


def _busy(detail: str) -> ProblemError:
    return ProblemError("busy", detail, "try again in some seconds", headers={"Retry-After": "5"})
