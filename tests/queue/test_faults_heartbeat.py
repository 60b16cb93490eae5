"""The heartbeat dies, hangs or meets an error: a handler never outlives its lease, and the worker says so."""

import time
from datetime import datetime
from pathlib import Path
from uuid import UUID

import pytest

from tests.databases import Database
from tests.fault_tools import SIGNPOSTS, attempts_of, lock_row, wait_for_file, wait_for_lock, wait_for_status
from tests.tcp_proxy import Proxy
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcesses

# The heartbeat of this worker does what FAULT says, once the handler runs.
ILL = (
    SIGNPOSTS
    + """
import datetime
import sidelinja_jobs.lease as lease
import sidelinja_jobs.queue as queue

lease.HANG_SECONDS = 1  # ten, as delivered

beat = queue.extend

def extend(*arguments):
    if os.path.exists("working"):
        FAULT
    return beat(*arguments)

queue.extend = extend

def handle(job, ctx):
    try:
        reach("working")
        end = time.monotonic() + 20
        while time.monotonic() < end:
            time.sleep(0.01)
    except BaseException as error:
        reach("stopped", f"{datetime.datetime.now(datetime.UTC).isoformat()} {error}")
        raise
"""
)


@pytest.mark.parametrize("fault", ["raise RuntimeError('broken')", "raise SystemExit"], ids=["bug", "exit"])
def test_a_heartbeat_thread_that_dies_stops_the_handler_and_the_worker(
    database: Database, worker_process: WorkerProcesses, fault: str
) -> None:
    worker = worker_process.start(database, ILL.replace("FAULT", fault))
    job_id = database.enqueue()
    wait_for_file(worker.log_file.parent / "working")
    lease_until = database.job(job_id)["lease_until"]

    assert worker.wait() == 70
    stopped_at, reason = wait_for_file(worker.log_file.parent / "stopped").split()
    assert datetime.fromisoformat(stopped_at) < lease_until
    assert reason == "internal"
    job = database.job(job_id)
    assert (job["status"], job["attempts"]) == ("pending", 0)
    (attempt,) = attempts_of(database, job_id)
    assert (attempt["outcome"], attempt["charged"]) == ("released", False)
    assert not worker.health_file.exists()
    assert worker.log_events("lease thread died")


def test_a_heartbeat_that_hangs_stops_the_handler_in_time_and_the_worker_takes_no_other_job(
    database: Database, worker_process: WorkerProcesses
) -> None:
    """A worker that cannot keep a lease must not claim: it would lose one job after the other."""
    worker = worker_process.start(database, ILL.replace("FAULT", "time.sleep(3600)"))
    job_id = database.enqueue()
    wait_for_file(worker.log_file.parent / "working")
    lease_until = database.job(job_id)["lease_until"]
    next_id = database.enqueue(priority=-1)

    stopped_at, reason = wait_for_file(worker.log_file.parent / "stopped").split()
    assert datetime.fromisoformat(stopped_at) < lease_until
    assert reason == "lost"
    assert worker.wait(25) != 0
    assert not worker.health_file.exists()
    assert database.job(next_id)["status"] == "pending"
    assert database.job(next_id)["started_at"] is None


def test_a_sweep_that_fails_costs_no_heartbeat(database: Database, worker_process: WorkerProcesses) -> None:
    """One broken row that the sweep meets must not stop every worker of the system."""
    database.rows(
        "create or replace function sweep_schedules() returns integer language plpgsql as "
        "$$ begin raise exception 'a schedule that cannot be'; end $$"
    )
    worker = worker_process.start(
        database, SIGNPOSTS + "def handle(job, ctx):\n    reach('working')\n    wait_for('go')\n    return 1"
    )
    job_id = database.enqueue()
    wait_for_file(worker.log_file.parent / "working")

    wait_until(lambda: "a schedule that cannot be" in worker.log_text(), what="the sweep to fail")
    lease_until = database.job(job_id)["lease_until"]
    assert lease_until is not None, worker.log_text()
    wait_until(lambda: database.job(job_id)["lease_until"] > lease_until)
    (worker.log_file.parent / "go").touch()

    job = wait_for_status(database, job_id, "completed")
    assert (job["attempts"], attempts_of(database, job_id)) == (0, [])
    assert worker.is_alive()


def test_a_heartbeat_behind_a_lock_on_the_row_costs_the_job_nothing(
    database: Database, worker_process: WorkerProcesses
) -> None:
    """Someone's open transaction on the row: heartbeats and the completion wait for it, and nothing is lost."""
    worker = worker_process.start(
        database, SIGNPOSTS + "def handle(job, ctx):\n    reach('working')\n    wait_for('go')\n    return 1"
    )
    job_id = database.enqueue()
    wait_for_file(worker.log_file.parent / "working")
    blocker = lock_row(database, job_id)

    wait_until(lambda: worker.log_events("heartbeat failed"))
    blocker.rollback()
    (worker.log_file.parent / "go").touch()

    job = wait_for_status(database, job_id, "completed")
    assert (job["attempts"], attempts_of(database, job_id)) == (0, [])


def test_sigterm_works_while_the_completion_waits_for_a_lock_on_the_row(
    database: Database, worker_process: WorkerProcesses
) -> None:
    worker = worker_process.start(
        database,
        SIGNPOSTS + "def handle(job, ctx):\n    reach('working')\n    wait_for('go')\n    return 1",
        environ={"DB_TIMEOUT_SECONDS": "1"},
    )
    job_id = database.enqueue()
    wait_for_file(worker.log_file.parent / "working")
    blocker = lock_row(database, job_id)
    (worker.log_file.parent / "go").touch()
    wait_for_lock(database)

    worker.terminate()
    started = time.monotonic()
    assert worker.wait(15) in (0, 70)
    assert time.monotonic() - started < 10

    blocker.rollback()
    job = wait_for_status(database, job_id, "running", "completed", "pending")
    assert job["attempts"] == 0


# The same with every interval of the lease thread short.
QUICK = """
import sidelinja_jobs.housekeeping as housekeeping
import sidelinja_jobs.lease as lease
housekeeping.WORKER_BEAT_SECONDS = lease.HEALTH_SECONDS = 0.2
"""


def test_a_healthy_worker_touches_its_health_file_while_idle_and_busy(
    database: Database, worker_process: WorkerProcesses
) -> None:
    handler = SIGNPOSTS + QUICK + "def handle(job, ctx):\n    reach('working')\n    wait_for('go')"
    worker = worker_process.start(database, handler)
    wait_until(worker.health_file.exists)
    database.enqueue()
    wait_for_file(worker.log_file.parent / "working")
    worker.health_file.unlink(missing_ok=True)

    wait_until(worker.health_file.exists)
    worker.kill()


# The same, with half a minute of silence made half a second, and a claim that hangs while there is a file "hang".
SOON_ILL = (
    SIGNPOSTS
    + QUICK
    + """
import sidelinja_jobs.queue as queue
lease.CONTACT_SECONDS = 0.5
claim = queue.claim

def hang(*arguments):
    while os.path.exists("hang"):
        time.sleep(0.01)
    return claim(*arguments)

queue.claim = hang

def handle(job, ctx):
    reach("working")
    wait_for("go")
"""
)


def age_seconds(file: Path) -> float:
    return time.time() - file.stat().st_mtime


def test_a_worker_that_asks_for_no_job_leaves_its_health_file_alone(
    database: Database, worker_process: WorkerProcesses
) -> None:
    worker = worker_process.start(database, SOON_ILL)
    wait_until(worker.health_file.exists)
    hang = worker.log_file.parent / "hang"

    hang.touch()
    wait_until(lambda: age_seconds(worker.health_file) > 1.5, what="the worker to be ill")
    hang.unlink()
    wait_until(lambda: age_seconds(worker.health_file) < 1, what="the worker to be well again")


def test_a_busy_worker_without_its_database_leaves_its_health_file_alone(
    database: Database, worker_process: WorkerProcesses
) -> None:
    database.add_job_type("test_job", lease_seconds=60)
    server = database.server
    with Proxy(server.host, server.port) as proxy:
        environ = {"DATABASE_URL": proxy.dsn(database.dsn("worker_test"))}
        worker = worker_process.start(database, SOON_ILL, environ=environ)
        database.enqueue()
        wait_for_file(worker.log_file.parent / "working")
        wait_until(worker.health_file.exists)

    wait_until(lambda: age_seconds(worker.health_file) > 1.5, what="the worker to be ill")
    with Proxy(server.host, server.port, listen_on=proxy.port):
        wait_until(lambda: age_seconds(worker.health_file) < 1, what="the worker to be well again")


def test_a_worker_that_was_frozen_for_minutes_registers_itself_again(
    database: Database, worker_process: WorkerProcesses
) -> None:
    worker = worker_process.start(database, QUICK + "def handle(job, ctx): return job.attempt")
    wait_until(lambda: database.value("select idle from worker"))
    worker.freeze()
    database.rows("update worker set seen_at = seen_at - interval '2 minutes'")
    database.rows("select sweep_jobs()")
    assert database.rows("select 1 from worker") == []

    worker.thaw()

    wait_for_status(database, database.enqueue(), "completed")
    wait_until(lambda: database.rows("select 1 from worker where idle"), what="the worker to register again, idle")


REPORTS = [
    "ctx.progress(float('nan'), 'note')",
    "ctx.progress(0.5, b'bytes')",
    "ctx.progress(0.5, 12)",
    "ctx.progress('half')",
    "ctx.progress(10**400)",
    "ctx.progress(0.5, 'a\\x00b\\ud800' * 1000)",
]


def test_no_progress_that_a_handler_reports_harms_the_lease(
    database: Database, worker_process: WorkerProcesses
) -> None:
    """The report is refused in the handler, or cleaned; the lease thread must not die of it."""
    database.rows("update job_type set lease_seconds = 1 where name = 'test_job'")
    handler = SIGNPOSTS + "def handle(job, ctx):\n    exec(job.payload['do'])\n    wait_for(job.payload['go'])"
    worker = worker_process.start(database, handler)
    for number, report in enumerate(REPORTS):
        go = worker.log_file.parent / f"go-{number}"
        job_id = database.enqueue(payload={"do": report, "go": str(go)}, max_attempts=1)

        def heard(job_id: UUID = job_id) -> bool:
            job = database.job(job_id)
            return job["status"] == "error" or (job["progress"], job["progress_note"]) != (None, None)

        wait_until(heard, 3, what=f"{report}, or its refusal")
        go.touch()
        job = wait_for_status(database, job_id, "completed", "error")
        assert job["status"] == "completed" or job["error_class"] in ("TypeError", "ValueError", "OverflowError")
    assert worker.log_events("lease thread died") == []
    assert worker.is_alive()
