"""Workers of a job type that is worked in batches, for the tests of batches: jobs with numbers, and their handlers."""

from collections.abc import Mapping
from uuid import UUID

import msgspec

from tests.databases import Database
from tests.fault_tools import SIGNPOSTS
from tests.worker_processes import WorkerProcess, WorkerProcesses

COMPLETED = "select count(*) from job_queue where job_type = 'batch_job' and status = 'completed'"
# What is finished waits for the end of the batch, however long one of its jobs takes; all writes in one transaction.
PATIENT = (
    SIGNPOSTS
    + """
import sidelinja_jobs.batches as batches
import sidelinja_jobs.pace as pace
import sidelinja_jobs.settling_together as together
pace.QUICK_SECONDS = batches.FLUSH_SECONDS = together.WRITES_SECONDS = 60
"""
)
# Writes its number, and stops at the number that the payload names until the test says go.
NUMBERED = (
    SIGNPOSTS
    + """
def handle(job, ctx):
    number = job.payload["number"]
    ctx.on_complete(lambda conn: conn.execute("insert into written values (%s, %s)", (job.id, str(number))))
    if number == job.payload.get("fails"):
        ctx.on_complete(lambda conn: conn.execute("select 1 / 0"))
    if number == job.payload.get("sleeps"):
        ctx.on_complete(lambda conn: conn.execute("select pg_sleep(60)"))
    if number == job.payload.get("waits"):
        reach("working")
        wait_for("go")
    return {"number": number}
"""
)
PLAIN = (
    SIGNPOSTS
    + """
def handle(job, ctx):
    if job.payload["number"] == job.payload.get("waits"):
        reach("working")
        wait_for("go")
    if job.payload["number"] == job.payload.get("fails"):
        raise ValueError("not this one")
    return {"number": job.payload["number"]}
"""
)


def enqueue_numbers(database: Database, count: int, **also: int) -> list[UUID]:
    """Jobs that are claimed in the order of their numbers."""
    rows = database.rows(
        """insert into job_queue (job_type, payload, scheduled_for)
           select 'batch_job', jsonb_build_object('number', n) || %s::jsonb,
                  now() - interval '1 minute' + n * interval '1 ms'
             from generate_series(0, %s - 1) as n returning id, payload""",
        msgspec.json.encode(also).decode(),
        count,
    )
    return [row["id"] for row in sorted(rows, key=lambda row: row["payload"]["number"])]


def start(
    database: Database,
    workers: WorkerProcesses,
    handler: str,
    environ: Mapping[str, str] | None = None,
    **rules: int,
) -> WorkerProcess:
    database.add_job_type("batch_job", **{"batch_size": 20, **rules})
    return workers.start(database, handler, job_type="batch_job", environ=environ)
