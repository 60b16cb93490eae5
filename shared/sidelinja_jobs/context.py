"""What a handler sees of the queue."""

import contextlib
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, TypeVar
from uuid import UUID

import psycopg
import structlog

from sidelinja_jobs import queue
from sidelinja_jobs.database import Link, QueueConnection, is_passing
from sidelinja_jobs.errors import JobStopped, LeaseLostError, StopReason
from sidelinja_jobs.json_text import clean_value
from sidelinja_jobs.models import Checkpoint
from sidelinja_jobs.outcomes import Writes
from sidelinja_jobs.run import Run

_NOTHING = object()
T = TypeVar("T")


class Context:
    """Passed to the handler beside its job; of no use after the handler has returned."""

    def __init__(
        self,
        run: Run,
        link: Link,
        connect: Callable[[str], QueueConnection],
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self._run, self._link, self._connect = run, link, connect
        self._checkpoint_count: int | None = None
        self._worker_log = log
        self.writes: list[Writes] = []

    @cached_property
    def log(self) -> structlog.typing.FilteringBoundLogger:
        """A logger with the job's id and attempt bound to it."""
        return self._worker_log.bind(job_id=str(self._run.id), attempt=self._run.claim.attempts + 1)

    @property
    def lease_token(self) -> UUID:
        """The fence of this run, for functions of the database that ask whether it is still held."""
        return self._run.lease_token

    def progress(self, fraction: float | None, note: str | None = None) -> None:
        """Reports the share done, 0 to 1, and what the work is at. Cheap: sent once a second at most.

        It is the sign of life that the stall limit watches.
        """
        self._run.report(fraction, note)

    def should_stop(self) -> bool:
        """Whether the run is to end now; the worker interrupts a handler that does not ask."""
        return self._run.stop_reason is not None

    def is_closing(self) -> bool:
        """Whether the worker was asked to end, and waits for what is under way: a time to begin nothing new."""
        return self._run.is_hurried or self.should_stop()

    def on_complete(self, write: Writes) -> None:
        """Registers a write for the completing transaction: committed with the completion or not at all.

        It is called with the connection, in the order of registration, and must not commit. When it raises, the job
        fails as if the handler had raised.
        """
        self.writes.append(write)

    def checkpoints(self) -> list[Checkpoint]:
        """The finished parts that this run and earlier ones of the job have written, in order."""
        found = self._insist(lambda conn: queue.read_checkpoints(conn, self._run))
        self._checkpoint_count = found[-1].seq if found else 0
        return found

    def checkpoint(self, data: Any) -> None:
        """Stores a finished part of the work. Survives the loss of the connection while the lease lasts.

        `data` is JSON: NaN becomes null, characters that the database cannot hold are replaced.
        """
        seq = self._next_checkpoint()
        stored = clean_value(data)
        self._insist(lambda conn: queue.write_checkpoint(conn, self._run, stored, seq))
        self._checkpoint_count = seq
        self._run.report(None, None)

    def drop_checkpoints(self) -> None:
        """Forgets all finished parts: they no longer fit the input."""
        self._insist(lambda conn: queue.drop_checkpoints(conn, self._run))
        self._checkpoint_count = 0

    @contextlib.contextmanager
    def transaction(self, checkpoint: Any = _NOTHING) -> Iterator[psycopg.Connection[Any]]:
        """A transaction for the handler's own writes, committed with a checkpoint and only while the run is held.

        The fence is its last statement: when the run is lost, everything is rolled back and the handler stopped. A
        connection that breaks inside raises psycopg.OperationalError.
        """
        seq = None if checkpoint is _NOTHING else self._next_checkpoint()
        self._insist(lambda conn: queue.confirm(conn, self._run))  # finds a dead connection before the work
        conn = self._link.open()
        with self._fenced(), conn.deadline(None), conn.transaction():
            yield conn
            if seq is None:
                queue.confirm(conn, self._run)
            else:
                queue.write_checkpoint(conn, self._run, clean_value(checkpoint), seq)
        if seq is not None:
            self._checkpoint_count = seq
        self._run.report(None, None)

    @contextlib.contextmanager
    def side_connection(self) -> Iterator[psycopg.Connection[Any]]:
        """An autocommit connection of its own, for what must survive a rollback."""
        conn = self._connect("side")
        try:
            yield conn
        finally:
            conn.close()

    def _next_checkpoint(self) -> int:
        if self._checkpoint_count is None:
            self.checkpoints()
        return (self._checkpoint_count or 0) + 1

    @contextlib.contextmanager
    def _fenced(self) -> Iterator[None]:
        try:
            yield
        except LeaseLostError:
            self._run.stop(StopReason.LOST)
            raise JobStopped(StopReason.LOST) from None

    def _insist(self, call: Callable[[QueueConnection], T]) -> T:
        """Calls with an open connection, again and again until the lease is over (the alarm then stops the handler)."""
        while True:
            try:
                with self._fenced():
                    conn = self._link.open()
                    if self._link.is_busy:
                        raise RuntimeError("inside ctx.transaction, use its checkpoint argument")
                    return call(conn)
            except psycopg.Error as error:
                if not is_passing(error, self._link.is_open):
                    raise
                self._link.close()
                self.log.warning("database not reachable, trying again", error=str(error).strip())
                time.sleep(min(0.5, self._run.rules.lease_seconds / 16))
