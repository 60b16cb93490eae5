"""What the fault tests share: waiting for a state, taking a run away, locking its row, a handler's own table."""

from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg

from tests.databases import Database
from tests.sessions import make_due
from tests.waiting import wait_until

# Beginning of a handler's module: it tells the test where it is, and waits for the test's word.
SIGNPOSTS = """
import os, pathlib, time

def reach(name, text=""):
    part = pathlib.Path(name + ".part")
    part.write_text(text)
    part.rename(name)

def wait_for(name):
    while not os.path.exists(name):
        time.sleep(0.01)
"""


def wait_for_status(
    database: Database, job_id: UUID, *statuses: str, timeout: float = 10, attempts: int | None = None
) -> dict[str, Any]:
    """The job's row, as soon as it has one of the statuses (and that many failures)."""

    def look() -> dict[str, Any] | None:
        job = database.job(job_id)
        is_there = job["status"] in statuses and attempts in (None, job["attempts"])
        return job if is_there else None

    try:
        return wait_until(look, timeout, what=f"job to be {' or '.join(statuses)}")  # type: ignore[return-value]
    except TimeoutError as error:
        raise AssertionError(f"{error}; the job is {database.job(job_id)}") from None


def wait_for_file(path: Path) -> str:
    """The text of a file, as soon as a handler has reached it."""
    wait_until(path.exists, what=f"the handler to reach {path.name}")
    return path.read_text()


def take_away(database: Database, job_id: UUID) -> None:
    """Gives the run to nobody in particular, as a claim by another worker after a lost lease does."""
    database.rows("update job_queue set lease_token = gen_random_uuid() where id = %s", job_id)


def bury(database: Database, job_id: UUID) -> dict[str, Any]:
    """Lets the lease of a dead run be over now, sweeps it, and makes its next run due at once."""
    database.rows("update job_queue set lease_until = now() - interval '1 second' where id = %s", job_id)
    wait_until(lambda: _swept(database, job_id), what="the run to be swept")
    make_due(database, job_id)
    return database.job(job_id)


def lock_row(database: Database, job_id: UUID) -> psycopg.Connection[Any]:
    """Somebody's open transaction on the row of a job, until it is rolled back or the database is closed."""
    blocker = database.connect(autocommit=False)
    blocker.execute("select from job_queue where id = %s for update", (job_id,))
    return blocker


def wait_for_lock(database: Database) -> None:
    """Returns when some session waits for a lock."""
    wait_until(lambda: database.rows("select pid from pg_stat_activity where wait_event_type = 'Lock'"))


def attempts_of(database: Database, job_id: UUID) -> list[dict[str, Any]]:
    return database.rows("select * from job_attempt where job_id = %s order by id", job_id)


def statuses_of(database: Database, job_id: UUID) -> list[str]:
    """Every status that the job has had, in order."""
    rows = database.rows("select new_status from job_event where job_id = %s order by id", job_id)
    return [row["new_status"] for row in rows]


def add_written(database: Database) -> None:
    """A table for rows that handlers write, open to worker_test."""
    database.rows("create table written (job_id uuid not null, note text)")
    database.rows("grant select, insert, delete on written to worker_test")


def written(database: Database) -> list[str]:
    return [row["note"] for row in database.rows("select note from written order by note")]


def _swept(database: Database, job_id: UUID) -> bool:
    database.rows("select sweep_jobs()")
    return bool(database.job(job_id)["status"] != "running")
