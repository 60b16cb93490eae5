"""Jobbkø: a job queue in PostgreSQL. The public names for handlers and for programs that enqueue."""

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
    "run_worker",
    "setting",
]
