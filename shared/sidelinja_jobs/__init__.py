"""Jobbkø: a job queue in PostgreSQL. The public names for handlers and for programs that enqueue.

A name is imported when it is first asked for: a child process that reads untrusted files needs no database driver.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sidelinja_jobs.child import ChildProcess
    from sidelinja_jobs.context import Context
    from sidelinja_jobs.enqueueing import Enqueued, enqueue, enqueue_many
    from sidelinja_jobs.errors import (
        ChildDiedError,
        ChildError,
        ChildTimeoutError,
        ComeBackLaterError,
        JobQueueError,
        JobStopped,
        NotAllowedError,
        NotFoundError,
        NotReadyError,
        PauseJobTypeError,
        PermanentError,
        RefusedError,
        RetryLaterError,
        SettingsError,
        StopReason,
    )
    from sidelinja_jobs.job_type import JobType
    from sidelinja_jobs.models import Checkpoint, Job
    from sidelinja_jobs.process import run_process
    from sidelinja_jobs.settings import WorkerSettings, load_settings, setting
    from sidelinja_jobs.version import VERSION
    from sidelinja_jobs.worker import run_worker

__all__ = [
    "VERSION",
    "Checkpoint",
    "ChildDiedError",
    "ChildError",
    "ChildProcess",
    "ChildTimeoutError",
    "ComeBackLaterError",
    "Context",
    "Enqueued",
    "Job",
    "JobQueueError",
    "JobStopped",
    "JobType",
    "NotAllowedError",
    "NotFoundError",
    "NotReadyError",
    "PauseJobTypeError",
    "PermanentError",
    "RefusedError",
    "RetryLaterError",
    "SettingsError",
    "StopReason",
    "WorkerSettings",
    "enqueue",
    "enqueue_many",
    "load_settings",
    "run_process",
    "run_worker",
    "setting",
]

_PLACES = {
    "sidelinja_jobs.child": "ChildProcess",
    "sidelinja_jobs.context": "Context",
    "sidelinja_jobs.enqueueing": "Enqueued enqueue enqueue_many",
    "sidelinja_jobs.errors": (
        "ChildDiedError ChildError ChildTimeoutError ComeBackLaterError JobQueueError JobStopped "
        "NotAllowedError NotFoundError NotReadyError PauseJobTypeError PermanentError RefusedError "
        "RetryLaterError SettingsError StopReason"
    ),
    "sidelinja_jobs.job_type": "JobType",
    "sidelinja_jobs.models": "Checkpoint Job",
    "sidelinja_jobs.process": "run_process",
    "sidelinja_jobs.settings": "WorkerSettings load_settings setting",
    "sidelinja_jobs.version": "VERSION",
    "sidelinja_jobs.worker": "run_worker",
}
_PLACE_OF = {name: place for place, names in _PLACES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _PLACE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_PLACE_OF[name]), name)
    return value
