"""A worker that cannot start says what to set, and exits with the code that stands for it."""

import sys
import time
import urllib.request

import pytest
from psycopg.conninfo import make_conninfo

from demo.embedded_postgres import free_port
from tests.databases import ROOT, Database
from tests.fault_tools import wait_for_status
from tests.tcp_proxy import Proxy
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcess, WorkerProcesses

HANDLER = "def handle(job, ctx): pass"


def problem(worker: WorkerProcess) -> str:
    """The one line that says why; a traceback is no answer."""
    assert "Traceback" not in worker.log_text(), worker.log_text()
    (line,) = [line for line in worker.log_events() if line["level"] == "error"]
    return str(line["problem"])


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"DATABASE_PASSWORD": "wrong"}, ["DATABASE_PASSWORD", "migrate"]),
        ({"DATABASE_URL": "no url at all"}, ["DATABASE_URL", "postgresql://"]),
        ({"POLL_SECONDS": "soon", "METRICS_PORT": "-1"}, ["POLL_SECONDS", "'soon'", "METRICS_PORT"]),
    ],
    ids=["wrong password", "no url", "settings"],
)
def test_wrong_settings_end_with_78_and_say_which(
    database: Database, worker_process: WorkerProcesses, environ: dict[str, str], said: list[str]
) -> None:
    worker = worker_process.start(database, HANDLER, environ=environ, ready=False)

    assert worker.wait() == 78
    for words in said:
        assert words in problem(worker)


def test_a_role_that_may_not_work_the_type_ends_with_78(database: Database, worker_process: WorkerProcesses) -> None:
    worker = worker_process.start(database, HANDLER, role="worker_foreign", ready=False)

    assert worker.wait() == 78
    assert 'role worker_foreign may not work jobs of type "test_job"' in problem(worker)


def again(workers: WorkerProcesses, database: Database, worker: WorkerProcess) -> WorkerProcess:
    """Starts what `worker` was once more, without asking the database for the rules of its type."""
    folder = worker.log_file.parent
    (module,) = folder.glob("handler_*.py")
    command = [sys.executable, "-m", "tests.worker_main", module.stem, "handle", str(folder)]
    return workers.start_command(database, command, "worker_test", {"PYTHONPATH": f"{ROOT / 'shared'}:{ROOT}:{folder}"})


def test_a_type_that_migrate_has_not_seen_ends_with_78(database: Database, worker_process: WorkerProcesses) -> None:
    database.add_job_type("late_job")
    first = worker_process.start(database, HANDLER, job_type="late_job")
    first.end()
    database.rows("delete from job_type where name = 'late_job'")

    worker = again(worker_process, database, first)

    assert worker.wait() == 78
    assert '"late_job"' in problem(worker)


@pytest.mark.parametrize("version", [7, None], ids=["older", "none"])
def test_an_old_schema_ends_with_78(database: Database, worker_process: WorkerProcesses, version: int | None) -> None:
    statement = "drop table schema_migrations" if version is None else "delete from schema_migrations where version > 7"
    database.rows(statement)
    worker = worker_process.start(database, HANDLER, ready=False)

    assert worker.wait() == 78
    assert f"at version {version or 0}" in problem(worker)
    assert "migrate" in problem(worker)


def test_a_newer_schema_is_worked_with(database: Database, worker_process: WorkerProcesses) -> None:
    """`migrate` runs before the workers of the release before have gone."""
    database.rows(
        "insert into schema_migrations (version, name) select max(version) + 1, 'next' from schema_migrations"
    )
    worker_process.start(database, HANDLER)

    wait_for_status(database, database.enqueue(), "completed")


def test_a_metrics_port_that_is_taken_ends_with_78(database: Database, worker_process: WorkerProcesses) -> None:
    with Proxy(database.server.host, database.server.port) as taken:
        environ = {"METRICS_PORT": str(taken.port), "METRICS_HOST": "127.0.0.1"}
        worker = worker_process.start(database, HANDLER, environ=environ, ready=False)

        assert worker.wait() == 78
    assert f"METRICS_PORT {taken.port}" in problem(worker)


def test_a_worker_waits_for_a_database_that_is_away_at_start(
    database: Database, worker_process: WorkerProcesses
) -> None:
    port = free_port()
    url = make_conninfo(database.dsn("worker_test"), host="127.0.0.1", port=port)
    metrics_port = free_port()
    environ = {"DATABASE_URL": url, "METRICS_PORT": str(metrics_port), "METRICS_HOST": "127.0.0.1"}
    worker = worker_process.start(database, HANDLER, environ=environ, ready=False)
    job_id = database.enqueue()
    wait_until(lambda: worker.log_events("database not reachable yet"))
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics_port}/metrics", timeout=5) as answer:
        assert b"jobqueue_worker_info" in answer.read()

    with Proxy(database.server.host, database.server.port, listen_on=port):
        wait_for_status(database, job_id, "completed")


def test_a_worker_that_waits_for_its_database_stops_when_told(
    database: Database, worker_process: WorkerProcesses
) -> None:
    url = "postgresql://worker_test@127.0.0.1:1/nowhere"
    worker = worker_process.start(database, HANDLER, environ={"DATABASE_URL": url}, ready=False)
    wait_until(lambda: worker.log_events("database not reachable yet"))

    worker.terminate()
    started = time.monotonic()

    assert worker.wait() == 0
    assert time.monotonic() - started < 3
    assert "Traceback" not in worker.log_text()
