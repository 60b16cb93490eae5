"""Long runs keep their lease, and long histories keep their row small."""

from tests.databases import Database
from tests.fault_tools import statuses_of, wait_for_status
from tests.sessions import claim_one, make_due, worker_session
from tests.worker_processes import WorkerProcesses


def test_a_run_of_five_leases_is_never_taken_for_dead(database: Database, worker_process: WorkerProcesses) -> None:
    """Two workers, the idle one of which sweeps four times per lease."""
    database.add_job_type("test_job", lease_seconds=1)
    handler = "import time\ndef handle(job, ctx): time.sleep(5)"
    workers = [worker_process.start(database, handler) for _ in range(2)]

    job_id = database.enqueue(max_attempts=1)
    job = wait_for_status(database, job_id, "completed", "error", timeout=30)

    assert statuses_of(database, job_id) == ["pending", "running", "completed"], job
    assert database.value("select count(*) from job_attempt") == 0
    assert all(worker.is_alive() for worker in workers)


def test_a_job_of_many_runs_stays_small(database: Database) -> None:
    """What failed before stands in job_attempt; the row tells of the last failure alone."""
    conn = worker_session(database)
    job_id = database.enqueue(max_attempts=32_000)
    size = "select pg_column_size(job_queue.*) from job_queue"
    sizes = []

    for number in range(200):
        run = claim_one(conn)
        conn.execute(
            "select fail_job(%s, %s, 'OSError', %s, %s, p_retry_after_seconds => 0)",
            (run.id, run.lease_token, f"failure {number} " + "x" * 20_000, "traceback " * 10_000),
        )
        make_due(database, job_id)
        sizes.append(database.value(size))

    assert max(sizes) < 8192
    assert max(sizes[100:]) - max(sizes[:100]) < 16
    assert database.value("select count(*) from job_attempt") == 200
