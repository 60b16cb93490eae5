"""A worker without a process: the queue's functions, called through a worker's own login."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import dict_row

from sidelinja_jobs import queue
from sidelinja_jobs.models import Claim
from tests.databases import Database


def worker_session(
    database: Database, role: str = "worker_test", job_type: str = "test_job", worker_id: str = "w1"
) -> Any:
    """A connection of a worker's role, on which a worker is registered."""
    conn = database.connect(role, row_factory=dict_row)
    queue.register(conn, worker_id, job_type, "1.0", "host", 1, None)
    return conn


def claim_one(conn: Any, job_type: str = "test_job", worker_id: str = "w1") -> Claim:
    """The one job that is due, or the first of them."""
    (claim,) = queue.claim(conn, job_type, worker_id, 1)
    return claim


def make_due(database: Database, job_id: UUID) -> None:
    """Moves a waiting job's time to now."""
    database.rows("update job_queue set scheduled_for = now() where id = %s and status in ('pending', 'retry')", job_id)


def expire(database: Database, *job_ids: UUID) -> None:
    """Moves the leases of running jobs into the past."""
    database.rows("update job_queue set lease_until = now() - interval '1 second' where id = any(%s)", list(job_ids))


@contextmanager
def refused(sqlstate: str, match: str | None = None) -> Iterator[None]:
    """Expects the database to answer with that SQLSTATE."""
    with pytest.raises(psycopg.Error, match=match) as caught:
        yield
    assert caught.value.sqlstate == sqlstate, caught.value


def run_in_threads(work: Callable[[int], object], count: int) -> None:
    """Calls `work` with 0 to count - 1, each in a thread; raises what any of them raised."""
    with ThreadPoolExecutor(count) as pool:
        for done in [pool.submit(work, number) for number in range(count)]:
            done.result(60)
