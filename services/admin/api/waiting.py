"""GET /jobs/{id}/wait: many who wait, one look at the database for all of them.

While somebody waits, one task asks every half second which of the waited-for jobs have ended. Nobody holds a
connection, and the cost is one statement, however many wait.
"""

import asyncio
import contextlib
from collections.abc import Iterable
from uuid import UUID

import psycopg
from psycopg_pool import PoolTimeout

from services.admin.api.jobs import read_job
from services.admin.api.operations import Answer, Call
from services.admin.api.problems import ProblemError
from services.admin.database import Database

LOOK_SECONDS = 0.5
MOST_WAITING = 500


class Endings:
    """Who waits for the end of which job."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: dict[UUID, list[asyncio.Future[None]]] = {}
        self._looking: asyncio.Task[None] | None = None

    @property
    def count(self) -> int:
        """How many wait."""
        return sum(map(len, self._waiting.values()))

    async def wait_for(self, job_id: UUID, seconds: float) -> bool:
        """Whether the job ended (or is gone) within this time.

        Raises:
            Problem: too many wait already.
        """
        if self.count >= MOST_WAITING:
            raise ProblemError(
                "busy", f"{MOST_WAITING} requests wait for jobs already", "try again", headers={"Retry-After": "5"}
            )
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(job_id, []).append(ended)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        try:
            async with asyncio.timeout(seconds):
                await ended
            return True
        except TimeoutError:
            return False
        finally:
            self._forget(job_id, ended)

    def release(self) -> None:
        """Answers all who wait, as if their time were over: the process ends."""
        for ended in [one for waiting in self._waiting.values() for one in waiting]:
            ended.cancel()

    async def _look(self) -> None:
        while self._waiting:
            # A database that is away for a while keeps those who wait waiting, up to their time.
            with contextlib.suppress(psycopg.Error, PoolTimeout):
                rows = await self._database.fetch_all("api_ended", ids=list(self._waiting))
                self._tell(row["id"] for row in rows)
            await asyncio.sleep(LOOK_SECONDS)

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


async def wait(call: Call) -> Answer:
    """The job, once it has ended or the time is up: `has_ended` says which."""
    job = await read_job(call, call.job_id)
    endings: Endings = call.request.app.state.endings
    if not job.has_ended and call.parameters.timeout:
        await endings.wait_for(job.id, call.parameters.timeout)
        job = await read_job(call, job.id)
    return Answer(job)
