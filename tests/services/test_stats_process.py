"""The stats worker as it runs: set up by itself, one run queued; and what it says when it cannot run."""

import sys
from pathlib import Path

import pytest

from services.stats.countries import MISSING
from sidelinja_jobs.job_type import JobType
from tests.databases import ROOT, Database
from tests.unit.stats_support import line
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcesses

COMMAND = [sys.executable, "-m", "services.stats"]
PLANNED = "select * from job_queue where unique_key = 'schedule:podcast statistics' and status = 'pending'"


def test_a_fresh_worker_makes_source_and_schedule_and_counts_when_it_is_told_to(
    database: Database, worker_process: WorkerProcesses, tmp_path: Path
) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    database.rows("update job_type set lease_seconds = 4 where name = 'stats_parse'")  # it sweeps every second
    environ = {"STATS_LOG_ROOT": str(logs), "MEDIA_ROOT": str(tmp_path / "none"), "STATS_COUNTRY_FILE": "/nowhere.mmdb"}
    worker = worker_process.start_command(database, COMMAND, "worker_stats", environ)
    (run,) = wait_until(lambda: database.rows(PLANNED), 20)
    assert run["scheduled_for"] > run["created_at"]

    (logs / "access.log").write_bytes(line() + line(agent="Googlebot/2.1"))
    database.rows("update job_queue set scheduled_for = now()")

    wait_until(lambda: database.job(run["id"])["status"] == "completed", 20)
    result = database.job(run["id"])["result"]
    assert (result["lines"], result["excluded"], result["warnings"]) == (2, {"bot": 1}, [MISSING])
    assert database.value("select sum(downloads) from stats.download_day") == 1
    assert wait_until(lambda: database.rows(PLANNED), 20)[0]["id"] != run["id"]
    worker.terminate()
    assert worker.wait(60) == 0


def test_without_a_log_the_run_says_so_and_the_next_one_waits(
    database: Database, worker_process: WorkerProcesses, tmp_path: Path
) -> None:
    database.rows("update job_type set lease_seconds = 4 where name = 'stats_parse'")
    worker_process.start_command(database, COMMAND, "worker_stats", {"STATS_LOG_ROOT": str(tmp_path)})
    (run,) = wait_until(lambda: database.rows(PLANNED), 20)

    database.rows("update job_queue set scheduled_for = now()")

    wait_until(lambda: database.job(run["id"])["status"] == "completed", 20)
    assert database.job(run["id"])["result"]["warnings"] == ["no_log_file"]
    (following,) = wait_until(lambda: database.rows(PLANNED), 20)
    assert following["scheduled_for"] > following["created_at"]


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("STATS_DENY_FILE", "192.0.2.0/24\nnonsense  # x\n", "line 2"),
        ("STATS_RUN_SECONDS", None, "STATS_RUN_SECONDS is 'x', expected a whole number"),
        ("STATS_AGENTS_FOLDER", None, "bots.json cannot be used"),
    ],
)
def test_a_worker_that_cannot_run_says_what_to_set(
    database: Database, worker_process: WorkerProcesses, tmp_path: Path, name: str, content: str | None, told: str
) -> None:
    value = "x"
    if content is not None:
        value = str(tmp_path / "list")
        (tmp_path / "list").write_text(content)
    worker = worker_process.start_command(database, COMMAND, "worker_stats", {name: value})

    assert worker.wait(60) == 78  # a busy machine takes its time to start a process
    assert told in worker.log_text()


def test_its_rules_are_those_of_its_folder() -> None:
    job_type = JobType.load(ROOT / "services" / "stats")

    assert (job_type.name, job_type.role, job_type.keep_completed_days) == ("stats_parse", "worker_stats", 30)
