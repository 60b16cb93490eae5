"""Settles many completed runs in one transaction: each under its own fence, each with its own writes in a savepoint.

What cannot be settled together is settled one by one (settling.py): a failing write fails its own job, a lost run
loses its own writes, and after a broken commit the database is asked what became of each.
"""

import time
from collections.abc import Sequence
from typing import NamedTuple

import psycopg
from psycopg.pq import TransactionStatus

from sidelinja_jobs import queue
from sidelinja_jobs.database import Link, QueueConnection, has_ended
from sidelinja_jobs.errors import JobQueueError, LeaseLostError
from sidelinja_jobs.outcomes import Completed, Outcome, outcome_of
from sidelinja_jobs.run import Phase, Run
from sidelinja_jobs.settling import COMPLETED, LOST, Ending, Interruptible, settle, write_all

WRITES_SECONDS = 1.0  # the writes of one transaction: the rows of its jobs are locked, and their heartbeat waits


class Finished(NamedTuple):
    """A run whose handler has returned."""

    run: Run
    outcome: Completed
    seconds: float
    in_doubt: bool = False  # a statement for many has failed: it may be settled already, or must be settled alone

    @property
    def is_plain(self) -> bool:
        """Whether any thread may complete it, in one statement with others."""
        return not self.outcome.writes and not self.in_doubt


def settle_together(link: Link, finished: Sequence[Finished], interruptible: Interruptible) -> list[Ending]:
    """Records the ends of runs, in their order; LOST for those that were no longer held."""
    endings = {
        each.run: settle(link, each.run, each.outcome, interruptible, in_doubt=True)
        for each in finished
        if each.in_doubt
    }
    while rest := [each for each in finished if each.run not in endings]:
        try:
            endings |= _settle_some(link, rest, interruptible)
        except (psycopg.Error, JobQueueError, TypeError, ValueError, OverflowError):
            # Values that the server refuses, the server's own trouble, or a connection that is gone.
            link.tidy()
            for each in rest:
                endings[each.run] = settle(link, each.run, each.outcome, interruptible, in_doubt=True)
    return [endings[each.run] for each in finished]


def complete_plain(conn: QueueConnection, finished: Sequence[Finished]) -> list[Ending]:
    """The same in one statement, for runs without writes or whose writes are made. Raises what psycopg raises."""
    lost = queue.complete_many(conn, [each.run for each in finished], [each.outcome.result for each in finished])
    return [LOST if lost and each.run.id in lost else COMPLETED for each in finished]


def _place(each: Finished) -> int:
    return each.run.id.int


def _settle_some(link: Link, finished: Sequence[Finished], interruptible: Interruptible) -> dict[Run, Ending]:
    """Settles as many as take WRITES_SECONDS, at least one."""
    conn = link.open()
    deadline = min(each.run.deadline for each in finished) - time.monotonic()
    with conn.deadline(min(conn.deadline_seconds or 60.0, max(deadline, 1.0))):
        # Apart from those with writes: each transaction locks its rows in the order of their ids.
        if plain := [each for each in finished if not each.outcome.writes]:
            return dict(zip((each.run for each in plain), complete_plain(conn, plain), strict=True))
        try:
            with conn.transaction():
                written, others = _write_some(conn, sorted(finished, key=_place), interruptible)
                endings = dict(zip((each.run for each in written), complete_plain(conn, written), strict=True))
        finally:
            for each in finished:
                each.run.is_locked = False
    return endings | {run: _settle_alone(link, run, outcome, interruptible) for run, outcome in others.items()}


def _write_some(
    conn: QueueConnection, finished: Sequence[Finished], interruptible: Interruptible
) -> tuple[list[Finished], dict[Run, Outcome | None]]:
    """Runs whose writes were made and are fenced, and what to record of the others: None for a lost run."""
    written: list[Finished] = []
    others: dict[Run, Outcome | None] = {}
    started = time.monotonic()
    for each in finished:
        try:
            with conn.transaction():
                _write_one(conn, each, interruptible)
            written.append(each)
        except LeaseLostError:
            others[each.run] = None
        except BaseException as error:
            if (
                isinstance(error, psycopg.errors.DeadlockDetected)
                or has_ended(conn, error)
                or conn.info.transaction_status is not TransactionStatus.INTRANS
            ):
                # Gone, in another's way, or left in the middle of a statement: the others must not suffer from it.
                raise psycopg.OperationalError("connection lost while completing") from error
            others[each.run] = outcome_of(error)
        if time.monotonic() - started > WRITES_SECONDS:
            break
    return written, others


def _write_one(conn: QueueConnection, each: Finished, interruptible: Interruptible) -> None:
    with conn.deadline(None):
        interruptible(each.run, Phase.COMPLETING, lambda: write_all(conn, each.outcome.writes))
    each.run.is_locked = True
    queue.confirm(conn, each.run)  # locks the row: what was written stands or falls with the completion below


def _settle_alone(link: Link, run: Run, outcome: Outcome | None, interruptible: Interruptible) -> Ending:
    return LOST if outcome is None else settle(link, run, outcome, interruptible)
