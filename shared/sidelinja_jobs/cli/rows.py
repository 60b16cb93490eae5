"""What the statements in queries.sql return. Payloads and results stay the JSON text that the database sent."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

ENDED = ("completed", "error")
WAITING = ("pending", "retry")
STATUSES = ("pending", "running", "completed", "error", "retry")

# Every filter of list_jobs; those that are not asked for stay None.
NO_FILTER: dict[str, object] = {
    "ids": None,
    "statuses": None,
    "job_type": None,
    "failing": False,
    "since": None,
    "since_seconds": None,
    "before": None,
}


@dataclass(frozen=True, kw_only=True)
class JobRow:
    """A job without its payload and result."""

    id: UUID
    job_type: str
    status: str
    priority: int
    attempts: int
    max_attempts: int
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    scheduled_for: datetime
    worker_id: str | None
    lease_until: datetime | None
    progress: float | None
    progress_note: str | None
    cancel_requested_at: datetime | None
    unique_key: str | None
    parent_id: UUID | None
    postponements: int
    error_class: str | None
    error_msg: str | None
    is_paused: bool
    read_at: datetime

    @property
    def attempt(self) -> int:
        """The run that it is at or ended with: attempts counts the failures only."""
        return self.attempts + 1 if self.status in ("running", "completed") else self.attempts

    @property
    def has_ended(self) -> bool:
        return self.status in ENDED

    @property
    def was_cancelled(self) -> bool:
        return self.status == "error" and self.error_class == "cancelled"


@dataclass(frozen=True, kw_only=True)
class WholeJobRow(JobRow):
    """A job with everything."""

    payload: str
    result: str | None
    rerun_requested_at: datetime | None
    checkpoints: int


@dataclass(frozen=True, kw_only=True)
class IdRow:
    id: UUID


@dataclass(frozen=True, kw_only=True)
class AttemptRow:
    """A run that did not complete."""

    attempt: int
    worker_id: str | None
    started_at: datetime | None
    ended_at: datetime
    outcome: str
    charged: bool
    error_class: str | None
    error_msg: str | None
    traceback: str | None
    checkpoint: int
    progress: float | None


@dataclass(frozen=True, kw_only=True)
class EventRow:
    """A change of status."""

    at: datetime
    old_status: str | None
    new_status: str
    attempts: int
    error_class: str | None
    worker_id: str | None
    actor: str


@dataclass(frozen=True, kw_only=True)
class ReasonRow:
    """One reason of explain_job, its detail as JSON text."""

    reason: str
    detail: str


@dataclass(frozen=True, kw_only=True)
class WorkerRow:
    """A worker process."""

    worker_id: str
    job_type: str
    version: str
    host: str
    pid: int
    started_at: datetime
    seen_at: datetime
    idle: bool
    current_job_id: UUID | None
    current_since: datetime | None
    state: str
    read_at: datetime


@dataclass(frozen=True, kw_only=True)
class TypeRow:
    """A job type with its counts."""

    name: str
    is_known: bool
    workers: int
    due: int
    later: int
    running: int
    errors: int
    oldest_due: datetime | None
    is_paused: bool
    paused_at: datetime | None
    paused_until: datetime | None
    pause_origin: str | None
    pause_reason: str | None
    read_at: datetime


@dataclass(frozen=True, kw_only=True)
class TypeFacts:
    """What enqueueing a type wants to know."""

    is_known: bool
    payload_schema: str | None
    payload_limit_bytes: int | None
    is_paused: bool
    paused_until: datetime | None
    has_worker: bool
    known_types: list[str]
    read_at: datetime


@dataclass(frozen=True, kw_only=True)
class EnqueuedRow:
    id: UUID
    outcome: str


@dataclass(frozen=True, kw_only=True)
class OutcomeRow:
    """What a function of the operator answered: a word, or whether it changed anything."""

    outcome: Any


@dataclass(frozen=True, kw_only=True)
class TypeRetentionRow:
    """How long ended jobs of a type are kept, in days (0 = for ever), and how many are to go."""

    job_type: str
    keep_completed_days: int
    keep_error_days: int
    is_own: bool
    completed_over: int
    error_over: int


@dataclass(frozen=True, kw_only=True)
class RetentionRow:
    """How long all else is kept, in days; 0 = for ever."""

    keep_event_days: int
    keep_call_days: int
    keep_audit_days: int
