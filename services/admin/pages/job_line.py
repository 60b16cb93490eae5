"""One job as a list shows it: what is reckoned from its row, with the database's clock."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from services.admin.database import Row
from services.admin.messages import first_line, redacted_json

LEAST_SHARE = 0.05  # an estimate from less is a guess
STILL_SECONDS = 600.0  # so long without progress is told, whatever the heartbeats say
SHOWN_PAYLOAD, SHOWN_BYTES = 160, 300


@dataclass(frozen=True)
class JobLine:
    """A row of jobs_rows, and what follows from it. Seconds are never negative."""

    row: Row
    attempt: int
    seconds: float
    seconds_left: float | None
    still_seconds: float | None
    payload: str | None
    error: str

    @property
    def id(self) -> UUID:
        job_id: UUID = self.row["id"]
        return job_id

    def __getattr__(self, name: str) -> Any:
        try:
            return self.row[name]
        except KeyError:
            raise AttributeError(name) from None


def job_line(row: Row) -> JobLine:
    """What there is to say of a row."""
    payload = row["payload"]
    return JobLine(
        row=row,
        attempt=attempt_number(row),
        seconds=shown_seconds(row),
        seconds_left=seconds_left(row),
        still_seconds=still_seconds(row),
        payload=None if payload is None else cut_bytes(redacted_json(payload)),
        error=first_line(row["error_msg"]),
    )


def attempt_number(row: Row) -> int:
    """The run that it is at or ended with: attempts counts the failures alone."""
    attempts: int = row["attempts"]
    return attempts + 1 if row["status"] in ("running", "completed") else attempts


def shown_seconds(row: Row) -> float:
    """How long it runs or ran; how long it has waited since it was due; 0 while its time has not come."""
    now: datetime = row["read_at"]
    if row["status"] == "running":
        return between(row["started_at"] or now, now)
    if row["status"] in ("completed", "error"):
        return between(row["started_at"] or row["completed_at"] or now, row["completed_at"] or now)
    return between(max(row["scheduled_for"], row["created_at"]), now)


def seconds_left(row: Row) -> float | None:
    """An estimate, once a twentieth is done."""
    share: float | None = row["progress"]
    if row["status"] != "running" or share is None or not LEAST_SHARE <= share < 1 or row["started_at"] is None:
        return None
    return between(row["started_at"], row["read_at"]) * (1 - share) / share


def still_seconds(row: Row) -> float | None:
    """Since when nothing has moved, in seconds, once that is worth telling."""
    if row["status"] != "running" or row["started_at"] is None:
        return None
    moved = max(row["started_at"], row["progress_at"] or row["started_at"])
    seconds = between(moved, row["read_at"])
    return seconds if seconds >= STILL_SECONDS else None


def between(begin: datetime, end: datetime) -> float:
    """Seconds from one moment to another; 0 where the clocks say that it ended before it began."""
    return max(0.0, (end - begin).total_seconds())


def cut_bytes(text: str) -> str:
    """The beginning of a text: so many characters as a row has room for, and no more than so many bytes in UTF-8."""
    short = text[:SHOWN_PAYLOAD].encode(errors="replace")[: SHOWN_BYTES - 3].decode(errors="ignore")
    return short if len(short) == len(text) else short + "…"
