"""The worker loop with real processes: run, settle, wake up, stop."""

import time
from datetime import UTC, datetime

from tests.databases import Database
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcesses

ECHO = """
def handle(job, ctx):
    ctx.progress(0.5, "half way")
    return {"payload": job.payload, "attempt": job.attempt}
"""


def test_a_bare_insert_is_run_and_completed(database: Database, worker_process: WorkerProcesses) -> None:
    worker_process.start(database, ECHO)

    job_id = database.enqueue(payload={"number": 1})
    wait_until(lambda: database.job(job_id)["status"] == "completed", what="the job to complete")

    job = database.job(job_id)
    assert job["result"] == {"payload": {"number": 1}, "attempt": 1}
    assert job["attempts"] == 0
    assert job["progress"] == 1
    assert job["lease_until"] is None
    assert job["started_at"] <= job["completed_at"]
    assert [event["new_status"] for event in database.rows("select * from job_event order by id")] == [
        "pending",
        "running",
        "completed",
    ]


def test_a_failure_is_retried_after_its_backoff_and_ends_in_error(
    database: Database, worker_process: WorkerProcesses
) -> None:
    worker = worker_process.start(database, "def handle(job, ctx):\n    raise ValueError('no luck')")

    job_id = database.enqueue(max_attempts=2)
    wait_until(lambda: database.job(job_id)["status"] == "retry")

    job = database.job(job_id)
    wait = (job["scheduled_for"] - datetime.now(UTC)).total_seconds()
    assert 27 < wait <= 30
    assert (job["attempts"], job["error_class"], job["error_msg"]) == (1, "ValueError", "no luck")

    database.rows("update job_queue set scheduled_for = now() where id = %s", job_id)
    wait_until(lambda: database.job(job_id)["status"] == "error")

    attempts = database.rows("select * from job_attempt order by id")
    assert [(past["attempt"], past["outcome"], past["charged"]) for past in attempts] == [
        (1, "failed", True),
        (2, "failed", True),
    ]
    assert "raise ValueError" in attempts[0]["traceback"]
    assert worker.is_alive()


def test_sigterm_ends_an_idle_worker_at_once(database: Database, worker_process: WorkerProcesses) -> None:
    worker = worker_process.start(database, ECHO, environ={"POLL_SECONDS": "60"})
    wait_until(lambda: database.value("select idle from worker"))

    worker.terminate()
    started = time.monotonic()

    assert worker.wait(5) == 0
    assert time.monotonic() - started < 2
    assert database.rows("select * from worker") == []
    assert not worker.health_file.exists()


def test_a_notification_wakes_an_idle_worker(database: Database, worker_process: WorkerProcesses) -> None:
    worker_process.start(database, ECHO, environ={"POLL_SECONDS": "60"})
    wait_until(lambda: database.value("select idle from worker"))

    job_id = database.enqueue()
    wait_until(lambda: database.job(job_id)["status"] == "completed", 2)


def test_without_notifications_a_job_is_picked_up_within_the_poll_interval(
    database: Database, worker_process: WorkerProcesses
) -> None:
    worker_process.start(database, ECHO, environ={"POLL_SECONDS": "0.5", "LISTEN": "false"})
    wait_until(lambda: database.value("select idle from worker"))

    for _ in range(3):
        job_id = database.enqueue()
        wait_until(lambda job_id=job_id: database.job(job_id)["status"] == "completed")  # type: ignore[misc]
        job = database.job(job_id)

        assert (job["started_at"] - job["created_at"]).total_seconds() < 0.5 + 0.3
