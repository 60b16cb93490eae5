"""What a worker shows of itself: metrics, log lines, health file, its row in the table worker."""

import urllib.request

from prometheus_client.parser import text_string_to_metric_families

from demo.embedded_postgres import free_port
from tests.databases import Database
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcesses

MIXED = """
def handle(job, ctx):
    if job.payload.get("fail"):
        raise ValueError("the secret is hunter2" * 3)
    return {"text": "a transcript"}
"""
WORKER_METRICS = {
    "jobqueue_worker_info",
    "jobqueue_last_poll_timestamp_seconds",
    "jobqueue_last_completed_timestamp_seconds",
    "jobqueue_jobs_in_progress",
    "jobqueue_current_attempt_start_timestamp_seconds",
    "jobqueue_attempts",
    "jobqueue_attempt_duration_seconds",
    "jobqueue_queue_wait_seconds",
    "jobqueue_errors",
    "jobqueue_claim_duration_seconds",
    "jobqueue_db_reconnects",
    "jobqueue_heartbeat_failures",
    "process_resident_memory_bytes",
}


def scrape(port: int) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        families = text_string_to_metric_families(answer.read().decode())
        return {
            family.name: {
                (("", sample.name), *sorted(sample.labels.items())): sample.value for sample in family.samples
            }
            for family in families
        }


def test_metrics_tell_what_the_process_did(database: Database, worker_process: WorkerProcesses) -> None:
    port = free_port()
    worker_process.start(database, MIXED, environ={"METRICS_PORT": str(port), "METRICS_HOST": "127.0.0.1"})
    attempts_total = (("", "jobqueue_attempts_total"), ("job_type", "test_job"))

    at_start = scrape(port)
    assert set(at_start) >= WORKER_METRICS
    assert at_start["jobqueue_attempts"][(*attempts_total, ("outcome", "error"))] == 0
    assert not any(name.endswith("_created") for name in at_start)

    database.enqueue()
    database.enqueue(payload={"fail": True}, max_attempts=1)
    wait_until(lambda: database.value("select count(*) from job_queue where completed_at is not null") == 2)
    wait_until(lambda: scrape(port)["jobqueue_attempts"][(*attempts_total, ("outcome", "error"))] == 1)

    after = scrape(port)
    assert after["jobqueue_attempts"][(*attempts_total, ("outcome", "completed"))] == 1
    errors_total = (("", "jobqueue_errors_total"), ("job_type", "test_job"), ("kind", "other"))
    assert after["jobqueue_errors"][errors_total] == 1
    assert all(dict(labels).get("job_type", "test_job") == "test_job" for series in after.values() for labels in series)


def test_a_dead_run_that_a_sweep_puts_back_is_counted(database: Database, worker_process: WorkerProcesses) -> None:
    port = free_port()
    worker_process.start(database, MIXED, environ={"METRICS_PORT": str(port), "METRICS_HOST": "127.0.0.1"})
    rescued = (("", "jobqueue_rescued_runs_total"),)
    assert scrape(port)["jobqueue_rescued_runs"][rescued] == 0

    database.enqueue(
        "other_job", status="running", started_at="2026-01-01 00:00+00", lease_until="2026-01-01 00:01+00",
        lease_token="7d444840-9dc0-11d1-b245-5ffdce74fad2",
    )  # fmt: skip

    wait_until(lambda: scrape(port)["jobqueue_rescued_runs"][rescued] == 1, 20, what="the sweep's count")


def test_one_line_per_run_tells_its_end_and_no_payload_is_logged(
    database: Database, worker_process: WorkerProcesses
) -> None:
    worker = worker_process.start(database, MIXED)
    job_id = database.enqueue(payload={"prompt": "classified words"})
    wait_until(lambda: database.job(job_id)["status"] == "completed")
    wait_until(lambda: worker.log_events("job ended"))

    (line,) = worker.log_events("job ended")
    assert line["job_id"] == str(job_id)
    assert (line["job_type"], line["attempt"], line["outcome"]) == ("test_job", 1, "completed")
    assert line["seconds"] >= 0
    assert "classified words" not in worker.log_text()
    assert "a transcript" not in worker.log_text()
    assert database.server.password("worker_test") not in worker.log_text()


def test_a_worker_shows_its_health_and_its_row(database: Database, worker_process: WorkerProcesses) -> None:
    worker = worker_process.start(database, "import time\ndef handle(job, ctx):\n    time.sleep(1)")
    wait_until(worker.health_file.exists)

    job_id = database.enqueue()
    wait_until(lambda: database.job(job_id)["status"] == "running")
    busy = database.row("select * from worker")
    wait_until(lambda: database.value("select idle from worker"))

    assert (busy["job_type"], busy["role"], busy["idle"]) == ("test_job", "worker_test", False)
    assert busy["current_job_id"] == job_id
    assert database.job(job_id)["worker_id"] == busy["worker_id"]
    assert database.value("select current_job_id from worker") is None


def test_the_database_logs_and_shows_no_password(database: Database, worker_process: WorkerProcesses) -> None:
    worker_process.start(database, MIXED)
    shown = str(database.rows("select * from worker")) + str(
        database.rows("select query, application_name from pg_stat_activity")
    )

    assert database.server.password("worker_test") not in shown
    assert "jobbko test_job work" in shown
