"""The outcome of a handler as a value: it returned, failed, wants to come back later, or was stopped."""

import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec
import psycopg

from sidelinja_jobs.errors import (
    ChildDiedError,
    ChildError,
    ChildTimeoutError,
    ComeBackLaterError,
    HandlerError,
    JobStopped,
    PauseJobTypeError,
    PermanentError,
    RetryLaterError,
    StopReason,
)

Writes = Callable[[psycopg.Connection[Any]], None]


@dataclass(frozen=True)
class Completed:
    """The handler returned. `result` is JSON; `writes` go into the completing transaction, in order."""

    result: msgspec.Raw
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
    pause_class: str | None = None


@dataclass(frozen=True)
class Stopped:
    """The handler was stopped from outside."""

    reason: StopReason


Unfinished = Failed | Postponed | Stopped
Outcome = Completed | Unfinished


def outcome_of(error: BaseException) -> Unfinished:
    """The outcome that an exception from a handler stands for."""
    if (stopped := _stopped_by(error)) is not None:
        return Stopped(stopped.reason)
    text = text_of(error)
    match error:
        case PermanentError():
            return Failed(error.error_class, text, permanent=True)
        case RetryLaterError():
            return Failed(error.error_class, text, retry_after_seconds=error.seconds)
        case ComeBackLaterError():
            return Postponed(error.until, text)
        case PauseJobTypeError():
            return Postponed(error.until, text, pause_origin=error.origin, pause_class=error.error_class)
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


def text_of(error: BaseException) -> str:
    try:
        return str(error) or type(error).__name__
    except BaseException as broken:  # an error whose own text cannot be made must still be recorded
        return f"{type(error).__name__}, whose text raised {type(broken).__name__}"


def _traceback_of(error: BaseException) -> str | None:
    try:
        return "".join(traceback.format_exception(error))
    except BaseException:
        return None
