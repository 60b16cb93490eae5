"""A connection cut at every kind of message that a run sends, before the server sees it and after it has done it."""

import pytest

from tests.databases import Database
from tests.fault_tools import add_written, attempts_of, statuses_of, wait_for_status
from tests.sessions import make_due
from tests.tcp_proxy import Proxy
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcesses

MESSAGES = [
    "claim_jobs", "read_checkpoints", "confirm_run", "BEGIN", "'part'", "write_checkpoint", "'end'", "complete_job",
    "COMMIT",
    "fail_job", "extend_leases", "sweep_jobs", "set_worker_idle", "beat_worker", "listen",
]  # fmt: skip

# Resumes at its checkpoints; fails once when told to. No prepared statements: their names hide what is sent.
RESUMING = """
import time
import psycopg._preparing
import sidelinja_jobs.housekeeping as housekeeping

psycopg._preparing.PrepareManager.prepare_threshold = None
housekeeping.WORKER_BEAT_SECONDS = 0.3

def handle(job, ctx):
    done = [point.data for point in ctx.checkpoints()]
    if "part" not in done:
        with ctx.transaction(checkpoint="part") as conn:
            conn.execute("insert into written values (%s, 'part')", (job.id,))
    if "second" not in done:
        ctx.checkpoint("second")
    if job.payload["slow"]:
        time.sleep(1.3)  # a quarter of the lease and more: a heartbeat and a sweep fall into it
    if job.payload["fail"] and job.attempt == 1:
        raise ValueError("as told")
    ctx.on_complete(lambda conn: conn.execute("insert into written values (%s, 'end')", (job.id,)))
"""


@pytest.mark.parametrize("answered", [False, True], ids=["before", "after"])
def test_no_cut_connection_loses_a_job_or_does_its_work_twice(
    database: Database, worker_process: WorkerProcesses, answered: bool
) -> None:
    add_written(database)
    database.add_job_type("test_job", lease_seconds=3, backoff_base_seconds=1)
    with Proxy(database.server.host, database.server.port) as proxy:
        url = proxy.dsn(database.dsn("worker_test"))
        environ = {"DATABASE_URL": url, "DB_TIMEOUT_SECONDS": "0.5", "POLL_SECONDS": "0.1"}
        worker = worker_process.start(database, RESUMING, environ=environ)
        for message in MESSAGES:
            slow = message in ("extend_leases", "sweep_jobs", "beat_worker")
            cut = proxy.cut_at(message, answered=answered)
            job_id = database.enqueue(payload={"fail": message == "fail_job", "slow": slow}, max_attempts=2)
            if message == "listen":  # sent by a new connection only
                database.rows(
                    "select pg_terminate_backend(pid) from pg_stat_activity where application_name like '% lease'"
                )

            def completed() -> bool:
                make_due(database, job_id)  # noqa: B023
                return bool(database.job(job_id)["status"] == "completed")  # noqa: B023

            wait_until(completed, 12, what=f"the job to complete after a cut at {message}")
            wait_until(cut.happened.is_set, 5, what=f"the cut at {message}")
            rows = database.rows("select note from written where job_id = %s order by note", job_id)
            assert [row["note"] for row in rows] == ["end", "part"], message
            assert statuses_of(database, job_id).count("completed") == 1, message
            charged = [past["error_class"] for past in attempts_of(database, job_id) if past["charged"]]
            assert len(charged) <= 1, (message, charged)
            assert "crash" not in charged, message
            assert worker.is_alive()
        wait_for_status(database, database.enqueue(payload={"fail": False, "slow": False}), "completed")
