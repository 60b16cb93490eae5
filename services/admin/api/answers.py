"""What the API gives: the structs that answers and the OpenAPI document are made of. Times are in UTC."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec
from msgspec import Meta

from services.admin.api.shapes import Json, Payload, Status


class Given(msgspec.Struct, kw_only=True):
    """Base of what is given."""


class EnqueuedJob(Given):
    """`outcome`: created; exists (one with the key waits, nothing was added); rerun (one runs, another follows it)."""

    id: UUID
    outcome: Literal["created", "exists", "rerun"]


class EnqueuedJobs(Given):
    """In the order in which they were sent."""

    jobs: list[EnqueuedJob]


class JobSummary(Given):
    """A job without payload and result. `attempt` is the run that it is at, `attempts` counts failures."""

    id: UUID
    job_type: str
    status: Status
    has_ended: bool
    priority: int
    attempt: int
    attempts: int
    max_attempts: int
    created_at: datetime
    scheduled_for: datetime
    started_at: datetime | None
    completed_at: datetime | None
    worker_id: str | None
    progress: Annotated[float, Meta(ge=0, le=1, description="share done of the present run")] | None
    progress_note: str | None
    cancel_requested_at: datetime | None
    unique_key: str | None
    parent_id: UUID | None
    postponements: int
    error_class: str | None
    error_msg: str | None


class JobPage(Given):
    """`next_cursor` is null on the last page. One before it may be short, even empty, where few jobs fit the filter."""

    jobs: list[JobSummary]
    next_cursor: str | None


class Run(Given):
    """A run that did not complete."""

    attempt: int
    worker_id: str | None
    started_at: datetime | None
    ended_at: datetime
    outcome: str
    charged: Annotated[bool, Meta(description="whether it cost one of max_attempts")]
    error_class: str | None
    error_msg: str | None
    progress: float | None


class Change(Given):
    """A change of a job's status; the first one has no old status."""

    at: datetime
    old_status: Status | None
    new_status: Status
    attempts: int
    error_class: str | None
    worker_id: str | None
    actor: Annotated[str, Meta(description="who did it: a login role, a person, token:NAME")]


class Reason(Given):
    """Why a job is where it is; the words are those of the function explain_job."""

    reason: str
    detail: Json


class Job(JobSummary):
    """All of a job. Secrets in payload, result and messages are masked."""

    payload: Payload
    result: Json
    runs: list[Run]
    events: list[Change]
    reasons: list[Reason]


class Outcome(Given):
    """What an action did: retried, pulled_forward; cancelled, requested; changed, unchanged; paused, resumed."""

    outcome: str


class Event(Given):
    """A change of a job's status. Within one job, a higher `id` is newer, whatever order they arrive in."""

    id: int
    job_id: UUID
    job_type: str
    old_status: Status | None
    new_status: Status
    attempts: int
    error_class: str | None
    worker_id: str | None
    actor: str
    at: datetime


class EventPage(Given):
    """`next_cursor` is never null: ask with it again, at once if there are more, else later."""

    events: list[Event]
    next_cursor: str
    has_more: bool


class JobTypeState(Given):
    """A job type: the schema of its payload, its pause and what waits. Completed jobs are not counted."""

    name: str
    payload_schema: Json
    payload_limit_bytes: int | None
    is_paused: bool
    paused_at: datetime | None
    paused_until: datetime | None
    pause_origin: str | None
    pause_reason: str | None
    workers: int
    running: int
    due: int
    later: int
    errors: int
    oldest_due: datetime | None


class JobTypes(Given):
    job_types: list[JobTypeState]


class WorkerState(Given):
    """A worker process; stuck: its run has lost the lease; gone: it has not shown itself for 35 seconds."""

    worker_id: str
    job_type: str
    version: str
    host: str
    pid: int
    started_at: datetime
    seen_at: datetime
    state: Literal["busy", "idle", "stuck", "gone"]
    current_job_id: UUID | None
    current_since: datetime | None


class Workers(Given):
    workers: list[WorkerState]


class Health(Given):
    """Whether the database answers."""

    status: Literal["ok", "unavailable"]
