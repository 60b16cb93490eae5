"""What passes between the queue and a handler."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar
from uuid import UUID

import msgspec

P = TypeVar("P")


class Job(msgspec.Struct, Generic[P], frozen=True):
    """A claimed job. `payload` is validated; `attempt` is the number of this run, from 1."""

    id: UUID
    job_type: str
    payload: P
    attempt: int
    max_attempts: int
    priority: int
    created_at: datetime
    scheduled_for: datetime
    parent_id: UUID | None


@dataclass(frozen=True)
class Checkpoint:
    """A finished part of an unfinished job, written by this run or an earlier one. `seq` counts from 1."""

    seq: int
    data: Any
    written_at: datetime


class Claim(msgspec.Struct, frozen=True):
    """A row as claimed. `payload_text`, JSON, is None when over the type's limit (`payload_bytes` says how large)."""

    id: UUID
    payload_text: str | None
    payload_bytes: int
    priority: int
    attempts: int
    max_attempts: int
    lease_token: UUID
    created_at: datetime
    scheduled_for: datetime
    started_at: datetime
    parent_id: UUID | None


@dataclass(frozen=True)
class Rules:
    """The rules of a job type as the database holds them. Times in seconds; stall 0 = no limit."""

    lease_seconds: int
    longest_run_seconds: int
    stall_seconds: int
    batch_size: int
    payload_limit_bytes: int

    @property
    def margin_seconds(self) -> float:
        """A handler is stopped this long before its lease would end."""
        return min(15.0, self.lease_seconds / 4)

    @property
    def beat_seconds(self) -> float:
        """Time between heartbeats: a quarter of the lease, so that three may fail."""
        return self.lease_seconds / 4


@dataclass(frozen=True)
class Settled:
    """Where a job stands after its run ended."""

    status: str
    attempts: int
    scheduled_for: datetime | None
