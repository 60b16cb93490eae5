"""How a run ends: the outcome of a handler as a value, and the one place that writes it to the database.

A connection that breaks during the commit leaves it open whether the run was settled. Then the database is asked what
became of the run before anything is written again, until the lease is over.
"""

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import psycopg

from sidelinja_jobs import queue
from sidelinja_jobs.database import Link, QueueConnection
from sidelinja_jobs.errors import (
    ChildDiedError,
    ChildError,
    ChildTimeoutError,
    ComeBackLaterError,
    HandlerError,
    JobQueueError,
    JobStopped,
    LeaseLostError,
    PauseJobTypeError,
    PermanentError,
    RefusedError,
    RetryLaterError,
    StopReason,
)
from sidelinja_jobs.models import Settled
from sidelinja_jobs.run import Phase, Run

Interruptible = Callable[[Run, Phase, Callable[[], None]], None]  # Interrupter.call
Writes = Callable[[psycopg.Connection[Any]], None]


@dataclass(frozen=True)
class Completed:
    """The handler returned. `writes` go into the completing transaction, in order."""

    result: Any
    writes: list[Writes] = field(default_factory=list)


@dataclass(frozen=True)
class Failed:
    """The handler raised."""

    error_class: str
    message: str
    traceback: str | None = None
    permanent: bool = False
    retry_after_seconds: float | None = None


@dataclass(frozen=True)
class Postponed:
    """The handler said "come back later"; with `pause_origin`, for its whole type."""

    until: datetime
    reason: str
    pause_origin: str | None = None


@dataclass(frozen=True)
class Stopped:
    """The handler was stopped from outside."""

    reason: StopReason


Unfinished = Failed | Postponed | Stopped
Outcome = Completed | Unfinished


@dataclass(frozen=True)
class Ending:
    """What was recorded. `label` is the metric's outcome."""

    label: str
    settled: Settled | None = None
    error_class: str | None = None
    message: str | None = None
    is_permanent: bool = False


LOST = Ending("lost_lease")

_UNRECORDABLE = Failed("bad_outcome", "the outcome of the handler cannot be recorded")


class _UnsettledError(JobQueueError):
    """The server could not complete the run; it is tried again while the lease lasts."""


# What run_outcome says of a run that was settled before its connection broke.
_PAST = {
    "completed": Ending("completed"),
    "failed": Ending("retry"),
    "postponed": Ending("snoozed"),
    "released": Ending("released"),
    "cancelled": Ending("cancelled"),
}


def outcome_of(error: BaseException) -> Unfinished:
    """The outcome that an exception from a handler stands for."""
    if (stopped := _stopped_by(error)) is not None:
        return Stopped(stopped.reason)
    text = _text_of(error)
    match error:
        case PermanentError():
            return Failed(error.error_class, text, permanent=True)
        case RetryLaterError():
            return Failed(error.error_class, text, retry_after_seconds=error.seconds)
        case ComeBackLaterError():
            return Postponed(error.until, text)
        case PauseJobTypeError():
            return Postponed(error.until, text, pause_origin=error.origin)
        case HandlerError():
            return Failed(error.error_class, text)
        case ChildDiedError():
            return Failed("child_died", text)
        case ChildTimeoutError():
            return Failed("timeout", text)
        case ChildError():
            return Failed(error.child_class or "child_error", text, traceback=error.child_traceback)
    return Failed(type(error).__name__, text, traceback=_traceback_of(error))


def _stopped_by(error: BaseException | None) -> JobStopped | None:
    """The JobStopped that an error is, holds as a group, or was raised in place of."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, JobStopped):
            return error
        if isinstance(error, BaseExceptionGroup):
            found = next(filter(None, map(_stopped_by, error.exceptions)), None)
            if found is not None:
                return found
        error = error.__cause__ or error.__context__
    return None


def _text_of(error: BaseException) -> str:
    try:
        return str(error) or type(error).__name__
    except BaseException as broken:  # an error whose own text cannot be made must still be recorded
        return f"{type(error).__name__}, whose text raised {type(broken).__name__}"


def _traceback_of(error: BaseException) -> str | None:
    try:
        return "".join(traceback.format_exception(error))
    except BaseException:
        return None


def settle(link: Link, run: Run, outcome: Outcome, interruptible: Interruptible) -> Ending:
    """Records the end of a run; returns LOST when it is no longer held, and nothing was written.

    `interruptible` guards the handler's last writes, which may hang like the handler itself.
    """
    if outcome == Stopped(StopReason.LOST):
        return LOST
    in_doubt = False
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
            link.close()
            in_doubt = True
            if run.is_expired:
                return LOST
            time.sleep(min(0.5, run.rules.lease_seconds / 16))


def _recordable(outcome: Outcome, error: Exception) -> Failed:
    """In place of an outcome whose own values the database refuses, such as a time that is no time."""
    if isinstance(outcome, Failed) and outcome.error_class == _UNRECORDABLE.error_class:
        return _UNRECORDABLE
    return Failed(_UNRECORDABLE.error_class, f"{_UNRECORDABLE.message}: {_text_of(error)}")


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
        with conn.transaction():
            if outcome.writes:
                with conn.deadline(None):
                    interruptible(run, Phase.COMPLETING, lambda: _write_all(conn, outcome.writes))
            _store(conn, run, outcome.result)
    except (LeaseLostError, _UnsettledError):
        raise
    except BaseException as error:
        if conn.closed:
            raise psycopg.OperationalError("connection lost while completing") from error
        return outcome_of(error)
    return Ending("completed", Settled("completed", run.claim.attempts, None))


def _write_all(conn: QueueConnection, writes: list[Writes]) -> None:
    for write in writes:
        write(conn)


def _store(conn: QueueConnection, run: Run, result: Any) -> None:
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
        queue.pause_job_type(conn, run.job_type, outcome.until, outcome.reason, outcome.pause_origin)
        return _released(queue.release(conn, run, f"type paused: {outcome.reason}"))


def _released(settled: Settled) -> Ending:
    if settled.status == "error":
        return Ending("cancelled", settled, "cancelled")
    return Ending("released", settled)
