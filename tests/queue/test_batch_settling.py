"""What a batch has finished is settled together, alone where it must be, and by one thread."""

from uuid import UUID

import pytest

from tests.databases import Database
from tests.fault_tools import (
    add_written,
    attempts_of,
    lock_row,
    wait_for_file,
    wait_for_lock,
    wait_for_status,
    written,
)
from tests.queue.batch_support import COMPLETED, NUMBERED, PATIENT, PLAIN, enqueue_numbers, start
from tests.tcp_proxy import Proxy
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcess, WorkerProcesses

# Every other job has a write.
MIXED = (
    PATIENT
    + """
def handle(job, ctx):
    number = job.payload["number"]
    if number % 2:
        ctx.on_complete(lambda conn: conn.execute("insert into written values (%s, %s)", (job.id, str(number))))
    if number == job.payload["waits"]:
        reach("working")
        wait_for("go")
"""
)
# The last job takes long, and what is finished waits for the lease thread until the test says so.
OVERDUE = (
    PATIENT
    + """
batches.OVERDUE_SECONDS = 60

def handle(job, ctx):
    if job.payload["number"] == job.payload["waits"]:
        reach("working")
        wait_for("locked")
        batches.OVERDUE_SECONDS = 0
        wait_for("go")
"""
)
# All that is finished is settled at the end of the batch, while the next one is worked.
UNHURRIED = PATIENT + "batches.OVERDUE_SECONDS = 60\n" + PLAIN
# Each job is settled before the next one begins.
HASTY = PLAIN + "import sidelinja_jobs.pace as pace\npace.QUICK_SECONDS = 0\n"
# The last job is still at its write when that of the one before is made.
LINGERING = (
    PATIENT
    + """
def handle(job, ctx):
    ctx.on_complete(lambda conn: linger(ctx) if job.payload["lingers"] else None)

def linger(ctx):
    ctx.progress(0.5)
    reach("writing")
    wait_for("go")
"""
)
# 360 kB on the way; the server writes each of its numbers with all 301 digits.
HUGE = """
def handle(job, ctx):
    if job.payload["number"] == job.payload.get("waits"):
        reach("working")
        wait_for("go")
    return [1e300] * 60_000 if job.payload["number"] == job.payload["huge"] else job.payload["number"]
"""


def ended_jobs(worker: WorkerProcess) -> int:
    """How many jobs it says that it has ended."""
    return sum(line.get("jobs", 1) for line in worker.log_events() if line["event"] in ("job ended", "jobs ended"))


def test_a_finished_job_waits_for_others_only_so_long(database: Database, worker_process: WorkerProcesses) -> None:
    add_written(database)
    enqueue_numbers(database, 12, waits=8)
    no_longer = "batches.FLUSH_SECONDS = -1\n"  # as if each had waited already
    worker = start(database, worker_process, PATIENT + no_longer + NUMBERED, lease_seconds=60)

    wait_for_file(worker.log_file.parent / "working")

    assert database.value(COMPLETED) == len(written(database)) == 8


def test_what_has_writes_waits_for_the_thread_that_makes_them(
    database: Database, worker_process: WorkerProcesses
) -> None:
    """The lease thread settles what waits too long, but for that: completed by it, a job would lose its writes."""
    add_written(database)
    ids = enqueue_numbers(database, 12, waits=10)
    worker = start(database, worker_process, MIXED, lease_seconds=8)
    wait_for_file(worker.log_file.parent / "working")

    wait_until(lambda: database.value(COMPLETED) == 5, what="the lease thread to settle those without writes")
    assert [database.job(job_id)["status"] for job_id in ids[:10]] == ["completed", "running"] * 5
    assert written(database) == []

    (worker.log_file.parent / "go").touch()
    wait_until(lambda: database.value(COMPLETED) == 12)
    assert written(database) == sorted(str(number) for number in range(1, 12, 2))
    worker.terminate()
    assert (worker.wait(), ended_jobs(worker)) == (0, 12), "each is settled by one thread alone"


def test_what_the_lease_thread_could_not_settle_is_settled_although_the_batch_is_over(
    database: Database, worker_process: WorkerProcesses
) -> None:
    ids = enqueue_numbers(database, 4, waits=3)
    worker = start(database, worker_process, OVERDUE, lease_seconds=6)
    wait_for_file(worker.log_file.parent / "working")
    blocker = lock_row(database, ids[2])
    (worker.log_file.parent / "locked").touch()
    wait_for_lock(database)

    (worker.log_file.parent / "go").touch()
    wait_for_status(database, ids[3], "completed")
    wait_until(lambda: worker.log_events("heartbeat failed"))
    blocker.rollback()

    wait_until(lambda: ended_jobs(worker) == 4, what="the worker to find out what became of them")
    assert database.value(COMPLETED) == 4


@pytest.mark.parametrize("answered", [False, True], ids=["never arrived", "answer lost"])
def test_a_connection_lost_beside_the_next_batch_costs_the_one_before_nothing(
    database: Database, worker_process: WorkerProcesses, answered: bool
) -> None:
    ids = enqueue_numbers(database, 60, waits=5)
    with Proxy(database.server.host, database.server.port) as proxy:
        environ = {"DATABASE_URL": proxy.dsn(database.dsn("worker_test"))}
        worker = start(database, worker_process, UNHURRIED, environ, batch_size=30, lease_seconds=20)
        wait_for_file(worker.log_file.parent / "working")
        cut = proxy.cut_at("complete_runs", answered=answered)
        (worker.log_file.parent / "go").touch()

        wait_until(lambda: ended_jobs(worker) == 60, what="the worker to end all of them")
        assert cut.happened.is_set()

    assert database.value(COMPLETED) == 60
    assert [attempts_of(database, job_id) for job_id in ids] == [[]] * 60


def test_a_write_that_takes_longer_than_the_lease_costs_its_batch_nothing(
    database: Database, worker_process: WorkerProcesses
) -> None:
    """Behind a row that is locked until the batch's commit, a heartbeat would wait, and all leases run out."""
    worker = start(database, worker_process, LINGERING, lease_seconds=3)
    wait_until(worker.health_file.exists, what="the lease thread to listen: all that it holds then gets a heartbeat")
    database.rows(
        """insert into job_queue (id, job_type, payload)
           select lpad(n::text, 32, '0')::uuid, 'batch_job', jsonb_build_object('lingers', n = 2)
             from generate_series(0, 2) as n"""
    )
    wait_for_file(worker.log_file.parent / "writing")
    first = database.job(UUID(int=1))["lease_until"]

    wait_until(lambda: database.value("select clock_timestamp() > %s + interval '1 s'", first), what="the lease to end")

    assert database.job(UUID(int=2))["progress"] == 0.5
    (worker.log_file.parent / "go").touch()
    wait_until(lambda: database.value(COMPLETED) == 3)
    assert database.rows("select outcome from job_attempt") == []
    assert worker.log_events("heartbeat failed") == []


def test_a_heartbeat_does_not_wait_for_what_is_just_being_settled(
    database: Database, worker_process: WorkerProcesses
) -> None:
    ids = enqueue_numbers(database, 4, waits=2)
    worker = start(database, worker_process, HASTY, lease_seconds=40)
    wait_for_file(worker.log_file.parent / "working")
    blocker = lock_row(database, ids[2])
    (worker.log_file.parent / "go").touch()
    wait_for_lock(database)
    before = database.job(ids[3])["lease_until"]

    database.rows("select pg_notify('job_cancel', worker_id) from worker")  # after which all are asked for

    wait_until(lambda: database.job(ids[3])["lease_until"] > before, 5, what="a heartbeat of the job that waits")
    blocker.rollback()
    wait_until(lambda: database.value(COMPLETED) == 4)


@pytest.mark.parametrize("waits", [{}, {"waits": 10}], ids=["by the main thread", "by the lease thread"])
def test_a_result_over_the_limit_fails_its_own_job_alone(
    database: Database, worker_process: WorkerProcesses, waits: dict[str, int]
) -> None:
    ids = enqueue_numbers(database, 12, huge=7, **waits)
    worker = start(database, worker_process, PATIENT + HUGE, lease_seconds=8)
    if waits:
        wait_for_file(worker.log_file.parent / "working")
        wait_until(lambda: "over the limit" in worker.log_text(), what="the lease thread to be refused")
    (worker.log_file.parent / "go").touch()

    failed = wait_for_status(database, ids[7], "error", "completed")
    wait_until(lambda: database.value(COMPLETED) == 11)

    assert (failed["error_class"], failed["attempts"]) == ("bad_result", 1)
    assert "result of 18180000 bytes is over the limit of 16777216 bytes" in failed["error_msg"]
    assert worker.log_events("heartbeat failed") == []
    worker.terminate()
    assert (worker.wait(), ended_jobs(worker)) == (0, 12)
