"""Stopping a handler that does not want to stop: signals, limits, native code, swallowed exceptions."""

import signal
import time

import pytest

from tests.databases import Database
from tests.fault_tools import (
    SIGNPOSTS,
    attempts_of,
    take_away,
    wait_for_file,
    wait_for_status,
)
from tests.sessions import make_due
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcesses

STUBBORN = (
    SIGNPOSTS
    + """
import asyncio, contextlib, contextvars

async def wait():
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.sleep(60))
        group.create_task(asyncio.sleep(60))

def with_cleanup_error():
    try:
        time.sleep(60)
    finally:
        raise OSError("cleanup failed")

def wrapped():
    try:
        time.sleep(60)
    except BaseException as error:
        raise RuntimeError("wrapped by a library") from error

def slow_cleanup():
    try:
        time.sleep(60)
    finally:
        reach("cleaning")
        for _ in range(20):
            time.sleep(0.1)
        reach("cleaned")

def handle(job, ctx):
    reach("working")
    {"task group": lambda: asyncio.run(wait()), "cleanup error": with_cleanup_error, "wrapped": wrapped,
     "slow cleanup": slow_cleanup}[job.payload["how"]]()
"""
)


@pytest.mark.parametrize("how", ["task group", "cleanup error", "wrapped", "slow cleanup"])
def test_a_stopped_handler_is_released_however_it_leaves(
    database: Database, worker_process: WorkerProcesses, how: str
) -> None:
    worker = worker_process.start(database, STUBBORN)
    job_id = database.enqueue(payload={"how": how})
    wait_for_file(worker.log_file.parent / "working")

    worker.terminate()

    assert worker.wait() == 0, worker.log_text()
    job = database.job(job_id)
    assert (job["status"], job["attempts"], job["error_class"]) == ("pending", 0, None)
    assert attempts_of(database, job_id)[0]["charged"] is False
    if how == "slow cleanup":
        assert (worker.log_file.parent / "cleaned").exists()


def test_two_guards_together_interrupt_a_handler_once(database: Database, worker_process: WorkerProcesses) -> None:
    """The alarm of a lease that was not renewed and the lease thread's signal come at the same moment."""
    worker = worker_process.start(
        database,
        SIGNPOSTS
        + """
import signal
def handle(job, ctx):
    try:
        reach("working")
        wait_for("never")
    except BaseException:
        signal.raise_signal(signal.SIGUSR1)
        signal.raise_signal(signal.SIGALRM)
        reach("cleaned")
        raise
""",
    )
    job_id = database.enqueue()
    wait_for_file(worker.log_file.parent / "working")

    take_away(database, job_id)

    wait_for_file(worker.log_file.parent / "cleaned")
    (ended,) = wait_until(lambda: worker.log_events("job ended"))
    assert ended["outcome"] == "lost_lease"


def test_sigterm_lets_a_short_job_finish_while_draining(database: Database, worker_process: WorkerProcesses) -> None:
    handler = (
        SIGNPOSTS + "def handle(job, ctx):\n    reach('working')\n    wait_for('go')\n    return ctx.should_stop()"
    )
    worker = worker_process.start(database, handler, drain_seconds=30)
    job_id, next_id = database.enqueue(), database.enqueue(priority=-1)
    wait_for_file(worker.log_file.parent / "working")

    worker.terminate()
    wait_until(lambda: worker.log_events("stop requested"))
    (worker.log_file.parent / "go").touch()

    assert worker.wait() == 0
    assert database.job(job_id)["status"] == "completed"
    assert database.job(job_id)["result"] is False  # nobody has asked it to stop yet
    assert database.job(next_id)["status"] == "pending"


@pytest.mark.parametrize(("drain_seconds", "again"), [(1, False), (60, True)], ids=["drain over", "asked twice"])
def test_draining_ends(database: Database, worker_process: WorkerProcesses, drain_seconds: int, again: bool) -> None:
    handler = SIGNPOSTS + "def handle(job, ctx):\n    reach('working')\n    wait_for('never')"
    worker = worker_process.start(database, handler, drain_seconds=drain_seconds)
    job_id = database.enqueue()
    wait_for_file(worker.log_file.parent / "working")

    worker.terminate()
    started = time.monotonic()
    if again:
        wait_until(lambda: time.monotonic() - started > 1.1)  # what comes sooner counts as the same signal
        worker.terminate()

    assert worker.wait() == 0
    assert 1 <= time.monotonic() - started < 4
    job = database.job(job_id)
    assert (job["status"], job["attempts"]) == ("pending", 0)


def test_the_last_writes_of_a_job_that_is_done_are_not_broken_off(
    database: Database, worker_process: WorkerProcesses
) -> None:
    """Hours of work would be done again for want of a second."""
    handler = """
def handle(job, ctx):
    ctx.on_complete(lambda conn: (reach("writing"), wait_for("go")) and None)
"""
    worker = worker_process.start(database, SIGNPOSTS + handler)
    job_id = database.enqueue()
    wait_for_file(worker.log_file.parent / "writing")

    worker.terminate()
    wait_until(lambda: worker.log_events("stop requested"))
    lease_until = database.job(job_id)["lease_until"]
    wait_until(lambda: database.job(job_id)["lease_until"] > lease_until, what="another look of the lease thread")
    (worker.log_file.parent / "go").touch()

    assert worker.wait() == 0
    assert database.job(job_id)["status"] == "completed"


def test_a_burst_of_signals_stops_a_worker_once(database: Database, worker_process: WorkerProcesses) -> None:
    """Ctrl-C in a terminal and the engine's SIGTERM at once; nested signals must not deadlock the process."""
    workers = [worker_process.start(database, "def handle(job, ctx): pass") for _ in range(2)]

    for worker in workers:
        for _ in range(300):
            worker.process.send_signal(signal.SIGINT)
            worker.process.send_signal(signal.SIGTERM)

    assert [worker.wait(8) for worker in workers] == [0, 0]
    assert all("Traceback" not in worker.log_text() for worker in workers)
    assert database.rows("select 1 from worker") == []


def test_sigterm_on_the_last_attempt_keeps_that_attempt(database: Database, worker_process: WorkerProcesses) -> None:
    handler = (
        SIGNPOSTS
        + """
def handle(job, ctx):
    if job.attempt == 1:
        raise ValueError("first")
    reach("working")
    wait_for("go")
"""
    )
    worker = worker_process.start(database, handler)
    job_id = database.enqueue(max_attempts=2)
    wait_for_status(database, job_id, "retry", attempts=1)
    make_due(database, job_id)
    wait_for_file(worker.log_file.parent / "working")

    worker.terminate()
    assert worker.wait() == 0
    job = database.job(job_id)
    assert (job["status"], job["attempts"], job["error_class"]) == ("retry", 1, "ValueError")

    again = worker_process.start(database, handler)
    (again.log_file.parent / "go").touch()
    assert wait_for_status(database, job_id, "completed")["attempts"] == 1


def test_a_worker_stops_although_a_handler_has_replaced_its_signal_handlers(
    database: Database, worker_process: WorkerProcesses
) -> None:
    """Libraries do such things. What the worker needs is back in place for the next job."""
    worker = worker_process.start(
        database,
        SIGNPOSTS
        + """
import signal
def handle(job, ctx):
    if job.payload["spoil"]:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGALRM):
            signal.signal(number, signal.SIG_IGN)
    else:
        reach("working")
        wait_for("never")
""",
    )
    wait_for_status(database, database.enqueue(payload={"spoil": True}), "completed")
    job_id = database.enqueue(payload={"spoil": False})
    wait_for_file(worker.log_file.parent / "working")

    worker.terminate()
    started = time.monotonic()

    assert worker.wait() == 0
    assert time.monotonic() - started < 3
    assert database.job(job_id)["status"] == "pending"


def test_threads_that_a_handler_left_behind_do_not_keep_a_worker_from_ending(
    database: Database, worker_process: WorkerProcesses
) -> None:
    worker = worker_process.start(
        database,
        "import threading, time\ndef handle(job, ctx): threading.Thread(target=time.sleep, args=(60,)).start()",
    )
    wait_for_status(database, database.enqueue(), "completed")

    worker.terminate()
    started = time.monotonic()

    assert worker.wait(12) == 0
    assert time.monotonic() - started < 8
