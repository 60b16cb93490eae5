"""Limits on a run, and exceptions that are none of Python's ordinary ones."""

import psutil

from tests.databases import Database
from tests.fault_tools import wait_for_file, wait_for_status
from tests.worker_processes import WorkerProcesses

RAISING = """
import asyncio, sys

class Odd(BaseException):
    pass

def handle(job, ctx):
    if job.payload["what"] != "nothing":
        raise {"exit": SystemExit(3), "interrupt": KeyboardInterrupt(), "cancelled": asyncio.CancelledError("x"),
               "odd": Odd("odd"), "generator": GeneratorExit(), "group": BaseExceptionGroup("many", [Odd("a")])
              }[job.payload["what"]]
"""


def test_any_exception_is_a_failure_of_its_job_alone(database: Database, worker_process: WorkerProcesses) -> None:
    worker = worker_process.start(database, RAISING)
    classes = {
        "exit": "SystemExit",
        "interrupt": "KeyboardInterrupt",
        "cancelled": "CancelledError",
        "odd": "Odd",
        "generator": "GeneratorExit",
        "group": "BaseExceptionGroup",
    }
    ids = {what: database.enqueue(payload={"what": what}) for what in classes}
    jobs = {what: wait_for_status(database, job_id, "retry", timeout=3) for what, job_id in ids.items()}

    assert {what: job["error_class"] for what, job in jobs.items()} == classes
    assert [job["attempts"] for job in jobs.values()] == [1] * len(classes)
    wait_for_status(database, database.enqueue(payload={"what": "nothing"}), "completed")
    assert worker.is_alive()


CHILD = """
from sidelinja_jobs import ChildProcess
import handler_child

def handle(job, ctx):
    child = ChildProcess("handler_child:spin")
    child.call(None, on_message=lambda pid: open("child", "w").write(str(pid)))
"""
SPIN = "import os\ndef spin(request, emit):\n    emit(os.getpid())\n    while True: pass\n"


def test_the_longest_run_and_the_stall_limit_end_a_run(database: Database, worker_process: WorkerProcesses) -> None:
    """In Python, in a child process, without progress; a handler that reports progress lives."""
    database.add_job_type("brief_job", longest_run_seconds=1)
    database.add_job_type("stall_job", stall_seconds=1)
    sleeping = "import time\ndef handle(job, ctx): time.sleep(60)"
    lively = """
import time
def handle(job, ctx):
    for step in range(8):
        time.sleep(0.25)
        ctx.progress(step / 8) if job.payload["progress"] else None
    return "done"
"""
    python = worker_process.start(database, sleeping, job_type="brief_job")
    python_id = database.enqueue("brief_job")
    wait_for_status(database, python_id, "running")
    stall = worker_process.start(database, lively, job_type="stall_job")
    stalled_id = database.enqueue("stall_job", {"progress": False})
    lively_id = database.enqueue("stall_job", {"progress": True})

    timeout = wait_for_status(database, python_id, "retry", "completed")
    python.end()
    child_worker = worker_process.start(database, CHILD.replace("import handler_child\n", ""), job_type="brief_job",
                                        environ=None, ready=False)  # fmt: skip
    (child_worker.log_file.parent / "handler_child.py").write_text(SPIN)
    child_id = database.enqueue("brief_job")
    child_pid = int(wait_for_file(child_worker.log_file.parent / "child"))
    in_child = wait_for_status(database, child_id, "retry", "completed")

    assert (timeout["status"], timeout["error_class"]) == ("retry", "timeout")
    assert "longest run" in timeout["error_msg"]
    assert (in_child["status"], in_child["error_class"]) == ("retry", "timeout")
    assert not psutil.pid_exists(child_pid)
    stalled = wait_for_status(database, stalled_id, "retry", "completed")
    assert (stalled["status"], stalled["error_class"]) == ("retry", "stalled")
    assert "without progress" in stalled["error_msg"]
    assert wait_for_status(database, lively_id, "completed")["result"] == "done"
    assert stall.is_alive()
    assert child_worker.is_alive()


def test_limits_count_from_the_start_of_a_job_and_not_of_its_batch(
    database: Database, worker_process: WorkerProcesses
) -> None:
    database.add_job_type("batch_job", batch_size=4, longest_run_seconds=1)
    database.add_job_type("slow_batch_job", batch_size=4, stall_seconds=1)
    ids = [database.enqueue(job_type) for job_type in ("batch_job", "slow_batch_job") for _ in range(4)]
    for job_type in ("batch_job", "slow_batch_job"):
        worker_process.start(database, "import time\ndef handle(job, ctx): time.sleep(0.5)", job_type=job_type)

    jobs = [wait_for_status(database, job_id, "completed", "retry") for job_id in ids]

    assert [job["error_msg"] for job in jobs] == [None] * 8
    claims = database.value("select count(distinct lease_token) from job_queue where job_type = 'batch_job'")
    assert claims == 1
