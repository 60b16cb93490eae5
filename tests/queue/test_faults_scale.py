"""Many processes and many jobs, with workers killed, frozen and cut off: nothing twice, nothing missing."""

import time

import pytest

from sidelinja_jobs import enqueue_many
from tests.databases import Database
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcesses

JOBS = 8_000
INSERTING = """
def handle(job, ctx):
    ctx.on_complete(lambda conn: conn.execute("insert into written values (%s, 'row')", (job.id,)))
    return job.payload
"""


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_eight_thousand_jobs_and_eight_processes_leave_each_row_once(
    database: Database, worker_process: WorkerProcesses
) -> None:
    database.add_job_type("bulk_job", batch_size=50, lease_seconds=3, backoff_base_seconds=1)
    database.rows("create table written (job_id uuid primary key, note text)")
    database.rows("grant select, insert on written to worker_test")
    with database.connect("operator") as conn:
        for first in range(0, JOBS, 4000):
            enqueue_many(conn, "bulk_job", [{"number": number} for number in range(first, first + 4000)])
    done = "select count(*) from job_queue where status = 'completed'"

    environ = {"LOG_LEVEL": "warning"}
    workers = [
        worker_process.start(database, INSERTING, job_type="bulk_job", environ=environ, ready=False) for _ in range(8)
    ]
    wait_until(lambda: database.value(done) > 500, 60, every=0.1)
    workers[0].kill()
    workers[1].freeze()
    frozen_at = time.monotonic()
    wait_until(lambda: database.value(done) > 2000, 60, every=0.1)
    database.rows(
        """select pg_terminate_backend(pid) from pg_stat_activity
            where datname = current_database() and application_name = 'jobbko bulk_job work'"""
    )
    wait_until(lambda: time.monotonic() - frozen_at > 4)  # past its lease
    workers[1].thaw()
    wait_until(lambda: database.value(done) == JOBS, 120, every=0.2, what="all jobs to complete")

    missing_or_extra = """select count(*) from job_queue full join written on written.job_id = job_queue.id
                           where written.job_id is null or job_queue.id is null"""
    assert database.value(missing_or_extra) == 0
    assert database.value("select count(*) from written") == JOBS
    assert database.value("select count(*) from job_event where new_status = 'completed'") == JOBS
    assert database.rows("select error_class, error_msg, traceback from job_attempt where outcome = 'failed'") == []
    lost = database.rows("select distinct worker_id from job_attempt where outcome = 'lost'")
    assert lost  # the killed worker's batch, and the frozen one's
    for worker in workers[1:]:
        worker.terminate()
    assert [worker.wait(20) for worker in workers[1:]] == [0] * 7
