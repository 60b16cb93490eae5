"""Processes that die or freeze in the middle of a job: it runs again, and has one result."""

import signal
import time
from typing import Any
from uuid import UUID

import pytest

from tests.databases import Database
from tests.fault_tools import (
    SIGNPOSTS,
    add_written,
    attempts_of,
    bury,
    statuses_of,
    wait_for_file,
    wait_for_lock,
    wait_for_status,
    written,
)
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcesses

# Works until the file "go" is there; writes a checkpoint first when the payload says so.
STEADY = (
    SIGNPOSTS
    + """
def handle(job, ctx):
    found = [point.data for point in ctx.checkpoints()]
    if job.payload.get("checkpoint"):
        ctx.checkpoint({"attempt": job.attempt})
    ctx.progress(0.25, "a quarter")
    reach("working")
    if not job.payload.get("quick") and not found and job.attempt == 1:
        wait_for("go")
    ctx.on_complete(lambda conn: conn.execute("insert into written values (%s, 'row')", (job.id,)))
    return {"attempt": job.attempt, "found": found, "pid": os.getpid()}
"""
)


def test_a_killed_workers_job_runs_again_after_lease_and_backoff(
    database: Database, worker_process: WorkerProcesses
) -> None:
    """Without a checkpoint the death costs an attempt, with one it costs none, even on the last attempt."""
    database.add_job_type("test_job", backoff_base_seconds=1)
    add_written(database)
    killed = [worker_process.start(database, STEADY) for _ in range(2)]
    plain = database.enqueue(payload={})
    resumed = database.enqueue(payload={"checkpoint": True}, max_attempts=1)
    for worker in killed:
        wait_for_file(worker.log_file.parent / "working")
    wait_until(lambda: all(database.job(job_id)["progress"] for job_id in (plain, resumed)))

    for worker in killed:
        worker.kill()
    leases = {job_id: database.job(job_id)["lease_until"] for job_id in (plain, resumed)}
    worker_process.start(database, STEADY)
    jobs = {job_id: wait_for_status(database, job_id, "completed") for job_id in leases}

    for job_id, job in jobs.items():
        (death,) = attempts_of(database, job_id)
        waited = (job["started_at"] - leases[job_id]).total_seconds()
        assert 1 <= waited < 1 + 0.7 + 1.5  # the backoff, up to a sweep and a poll before and after it
        assert (death["outcome"], death["error_class"], death["progress"]) == ("lost", "crash", 0.25)
        assert 'last progress 25 % "a quarter"' in death["error_msg"]
        assert statuses_of(database, job_id) == [
            "pending",
            "running",
            *status_after(job_id, plain),
            "running",
            "completed",
        ]
    assert jobs[plain]["result"] | {"pid": 0} == {"attempt": 2, "found": [], "pid": 0}
    assert jobs[resumed]["result"] | {"pid": 0} == {"attempt": 1, "found": [{"attempt": 1}], "pid": 0}
    assert [attempts_of(database, job_id)[0]["charged"] for job_id in (plain, resumed)] == [True, False]
    assert written(database) == ["row", "row"]


def status_after(job_id: UUID, plain: UUID) -> list[str]:
    """A death that is not charged leaves no failure, so the job waits as pending."""
    return ["retry"] if job_id == plain else ["pending"]


DEADLY = """
import ctypes, os, signal

def handle(job, ctx):
    if job.payload["checkpoint"] and not ctx.checkpoints():
        ctx.checkpoint("the only one")
    ctx.progress(0.5, "about to die")
    deaths = len(job.payload["die"])
    how = open(job.payload["log"]).read().count("x")
    open(job.payload["log"], "a").write("x")
    {"exit": lambda: os._exit(137), "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
     "segfault": lambda: ctypes.string_at(0)}[job.payload["die"][how % deaths]]()
"""


@pytest.mark.parametrize(
    ("checkpoint", "max_attempts"), [(False, 3), (True, 10)], ids=["attempts used up", "same checkpoint"]
)
def test_a_job_that_kills_its_worker_every_time_ends_in_error(
    database: Database, worker_process: WorkerProcesses, tmp_path: Any, checkpoint: bool, max_attempts: int
) -> None:
    log = tmp_path / "deaths"
    log.touch()
    payload = {"checkpoint": checkpoint, "die": ["exit", "kill", "segfault"], "log": str(log)}
    job_id = database.enqueue(payload=payload, max_attempts=max_attempts)

    codes = []
    while database.job(job_id)["status"] in ("pending", "retry"):
        worker = worker_process.start(database, DEADLY, ready=False)
        codes.append(worker.wait())
        bury(database, job_id)
        assert len(codes) <= 4

    job = database.job(job_id)
    deaths = attempts_of(database, job_id)
    assert codes == [137, -signal.SIGKILL, -signal.SIGSEGV]
    assert (job["status"], job["error_class"]) == ("error", "crash")
    assert "vanished" in job["error_msg"]
    assert "death 3 here" in job["error_msg"]
    assert ("checkpoint 1" if checkpoint else "no checkpoint") in job["error_msg"]
    assert [death["outcome"] for death in deaths] == ["lost"] * 3
    assert [death["charged"] for death in deaths] == [not checkpoint, True, True]
    assert job["attempts"] == (2 if checkpoint else 3)
    assert all(death["worker_id"] and death["started_at"] for death in deaths)


def test_a_worker_frozen_past_its_lease_finishes_too_late(database: Database, worker_process: WorkerProcesses) -> None:
    database.add_job_type("test_job", backoff_base_seconds=1)
    add_written(database)
    frozen = worker_process.start(database, STEADY)
    job_id = database.enqueue()
    wait_for_file(frozen.log_file.parent / "working")

    frozen.freeze()
    other = worker_process.start(database, STEADY)
    job = wait_for_status(database, job_id, "completed")
    assert job["result"] == {"attempt": 2, "found": [], "pid": other.pid}
    other.end()
    (frozen.log_file.parent / "go").touch()
    frozen.thaw()
    (ended,) = wait_until(lambda: frozen.log_events("job ended"))

    assert ended["outcome"] == "lost_lease"
    assert written(database) == ["row"]
    assert database.job(job_id) == job
    assert statuses_of(database, job_id).count("completed") == 1

    next_id = database.enqueue(payload={"quick": True})
    assert wait_for_status(database, next_id, "completed")["result"]["pid"] == frozen.pid


FROZEN_COMMIT = (
    SIGNPOSTS
    + """
import signal

def write(conn, job):
    conn.execute("insert into written values (%s, 'row') ", (job.id,))
    if job.attempt == 1 and not os.path.exists("frozen"):
        reach("frozen")
        os.kill(os.getpid(), signal.SIGSTOP)

def handle(job, ctx):
    ctx.on_complete(lambda conn: write(conn, job))
    return os.getpid()
"""
)


def test_a_worker_frozen_between_its_writes_and_the_commit_loses_them(
    database: Database, worker_process: WorkerProcesses
) -> None:
    """The unique row that it has not committed holds the next run up, until it is thawed or dies."""
    add_written(database)
    database.rows("create unique index on written (job_id)")
    frozen = worker_process.start(database, FROZEN_COMMIT)
    job_id = database.enqueue()
    wait_for_file(frozen.log_file.parent / "frozen")

    bury(database, job_id)
    other = worker_process.start(database, FROZEN_COMMIT)
    (other.log_file.parent / "frozen").touch()
    wait_for_status(database, job_id, "running", attempts=1)
    wait_for_lock(database)
    frozen.thaw()

    job = wait_for_status(database, job_id, "completed")
    assert (job["result"], job["attempts"]) == (other.pid, 1)
    assert written(database) == ["row"]
    (ended,) = wait_until(lambda: frozen.log_events("job ended"))
    assert ended["outcome"] == "lost_lease"
    assert frozen.is_alive()


def test_the_same_worker_cannot_finish_a_run_with_the_token_of_its_earlier_one(
    database: Database, worker_process: WorkerProcesses
) -> None:
    """Lost and claimed again by the very worker that lost it: only the second run's result counts."""
    worker = worker_process.start(database, STEADY)
    add_written(database)
    job_id = database.enqueue()
    wait_for_file(worker.log_file.parent / "working")

    bury(database, job_id)
    started = time.monotonic()
    job = wait_for_status(database, job_id, "completed")

    assert time.monotonic() - started < 2
    assert job["result"] == {"attempt": 2, "found": [], "pid": worker.pid}
    wait_until(lambda: len(worker.log_events("job ended")) > 1)
    assert [line["outcome"] for line in worker.log_events("job ended")] == ["lost_lease", "completed"]
    assert written(database) == ["row"]
