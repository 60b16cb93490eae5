"""Cancel, pause, "come back later" and "retry in N seconds", and what happens when such a wish makes no sense."""

import time
from datetime import UTC, datetime, timedelta

import psutil
import pytest

from tests.databases import Database
from tests.fault_tools import (
    SIGNPOSTS,
    attempts_of,
    wait_for_file,
    wait_for_status,
)
from tests.sessions import make_due
from tests.waiting import stays, wait_until
from tests.worker_processes import WorkerProcesses

WAITING = (
    SIGNPOSTS
    + """
from sidelinja_jobs import ChildProcess

def handle(job, ctx):
    if job.payload.get("child"):
        child = ChildProcess("handler_child:spin")
        child.call(None, on_message=lambda pid: reach("child", str(pid)))
    reach("working")
    wait_for("go")
    ctx.on_complete(lambda conn: (reach("completing"), wait_for("end")))
    return "done"
"""
)
SPIN = "import os\ndef spin(request, emit):\n    emit(os.getpid())\n    while True: pass\n"


def cancel(database: Database, job_id: object) -> str:
    conn = database.connect("operator")
    answer: str = conn.execute("select cancel_job(%s, 'no longer wanted')", (job_id,)).fetchone()[0]
    return answer


@pytest.mark.parametrize("child", [False, True], ids=["python", "child process"])
def test_a_running_job_is_cancelled_at_once_although_its_lease_is_long(
    database: Database, worker_process: WorkerProcesses, child: bool
) -> None:
    database.add_job_type("long_job", lease_seconds=120)
    worker = worker_process.start(database, WAITING, job_type="long_job")
    folder = worker.log_file.parent
    (folder / "handler_child.py").write_text(SPIN)
    job_id = database.enqueue("long_job", {"child": child})
    reached = wait_for_file(folder / ("child" if child else "working"))

    assert cancel(database, job_id) == "requested"
    started = time.monotonic()
    job = wait_for_status(database, job_id, "error")

    assert time.monotonic() - started < 2
    assert (job["error_class"], job["attempts"]) == ("cancelled", 0)
    (attempt,) = attempts_of(database, job_id)
    assert (attempt["outcome"], attempt["charged"]) == ("cancelled", False)
    if child:
        assert not psutil.pid_exists(int(reached))
    (folder / "go").touch()
    (folder / "end").touch()
    wait_for_status(database, database.enqueue("long_job"), "completed")
    assert worker.is_alive()


def test_a_waiting_job_is_cancelled_without_a_worker(database: Database, worker_process: WorkerProcesses) -> None:
    job_id = database.enqueue()

    assert cancel(database, job_id) == "cancelled"
    worker_process.start(database, "def handle(job, ctx): return 1")
    wait_for_status(database, database.enqueue(), "completed")

    job = database.job(job_id)
    assert (job["status"], job["error_class"], job["started_at"]) == ("error", "cancelled", None)


def test_a_cancel_that_comes_too_late_lets_the_job_complete(
    database: Database, worker_process: WorkerProcesses
) -> None:
    worker = worker_process.start(database, WAITING)
    folder = worker.log_file.parent
    (folder / "go").touch()
    job_id = database.enqueue()
    wait_for_file(folder / "completing")

    assert cancel(database, job_id) == "requested"
    wait_until(lambda: database.job(job_id)["cancel_requested_at"])
    (folder / "end").touch()
    job = wait_for_status(database, job_id, "completed", "error")

    assert (job["status"], job["result"]) == ("completed", "done")
    assert attempts_of(database, job_id) == []


def test_a_cancelled_job_of_a_batch_does_not_start(database: Database, worker_process: WorkerProcesses) -> None:
    database.add_job_type("batch_job", batch_size=3)
    ids = [database.enqueue("batch_job", {"number": number}) for number in range(3)]
    source = (
        SIGNPOSTS
        + """
def handle(job, ctx):
    if job.payload["number"] == 0:
        reach("working")
        wait_for("go")
    return "ran"
"""
    )
    worker = worker_process.start(database, source, job_type="batch_job")
    wait_for_file(worker.log_file.parent / "working")

    assert cancel(database, ids[1]) == "requested"
    wait_until(lambda: database.rows("select 1 from job_queue where cancel_requested_at is not null"))
    lease = database.job(ids[0])["lease_until"]
    wait_until(lambda: database.job(ids[0])["lease_until"] > lease, what="a heartbeat that hears of it")
    (worker.log_file.parent / "go").touch()

    jobs = [wait_for_status(database, job_id, "completed", "error") for job_id in ids]
    assert [job["status"] for job in jobs] == ["completed", "error", "completed"]
    assert (jobs[1]["error_class"], jobs[1]["result"]) == ("cancelled", None)


STEERED = """
from datetime import UTC, datetime, timedelta
from sidelinja_jobs import ComeBackLaterError, PauseJobTypeError, PermanentError, RetryLaterError

def later(seconds):
    return datetime.now(UTC) + timedelta(seconds=seconds)

def handle(job, ctx):
    if "raise" in job.payload:
        raise eval(job.payload["raise"])
    return "fine"
"""


def test_a_job_comes_back_later_twenty_times_and_no_more(database: Database, worker_process: WorkerProcesses) -> None:
    worker_process.start(database, STEERED)

    job_id = database.enqueue(payload={"raise": "ComeBackLaterError('not yet', until=later(0))"})
    job = wait_for_status(database, job_id, "error", timeout=20)

    assert (job["error_class"], job["attempts"], job["postponements"]) == ("postponed_too_often", 1, 20)
    assert "not yet" in job["error_msg"]
    attempts = attempts_of(database, job_id)
    assert [attempt["outcome"] for attempt in attempts] == ["postponed"] * 20 + ["failed"]
    assert [attempt["charged"] for attempt in attempts] == [False] * 20 + [True]


def test_wishes_for_the_next_run_are_kept(database: Database, worker_process: WorkerProcesses) -> None:
    worker_process.start(database, STEERED)
    errors = {
        "retry": "RetryLaterError('rate limit', seconds=1234, error_class='rate_limited')",
        "postponed": "ComeBackLaterError('at noon', until=later(3600))",
        "permanent": "PermanentError('no such file', error_class='no_file')",
    }
    ids = {kind: database.enqueue(payload={"raise": error}) for kind, error in errors.items()}
    retry = wait_for_status(database, ids["retry"], "retry")
    permanent = wait_for_status(database, ids["permanent"], "error")
    wait_until(lambda: database.job(ids["postponed"])["postponements"])
    postponed = wait_for_status(database, ids["postponed"], "pending")
    now = datetime.now(UTC)

    assert (retry["error_class"], retry["attempts"], retry["error_msg"]) == ("rate_limited", 1, "rate limit")
    assert timedelta(seconds=1220) < retry["scheduled_for"] - now <= timedelta(seconds=1234)
    assert (permanent["error_class"], permanent["attempts"]) == ("no_file", 1)
    assert (postponed["attempts"], postponed["error_msg"]) == (0, None)
    assert timedelta(seconds=3580) < postponed["scheduled_for"] - now <= timedelta(seconds=3600)


def test_a_worker_pauses_its_type_and_an_operators_pause_stands_above_it(
    database: Database, worker_process: WorkerProcesses
) -> None:
    worker_process.start(database, STEERED)
    job_id = database.enqueue(payload={"raise": "PauseJobTypeError('no money', until=later(0.5), origin='budget')"})
    wait_until(lambda: database.rows("select 1 from job_type where pause_origin = 'budget'"))
    job = wait_for_status(database, job_id, "pending")
    assert (job["attempts"], attempts_of(database, job_id)[0]["charged"]) == (0, False)
    database.rows("update job_queue set payload = '{}' where id = %s", job_id)
    job = wait_for_status(database, job_id, "completed")
    pause = attempts_of(database, job_id)[0]
    assert 0.3 < (job["started_at"] - pause["ended_at"]).total_seconds() < 3

    operator = database.connect("operator")
    operator.execute("select pause_job_type('test_job', null, 'maintenance')")
    waiting = database.enqueue()
    stays(lambda: database.job(waiting)["status"] == "pending", 0.5)
    database.rows("update job_type set paused_at = null, pause_origin = null where name = 'test_job'")
    assert wait_for_status(database, waiting, "completed")


def test_a_run_that_wants_a_pause_leaves_an_operators_pause_alone(
    database: Database, worker_process: WorkerProcesses
) -> None:
    source = (
        STEERED
        + SIGNPOSTS
        + """
def handle_slowly(job, ctx):
    reach("working")
    wait_for("go")
    raise PauseJobTypeError("provider is down", until=later(1))
"""
    )
    worker = worker_process.start(database, source, function="handle_slowly")
    job_id = database.enqueue()
    wait_for_file(worker.log_file.parent / "working")
    database.connect("operator").execute("select pause_job_type('test_job', null, 'maintenance')")

    (worker.log_file.parent / "go").touch()
    job = wait_for_status(database, job_id, "pending")

    pause = database.row("select pause_origin, paused_until, pause_reason from job_type where name = 'test_job'")
    assert pause == {"pause_origin": "operator", "paused_until": None, "pause_reason": "maintenance"}
    assert job["attempts"] == 0


NONSENSE = [
    "RetryLaterError('x', seconds='soon')",
    "RetryLaterError('x', seconds=object())",
    "RetryLaterError('x', seconds=10**400)",
    "RetryLaterError('x', seconds=float('nan'))",
    "RetryLaterError('x', seconds=-1)",
    "ComeBackLaterError('x', until='tomorrow')",
    "ComeBackLaterError('x', until=None)",
    "ComeBackLaterError('x', until=object())",
    "ComeBackLaterError('x', until=datetime.max)",
    "PauseJobTypeError('x', until=datetime(2300, 1, 1))",
    "PauseJobTypeError('x', until=None)",
    "PauseJobTypeError('x', until=later(1), origin='operator')",
    "PauseJobTypeError('x', until=later(1), origin='nobody')",
    "PermanentError('x', error_class=5)",
    "PermanentError(b'bytes \\x00', error_class='\\x00' * 1000)",
    "PermanentError(None)",
]


def test_no_senseless_wish_stops_a_worker_or_loses_a_job(database: Database, worker_process: WorkerProcesses) -> None:
    worker = worker_process.start(database, STEERED)
    ids = {error: database.enqueue(payload={"raise": error}, max_attempts=2) for error in NONSENSE}

    def settled() -> list[str]:
        running = """select payload ->> 'raise' as error from job_queue
                      where not exists (select from job_attempt where job_id = job_queue.id)"""
        return [row["error"] for row in database.rows(running)]

    wait_until(lambda: not settled(), 15, what=f"all of them to be recorded; without a record: {settled()}")
    for error, job_id in ids.items():
        job = database.job(job_id)
        assert job["status"] in ("retry", "error", "pending", "running"), error
        if job["status"] in ("pending", "running"):  # again, at a time that was over already
            assert "ComeBackLater" in error
        else:
            assert job["error_msg"], error
            assert job["error_class"], error
    assert worker.is_alive()
    make_due(database, ids[NONSENSE[0]])
    wait_for_status(database, ids[NONSENSE[0]], "error")


def test_a_pause_that_is_over_already_does_not_spin(database: Database, worker_process: WorkerProcesses) -> None:
    """ "Retry-After: 0" from a provider must not become thousands of paid calls a minute."""
    worker_process.start(database, STEERED)

    job_id = database.enqueue(payload={"raise": "PauseJobTypeError('busy', until=later(-1))"})
    wait_until(lambda: attempts_of(database, job_id))
    started = time.monotonic()
    wait_until(lambda: time.monotonic() - started > 1)

    assert len(attempts_of(database, job_id)) <= 3
