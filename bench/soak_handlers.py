"""Handlers of the soak: each leaves one row in the transaction that completes it, under a unique constraint.

A job that completed twice, or a part that was written twice, would meet that constraint and fail loudly.
"""

import os
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from sidelinja_jobs import ComeBackLaterError, Context, Job, PermanentError, RetryLaterError, enqueue

PARTS = 4
DONE = "insert into soak_done (job_id, pid) values (%s, %s)"
PART = "insert into soak_part (job_id, part) values (%s, %s)"


def _leave_a_row(job: Job[Any], ctx: Context) -> None:
    ctx.on_complete(lambda conn: conn.execute(DONE, (job.id, os.getpid())) and None)


def quick(job: Job[Any], ctx: Context) -> dict[str, int]:
    """Nothing but its row: one of many, in batches."""
    _leave_a_row(job, ctx)
    return {"attempt": job.attempt}


def slow(job: Job[Any], ctx: Context) -> dict[str, int]:
    """A second of work in parts, each committed with its checkpoint: the next run goes on after the last one."""
    _leave_a_row(job, ctx)
    begun = len(ctx.checkpoints())
    for part in range(begun, PARTS):
        time.sleep(0.25)
        ctx.progress(part / PARTS, f"part {part}")
        with ctx.transaction(checkpoint=part) as conn:
            conn.execute(PART, (job.id, part))
    return {"begun_at": begun}


def failing(job: Job[Any], ctx: Context) -> dict[str, int]:
    """Every way to end; most of them well in the end."""
    _leave_a_row(job, ctx)
    match job.payload["n"] % 32:
        case 0 | 1 | 2 | 3 if job.attempt < 3:
            raise OSError(f"attempt {job.attempt} fails")
        case 4 | 5 | 6:
            raise PermanentError("never")
        case 7 | 8 | 9 if job.attempt == 1:
            raise RetryLaterError("in a second", seconds=1)
        case 10 | 11 | 12 if datetime.now(UTC) < job.created_at + timedelta(seconds=2):
            raise ComeBackLaterError("two seconds after its birth", until=datetime.now(UTC) + timedelta(seconds=1))
        case 13 if job.attempt == 1:
            os._exit(137)
        case 14 | 15 | 16:
            raise ValueError("always")
    return {"attempt": job.attempt}


def follow(job: Job[Any], ctx: Context) -> dict[str, int]:
    """Another job follows if and only if this one completes."""
    _leave_a_row(job, ctx)
    ctx.on_complete(lambda conn: enqueue(conn, "soak_quick", {"n": 0}, parent_id=job.id) and None)
    return {}


def unique(job: Job[Any], ctx: Context) -> dict[str, int]:
    """Runs long enough for its key to be enqueued again meanwhile."""
    _leave_a_row(job, ctx)
    time.sleep(0.1)
    return {}
