"""What the API takes: the structs that requests are checked with and that the OpenAPI document is made of.

What is taken refuses unknown fields: a field with a slip in its name would otherwise do nothing, in silence. Times are
RFC 3339 with an offset when they come in, and UTC when they leave.
"""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec
from msgspec import Meta

MOST_BATCHED = 1000
MOST_LISTED = 200
MOST_EVENTS = 1000
LONGEST_WAIT_SECONDS = 300
CURSOR_PATTERN = "^([0-9a-f]{8}-(0|[1-9][0-9]{0,18})-(0|[1-9][0-9]{0,17})|end)$"

Status = Literal["pending", "running", "completed", "error", "retry"]
Scope = Literal["enqueue", "read", "operate"]
Cursor = Annotated[
    str, Meta(pattern="^[0-9]{1,16}-[0-9a-f]{32}$", description="`next_cursor` of the page before, unchanged")
]
JobTypeName = Annotated[str, Meta(min_length=1, max_length=200, description="which worker runs it")]
Moment = Annotated[datetime, Meta(tz=True)]
Priority = Annotated[int, Meta(ge=-32768, le=32767, description="higher is sooner")]
Payload = Annotated[
    msgspec.Raw, Meta(description="the input, as the type's schema has it", extra_json_schema={"type": "object"})
]
Json = Annotated[msgspec.Raw, Meta(extra_json_schema={})]


class Taken(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Base of what is taken."""


class NewJob(Taken):
    """A job to enqueue."""

    job_type: JobTypeName
    payload: Payload
    priority: Priority = 0
    scheduled_for: Annotated[Moment, Meta(description="not before this time, of the years 2000 to 2199")] | None = None
    max_attempts: Annotated[int, Meta(ge=1, le=32767, description="at this many failures it ends in error")] = 3
    unique_key: (
        Annotated[
            str,
            Meta(
                min_length=1, max_length=500, description="at most one waiting or running job of the type has this key"
            ),
        ]
        | None
    ) = None
    parent_id: Annotated[UUID, Meta(description="the job that this one follows from")] | None = None


class NewJobs(Taken):
    """Jobs to enqueue, all or none."""

    jobs: Annotated[list[NewJob], Meta(min_length=1, max_length=MOST_BATCHED)]


class Nothing(Taken):
    """No parameters."""


class Listing(Taken):
    """Which jobs, newest first."""

    type: Annotated[list[JobTypeName], Meta(max_length=20, description="of one of these types")] = []
    status: Annotated[list[Status], Meta(max_length=5, description="in one of these states")] = []
    error_class: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    parent_id: UUID | None = None
    created_from: Annotated[Moment, Meta(description="enqueued at this time or later")] | None = None
    created_before: Annotated[Moment, Meta(description="enqueued before this time")] | None = None
    cursor: Cursor | None = None
    limit: Annotated[int, Meta(ge=1, le=MOST_LISTED)] = 50


class Showing(Taken):
    """How much of a job is shown."""

    reveal: Annotated[bool, Meta(description="secrets are not masked; needs the scope operate")] = False


class Waiting(Taken):
    """How long to wait."""

    timeout: Annotated[int, Meta(ge=0, le=LONGEST_WAIT_SECONDS, description="seconds")] = 30


class EventsFrom(Taken):
    """Which changes of status."""

    after: (
        Annotated[
            str,
            Meta(
                pattern=CURSOR_PATTERN,
                description="`next_cursor` of the page before; `end`: those to come; none: all that are kept",
            ),
        ]
        | None
    ) = None
    type: Annotated[list[JobTypeName], Meta(max_length=20, description="of jobs of one of these types")] = []


class EventsAfter(EventsFrom):
    """Which changes of status, and how many at once."""

    limit: Annotated[int, Meta(ge=1, le=MOST_EVENTS)] = 200


class Cancelling(Taken):
    """Why a job is cancelled."""

    reason: Annotated[str, Meta(max_length=1000, description="stands in the job's error message")] | None = None


class Prioritising(Taken):
    """A job's new priority."""

    priority: Priority


class Pausing(Taken):
    """Why, and for how long, a type is paused."""

    reason: Annotated[str, Meta(min_length=1, max_length=1000, description="people see it wherever the pause shows")]
    until: Annotated[Moment, Meta(description="resumes by itself; none: until someone resumes it")] | None = None
