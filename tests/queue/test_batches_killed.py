"""Processes that die in the middle of batches: each result once, and a death costs only what was not settled."""

from collections import Counter

from tests.databases import Database
from tests.fault_tools import add_written
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcesses

JOBS = 1500
# Job 300 kills its process while it works, job 600 while the writes of its batch are under way, job 900 in between.
MORTAL = """
import os, signal

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def handle(job, ctx):
    number, is_first = job.payload["number"], job.attempt == 1
    if number in (300, 900) and is_first:
        die()
    if number % 3 == 0:
        ctx.on_complete(lambda conn: conn.execute("insert into written values (%s, 'row')", (job.id,)))
    if number == 600 and is_first:
        ctx.on_complete(lambda conn: die())
    return number
"""


def test_four_processes_of_which_some_die_in_a_batch_complete_each_job_once(
    database: Database, worker_process: WorkerProcesses
) -> None:
    add_written(database)
    database.add_job_type("batch_job", batch_size=60, backoff_base_seconds=1)
    database.rows(
        """insert into job_queue (job_type, payload, scheduled_for)
           select 'batch_job', jsonb_build_object('number', n), now() - interval '1 minute' + n * interval '1 ms'
             from generate_series(0, %s - 1) as n""",
        JOBS,
    )
    workers = [worker_process.start(database, MORTAL, job_type="batch_job", ready=False) for _ in range(4)]

    done = "select count(*) from job_queue where status = 'completed'"
    wait_until(lambda: database.value(done) == JOBS, 60, every=0.1, what="all jobs to complete")

    assert 1 <= sum(not worker.is_alive() for worker in workers) <= 3
    assert database.value("select count(*) from job_queue where result <> payload -> 'number'") == 0
    assert database.value("select count(*) from written") == JOBS / 3
    assert database.value("select count(distinct job_id) from written") == JOBS / 3
    assert database.value("select count(*) from job_event where new_status = 'completed'") == JOBS
    ends = Counter(row["outcome"] for row in database.rows("select outcome from job_attempt"))
    assert set(ends) <= {"lost", "released"}, "released: given back, since the batch before took long"
    assert 1 <= ends["lost"] <= 3 * 2 * 60, "a batch and the one claimed ahead for each death"
    assert database.value("select count(*) from job_queue where attempts > 2") == 0
