"""Handlers that signals do not reach: native code, and Python that swallows everything."""

import time

import pytest

from tests.databases import Database
from tests.fault_tools import SIGNPOSTS, attempts_of, take_away, wait_for_file
from tests.worker_processes import WorkerProcesses

# A native library that waits for a lock of its own: no signal interrupts that, and it costs no processor time.
# CDLL lets go of the interpreter meanwhile, so the heartbeat runs; PyDLL keeps it, so nothing else in Python runs.
STUCK = """
import ctypes
import sidelinja_jobs.lease
sidelinja_jobs.lease.STUCK_SECONDS = 1  # five, as delivered

def get_stuck(library):
    mutex = ctypes.create_string_buffer(128)
    library.pthread_mutex_init(mutex, None)
    library.pthread_mutex_lock(mutex)
    library.pthread_mutex_lock(mutex)

def handle(job, ctx):
    reach("working")
    get_stuck(ctypes.{kind}(None))
"""
NATIVE = SIGNPOSTS + STUCK.replace("{kind}", "CDLL")
GREEDY = (
    SIGNPOSTS
    + """
import sidelinja_jobs.interrupt
sidelinja_jobs.interrupt.GUARD_SECONDS = 2  # ten, as delivered
"""
    + STUCK.replace("{kind}", "PyDLL")
)
SWALLOWING = (
    SIGNPOSTS
    + """
def handle(job, ctx):
    reach("working")
    while True:
        try:
            time.sleep(0.01)
        except {caught}:
            pass
"""
)
BACKTRACKING = (
    SIGNPOSTS
    + """
import re
def handle(job, ctx):
    reach("working")
    re.match("(a+)+b", "a" * 60)
"""
)


def test_native_code_cannot_hold_a_worker(database: Database, worker_process: WorkerProcesses) -> None:
    """One worker per way to be stopped, side by side, because each takes its time."""
    database.add_job_type("brief_job", longest_run_seconds=1, backoff_base_seconds=60)
    sources = {"sigterm": NATIVE, "lost": NATIVE, "cancelled": NATIVE, "greedy": GREEDY}
    sources |= {"timeout": NATIVE, "deaf": SWALLOWING.format(caught="BaseException")}
    workers, jobs = {}, {}
    for name, source in sources.items():
        job_type = "brief_job" if name == "timeout" else "test_job"
        workers[name] = worker_process.start(database, source, job_type=job_type)
        jobs[name] = database.enqueue(job_type, max_attempts=2)
        wait_for_file(workers[name].log_file.parent / "working")

    database.value("select cancel_job(%s)", jobs["cancelled"])
    take_away(database, jobs["lost"])
    workers["sigterm"].terminate()
    workers["deaf"].terminate()
    started = time.monotonic()
    codes, seconds = {}, {}
    for name in ("sigterm", "deaf", "lost", "cancelled", "timeout", "greedy"):
        codes[name] = workers[name].wait(25)
        seconds[name] = time.monotonic() - started

    assert codes == {"sigterm": 0, "deaf": 0, "lost": 70, "cancelled": 70, "timeout": 70, "greedy": 1}
    assert max(seconds.values()) < 9
    ended = {name: database.job(job_id) for name, job_id in jobs.items()}
    for name in ("sigterm", "deaf"):
        assert (ended[name]["status"], ended[name]["attempts"]) == ("pending", 0)
    assert (ended["cancelled"]["status"], ended["cancelled"]["error_class"]) == ("error", "cancelled")
    assert (ended["timeout"]["status"], ended["timeout"]["error_class"]) == ("retry", "timeout")
    assert {attempt["outcome"] for attempt in attempts_of(database, jobs["lost"])} <= {"lost"}  # by a sweep
    assert ended["greedy"]["status"] in ("running", "retry")  # its lease is over: whoever sweeps next rescues it
    assert "Timeout" in workers["greedy"].log_text()  # the watchdog says where it was


def test_a_stuck_job_costs_its_neighbours_in_the_batch_nothing_although_some_were_lost(
    database: Database, worker_process: WorkerProcesses
) -> None:
    """Lost since the last heartbeat, so that the worker does not know it yet."""
    database.add_job_type("batch_job", batch_size=9, lease_seconds=60)
    for _ in range(9):
        database.enqueue("batch_job")
    worker = worker_process.start(database, NATIVE, job_type="batch_job")
    wait_for_file(worker.log_file.parent / "working")
    lost = [row["id"] for row in database.rows("select id from job_queue order by scheduled_for, id")][1:7]
    for job_id in lost:
        take_away(database, job_id)

    worker.terminate()

    assert worker.wait() == 0
    left = database.rows("select id, status, attempts from job_queue where status <> 'running'")
    assert [(row["status"], row["attempts"]) for row in left] == [("pending", 0)] * 3
    assert not {row["id"] for row in left} & set(lost)


@pytest.mark.parametrize(
    "source", [BACKTRACKING, SWALLOWING.format(caught="Exception")], ids=["regular expression", "except Exception"]
)
def test_python_that_looks_at_signals_is_stopped_at_once(
    database: Database, worker_process: WorkerProcesses, source: str
) -> None:
    worker = worker_process.start(database, source)
    job_id = database.enqueue()
    wait_for_file(worker.log_file.parent / "working")

    worker.terminate()
    started = time.monotonic()

    assert worker.wait() == 0
    assert time.monotonic() - started < 2
    assert database.job(job_id)["status"] == "pending"
