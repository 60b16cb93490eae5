"""The errors of the queue.

JobQueueError
├── SettingsError            settings are missing or wrong; all problems in one message
├── SchemaError              the database's schema does not fit this code
├── RefusedError             the database or the edge refused the input (SQLSTATE JQ002)
├── NotFoundError            no such job or job type (JQ004)
├── NotReadyError            what was asked for is still being worked on (JQ005)
├── NotAllowedError          the login may not do this (42501)
├── LeaseLostError           the run is no longer held; nothing was written (JQ001)
├── HandlerError             what a handler raises to steer its job
│   ├── PermanentError       end in error at once
│   ├── RetryLaterError      retry after a given time instead of the backoff
│   ├── ComeBackLaterError   put the job back until a time; costs no attempt
│   └── PauseJobTypeError    put the job back and pause its whole type until a time
└── ChildError               the child process raised, or:
    ├── ChildDiedError       it died
    └── ChildTimeoutError    it did not answer in time and was killed
JobStopped (BaseException)   raised into a handler to stop it

Apart from these, whatever a handler raises is an ordinary failure: retry with backoff.
"""

from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psycopg  # not when it runs: a child process that raises these errors needs no database driver


class JobQueueError(Exception):
    """Base of this package's errors."""


class SettingsError(JobQueueError):
    """Settings are missing or wrong."""


class SchemaError(JobQueueError):
    """The schema in the database is older than this code needs."""


class RefusedError(JobQueueError):
    """The input was refused; the message says what, where and what to do."""


class NotFoundError(JobQueueError):
    """There is no such job or job type."""


class NotReadyError(JobQueueError):
    """What was asked for is still waiting or running: come back later."""


class NotAllowedError(JobQueueError):
    """The login role may not do this."""


class LeaseLostError(JobQueueError):
    """The run is no longer held with this token; roll back."""


class HandlerError(JobQueueError):
    """Base of what a handler raises to steer its job. `error_class` is what counts and groups go by."""

    error_class = "error"

    def __init__(self, message: str, *, error_class: str | None = None) -> None:
        super().__init__(message)
        if error_class is not None:
            self.error_class = error_class

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only state survives the pipe from a child process.
        return (_rebuild, (type(self), self.args, dict(self.__dict__)))


class PermanentError(HandlerError):
    """Retrying cannot help: the job ends in error at once."""

    error_class = "permanent"


class RetryLaterError(HandlerError):
    """An ordinary failure that is retried after `seconds` instead of the backoff."""

    error_class = "retry_later"

    def __init__(self, message: str, *, seconds: float, error_class: str | None = None) -> None:
        super().__init__(message, error_class=error_class)
        self.seconds = seconds


class ComeBackLaterError(HandlerError):
    """Not possible now and nobody's fault: this job waits until `until`, at no cost, within bounds."""

    error_class = "postponed"

    def __init__(self, message: str, *, until: datetime, error_class: str | None = None) -> None:
        super().__init__(message, error_class=error_class)
        self.until = until


class PauseJobTypeError(HandlerError):
    """No job of this type can succeed until `until`: the job is put back and its type paused.

    The worker that finds the cause gone takes back exactly the pauses of that `error_class` (resume_own_pause).
    """

    error_class = "paused"

    def __init__(
        self, message: str, *, until: datetime, origin: str = "worker", error_class: str | None = None
    ) -> None:
        super().__init__(message, error_class=error_class)
        self.until = until
        self.origin = origin


class ChildError(JobQueueError):
    """The child process raised an error: its class, message and traceback."""

    def __init__(self, message: str, *, child_class: str = "", child_traceback: str = "") -> None:
        super().__init__(message)
        self.child_class = child_class
        self.child_traceback = child_traceback


class ChildTimeoutError(ChildError):
    """The child process did not answer in time, or gave no sign of life (`is_silent`), and was killed."""

    def __init__(self, message: str, *, is_silent: bool = False) -> None:
        super().__init__(message)
        self.is_silent = is_silent


class ChildDiedError(ChildError):
    """The child process died while it worked: of which signal or exit code, its peak memory and its last message."""


class StopReason(StrEnum):
    """Why a handler is stopped from outside."""

    SHUTDOWN = "shutdown"  # the worker was asked to end: released, no attempt
    CANCELLED = "cancelled"  # someone cancelled the job: ends in error, class cancelled
    LOST = "lost"  # the lease ran out or was taken: nothing may be written
    TIMEOUT = "timeout"  # over the longest run of its type: a failure
    STALLED = "stalled"  # no progress for the stall limit of its type: a failure
    INTERNAL = "internal"  # the lease thread died: released if possible


class JobStopped(BaseException):
    """Raised into the handler by the worker, no Exception so that none is taken for it. Clean up, let it through."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason.value)
        self.reason = reason


def _rebuild(kind: type[HandlerError], args: tuple[str], state: dict[str, object]) -> HandlerError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


_BY_SQLSTATE: dict[str, type[JobQueueError]] = {
    "JQ001": LeaseLostError,
    "JQ002": RefusedError,
    "JQ004": NotFoundError,
    "JQ005": NotReadyError,
    "42501": NotAllowedError,
    "23514": RefusedError,  # check_violation, such as a time out of bounds
}


def translate(error: "psycopg.Error") -> JobQueueError | None:
    """The queue's own error for a database error, or None when it is not one of ours."""
    kind = _BY_SQLSTATE.get(error.sqlstate or "")
    if kind is None:
        return None
    parts = [error.diag.message_primary or str(error), error.diag.message_hint]
    return kind(". ".join(part for part in parts if part))
