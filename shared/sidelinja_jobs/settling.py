"""How a run ends: the one place that writes the outcome of a handler to the database.

A connection that breaks during the commit leaves it open whether the run was settled. Then the database is asked what
became of the run before anything is written again, until the lease is over. A server that answers but keeps refusing (a
full disk, say) is given up on sooner, or the heartbeat would keep the job running for ever.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import psycopg

from sidelinja_jobs import queue
from sidelinja_jobs.database import Link, QueueConnection, has_ended
from sidelinja_jobs.errors import JobQueueError, LeaseLostError, PermanentError, RefusedError, StopReason
from sidelinja_jobs.models import Settled
from sidelinja_jobs.outcomes import (
    Completed,
    Failed,
    Outcome,
    Postponed,
    Stopped,
    Unfinished,
    Writes,
    outcome_of,
    text_of,
)
from sidelinja_jobs.run import Phase, Run

REFUSED_SECONDS = 30.0  # for how long a settling that the server refuses is tried again, a lease at most
REFUSED_HURRIED_SECONDS = 5.0  # once the worker is to stop
Interruptible = Callable[[Run, Phase, Callable[[], None]], None]  # Interrupter.call


@dataclass(frozen=True)
class Ending:
    """What was recorded. `label` is the metric's outcome."""

    label: str
    settled: Settled | None = None
    error_class: str | None = None
    message: str | None = None
    is_permanent: bool = False


LOST = Ending("lost_lease")
COMPLETED = Ending("completed")

_UNRECORDABLE = Failed("bad_outcome", "the outcome of the handler cannot be recorded")


class _UnsettledError(JobQueueError):
    """The server could not complete the run; it is tried again while the lease lasts."""


# What run_outcome says of a run that was settled before its connection broke.
_PAST = {
    "completed": COMPLETED,
    "failed": Ending("retry"),
    "postponed": Ending("snoozed"),
    "released": Ending("released"),
    "cancelled": Ending("cancelled"),
}


def settle(link: Link, run: Run, outcome: Outcome, interruptible: Interruptible, *, in_doubt: bool = False) -> Ending:
    """Records the end of a run; returns LOST when it is no longer held, and nothing was written.

    `interruptible` guards the handler's last writes, which may hang like the handler itself. `in_doubt`: it may have
    been settled already, by a commit whose answer was lost.
    """
    if outcome == Stopped(StopReason.LOST):
        return LOST
    refusals = _Refusals(run)
    while True:
        try:
            conn = link.open()
            if in_doubt and (past := queue.run_outcome(conn, run)) != "running":
                return _PAST.get(past, LOST)
            # No longer than the lease lasts: what comes later is refused anyway.
            with conn.deadline(min(conn.deadline_seconds or 60.0, max(run.deadline - time.monotonic(), 1.0))):
                if not isinstance(outcome, Completed):
                    return _settle_once(conn, run, outcome)
                ending = _complete(conn, run, outcome, interruptible)
            if isinstance(ending, Ending):
                return ending
            outcome = ending
            link.tidy()
        except LeaseLostError:
            return LOST
        except (psycopg.Error, JobQueueError, TypeError, ValueError, OverflowError) as error:
            if _is_unrecordable(error) and outcome != _UNRECORDABLE:
                outcome = _recordable(outcome, error)
                continue
            if run.is_expired or refusals.gave_up_twice:
                return LOST
            outcome = refusals.consider(outcome, error, is_open=link.is_open)
            link.close()
            in_doubt = True
            time.sleep(min(0.5, run.rules.lease_seconds / 16))


class _Refusals:
    """How long a server that answers has been refusing to settle a run."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._since: float | None = None
        self._given_up = 0

    @property
    def gave_up_twice(self) -> bool:
        return self._given_up > 1

    def consider(self, outcome: Outcome, error: Exception, *, is_open: bool) -> Outcome:
        """The outcome to try next: the same, or when patience is over another, once; after that the lease runs out."""
        if not is_open:
            return outcome  # the connection is gone: that is no refusal
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        patience = min(
            REFUSED_HURRIED_SECONDS if self._run.is_hurried else REFUSED_SECONDS, self._run.rules.lease_seconds
        )
        if not self._given_up and now - self._since < patience:
            return outcome
        self._given_up += 1
        if self._run.is_hurried:
            return Stopped(StopReason.SHUTDOWN)
        return Failed("completion_refused", f"the database refused to settle the run: {text_of(error)}")


def _recordable(outcome: Outcome, error: Exception) -> Failed:
    """In place of an outcome whose own values the database refuses, such as a time that is no time."""
    if isinstance(outcome, Failed) and outcome.error_class == _UNRECORDABLE.error_class:
        return _UNRECORDABLE
    return Failed(_UNRECORDABLE.error_class, f"{_UNRECORDABLE.message}: {text_of(error)}")


def _is_unrecordable(error: Exception) -> bool:
    """Whether the values are at fault, not the server (a value that psycopg cannot send has no SQLSTATE)."""
    if isinstance(error, psycopg.ProgrammingError):
        return error.sqlstate is None
    return isinstance(error, RefusedError | psycopg.DataError | TypeError | ValueError | OverflowError)


def settle_stopped(conn: QueueConnection, run: Run, reason: StopReason) -> Ending:
    """Records the end of a run that was stopped from outside."""
    rules = run.rules
    match reason:
        case StopReason.LOST:
            return LOST
        case StopReason.TIMEOUT:
            return _fail(
                conn,
                run,
                Failed("timeout", f"stopped after the longest run of its type, {rules.longest_run_seconds} s"),
            )
        case StopReason.STALLED:
            return _fail(conn, run, Failed("stalled", f"stopped after {rules.stall_seconds} s without progress"))
    return _released(queue.release(conn, run, f"worker stopped: {reason.value}"))


def _settle_once(conn: QueueConnection, run: Run, outcome: Unfinished) -> Ending:
    match outcome:
        case Failed():
            return _fail(conn, run, outcome)
        case Postponed():
            return _postpone(conn, run, outcome)
        case Stopped():
            return settle_stopped(conn, run, outcome.reason)


def _complete(conn: QueueConnection, run: Run, outcome: Completed, interruptible: Interruptible) -> Ending | Unfinished:
    """Completes the run, or returns what to record instead: a failing write is an ordinary failure of the job."""
    try:
        if outcome.writes:
            with conn.transaction():
                with conn.deadline(None):
                    interruptible(run, Phase.COMPLETING, lambda: write_all(conn, outcome.writes))
                _store(conn, run, outcome.result)
        else:
            _store(conn, run, outcome.result)
    except (LeaseLostError, _UnsettledError):
        raise
    except BaseException as error:
        if has_ended(conn, error):
            conn.close()
            raise psycopg.OperationalError("connection lost while completing") from error
        return outcome_of(error)
    return COMPLETED


def write_all(conn: QueueConnection, writes: list[Writes]) -> None:
    for write in writes:
        write(conn)


def _store(conn: QueueConnection, run: Run, result: msgspec.Raw) -> None:
    try:
        queue.complete(conn, run, result)
    except RefusedError as error:
        raise PermanentError(str(error), error_class="bad_result") from error
    except psycopg.Error as error:  # the server's trouble, such as a full disk or a failover: not the job's
        raise _UnsettledError(str(error)) from error


def _fail(conn: QueueConnection, run: Run, failure: Failed) -> Ending:
    settled = queue.fail(
        conn,
        run,
        failure.error_class,
        failure.message,
        traceback=failure.traceback,
        permanent=failure.permanent,
        retry_after_seconds=failure.retry_after_seconds,
    )
    return Ending(settled.status, settled, failure.error_class, failure.message, failure.permanent)


def _postpone(conn: QueueConnection, run: Run, outcome: Postponed) -> Ending:
    if outcome.pause_origin is None:
        settled = queue.postpone(conn, run, outcome.until, outcome.reason)
        return Ending("snoozed" if settled.status != "error" else "error", settled, "postponed", outcome.reason)
    with conn.transaction():
        queue.pause_job_type(
            conn, run.job_type, outcome.until, outcome.reason, outcome.pause_origin, outcome.pause_class
        )
        return _released(queue.release(conn, run, f"type paused: {outcome.reason}"))


def _released(settled: Settled) -> Ending:
    if settled.status == "error":
        return Ending("cancelled", settled, "cancelled")
    return Ending("released", settled)
