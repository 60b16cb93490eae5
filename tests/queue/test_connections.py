"""Connections that break, hang half-open or are terminated: deadlines, and a worker that comes back by itself."""

import time
from collections.abc import Iterator

import psycopg
import pytest

from sidelinja_jobs.database import Link, QueueConnection, connect
from sidelinja_jobs.errors import SettingsError
from sidelinja_jobs.settings import DatabaseSettings
from tests.databases import Database
from tests.fault_tools import SIGNPOSTS, attempts_of, wait_for_file, wait_for_status
from tests.tcp_proxy import Proxy
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcesses

QUICK = "def handle(job, ctx): return job.attempt"


@pytest.fixture
def proxy(database: Database) -> Iterator[Proxy]:
    with Proxy(database.server.host, database.server.port) as proxy:
        yield proxy


def through(proxy: Proxy, database: Database) -> str:
    return proxy.dsn(database.dsn("worker_test"))


def test_a_statement_without_an_answer_ends_at_its_deadline(database: Database, proxy: Proxy) -> None:
    conn = connect(DatabaseSettings(url=through(proxy, database), timeout_seconds=0.5), name="test")
    assert conn.execute("select 1").fetchall()
    proxy.freeze()
    started = time.monotonic()

    with pytest.raises(psycopg.OperationalError, match=r"did not answer within 0\.5 s"):
        conn.execute("select 1")

    assert 0.4 < time.monotonic() - started < 1.5
    assert conn.closed


def test_a_transaction_without_an_answer_ends_at_its_deadline(database: Database, proxy: Proxy) -> None:
    conn = connect(DatabaseSettings(url=through(proxy, database), timeout_seconds=0.5), name="test")
    started = time.monotonic()

    def freeze_inside() -> None:
        with conn.transaction():
            conn.execute("select 1")
            proxy.freeze()

    with pytest.raises(psycopg.OperationalError):
        freeze_inside()
    assert time.monotonic() - started < 2
    assert conn.closed


def test_a_deadline_can_be_moved_for_a_while(database: Database) -> None:
    conn = connect(DatabaseSettings(url=database.dsn(), timeout_seconds=0.5), name="test")

    with conn.deadline(None):
        conn.execute("select pg_sleep(0.7)")
    assert conn.deadline_seconds == 0.5
    assert not conn.closed
    with pytest.raises(ZeroDivisionError), conn.deadline(3):
        1 / 0  # noqa: B018
    assert conn.deadline_seconds == 0.5
    with pytest.raises(psycopg.OperationalError, match="did not answer"):
        conn.execute("select pg_sleep(5)")


def test_a_server_that_takes_the_connection_and_says_nothing_is_given_up(database: Database, proxy: Proxy) -> None:
    proxy.freeze()
    settings = DatabaseSettings(url=through(proxy, database), timeout_seconds=1)
    started = time.monotonic()

    with pytest.raises(psycopg.OperationalError):
        connect(settings, name="test", deadline_seconds=1)

    assert time.monotonic() - started < 6


def test_an_errors_text_that_speaks_of_passwords_is_no_refused_login(database: Database) -> None:
    """Only the server's own refusal is a matter of settings; an outage is waited out, whatever its text says."""
    url = database.dsn("worker_test").replace(database.server.host, "password.invalid")

    with pytest.raises(psycopg.OperationalError):
        connect(DatabaseSettings(url=url), name="test")


@pytest.mark.parametrize("url", ["no url", "postgresql://[::1/db"])
def test_a_url_that_is_none_is_a_settings_error_without_its_secrets(url: str) -> None:
    with pytest.raises(SettingsError, match="DATABASE_URL") as error:
        connect(DatabaseSettings(url=url + "?password=tops3cret"), name="test")

    assert "tops3cret" not in str(error.value)


def test_a_link_opens_a_closed_connection_anew_and_counts_it(database: Database) -> None:
    counted: list[int] = []
    settings = DatabaseSettings(url=database.dsn())
    link = Link(lambda: connect(settings, name="test"), lambda: counted.append(1))
    assert not link.is_open

    first = link.open()
    assert link.open() is first
    first.execute("begin")
    assert link.is_busy
    link.close()
    assert (link.is_open, link.is_busy, counted) == (False, False, [])
    second: QueueConnection = link.open()
    assert second is not first
    assert counted == [1]
    second.close()
    assert link.open() is not second
    link.close()


def test_a_worker_is_woken_again_after_its_connections_were_terminated_twenty_times(
    database: Database, worker_process: WorkerProcesses
) -> None:
    worker = worker_process.start(database, QUICK, environ={"POLL_SECONDS": "30"})
    backends = """select pid from pg_stat_activity
                   where datname = current_database() and application_name like 'jobbko %' order by pid"""
    for _ in range(20):
        before = wait_until(lambda: database.rows(backends))
        database.rows(f"select pg_terminate_backend(pid) from ({backends}) as old")
        wait_until(lambda before=before: (now := database.rows(backends)) and now != before)  # type: ignore[misc]
    wait_until(lambda: database.value("select idle from worker"))

    job_id = database.enqueue()
    job = wait_for_status(database, job_id, "completed", timeout=5)

    assert (job["started_at"] - job["created_at"]).total_seconds() < 2
    second = wait_for_status(database, database.enqueue(), "completed")
    assert (second["started_at"] - second["created_at"]).total_seconds() < 0.5
    assert worker.is_alive()
    assert database.value("select count(*) from worker") == 1


def test_a_claim_whose_answer_is_lost_costs_nothing(
    database: Database, proxy: Proxy, worker_process: WorkerProcesses
) -> None:
    """Nobody works that run, and it must not end in error as the crash of a worker that has never seen it."""
    database.add_job_type("test_job", lease_seconds=60)
    environ = {"DATABASE_URL": through(proxy, database), "DB_TIMEOUT_SECONDS": "0.5", "POLL_SECONDS": "30"}
    worker = worker_process.start(database, QUICK, environ=environ)
    wait_until(lambda: database.value("select idle from worker"))

    cut = proxy.cut_at_answer("precious")
    job_id = database.enqueue(payload={"cargo": "precious"}, max_attempts=1)
    wait_until(cut.happened.is_set, what="the claim to be cut")
    job = wait_for_status(database, job_id, "completed", "error", timeout=15)

    assert (job["status"], job["attempts"], job["result"]) == ("completed", 0, 1)
    assert [(past["outcome"], past["charged"]) for past in attempts_of(database, job_id)] == [("released", False)]
    assert worker.is_alive()


def test_a_worker_says_anew_that_it_is_idle_after_a_claim_whose_answer_was_lost(
    database: Database, proxy: Proxy, worker_process: WorkerProcesses
) -> None:
    """The claim has made it busy in the database, and nothing would wake it until its next poll."""
    environ = {"DATABASE_URL": through(proxy, database), "POLL_SECONDS": "30"}
    worker_process.start(database, QUICK, environ=environ)
    wait_until(lambda: database.value("select idle from worker"))

    cut = proxy.cut_at_answer("precious")
    database.enqueue(payload={"cargo": "precious"})
    wait_until(cut.happened.is_set, what="the claim to be cut")
    database.rows("delete from job_queue")  # as if another worker had it by now

    wait_until(lambda: database.value("select idle from worker"), what="the worker to be idle again")


STEADY = SIGNPOSTS + "def handle(job, ctx):\n    reach('working')\n    wait_for('go')\n    return job.attempt"


def test_workers_come_back_from_half_open_connections(
    database: Database, proxy: Proxy, worker_process: WorkerProcesses
) -> None:
    """One in the middle of a job, one asleep; the server is silent for longer than a statement may take."""
    for job_type in ("test_job", "other_job"):
        database.add_job_type(job_type, lease_seconds=8)
    environ = {"DATABASE_URL": through(proxy, database), "DB_TIMEOUT_SECONDS": "0.5"}
    busy = worker_process.start(database, STEADY, environ=environ)
    busy_id = database.enqueue()
    wait_for_file(busy.log_file.parent / "working")
    idle = worker_process.start(database, QUICK, job_type="other_job", environ=environ)
    wait_until(lambda: database.rows("select 1 from worker where idle"))

    proxy.freeze()
    (busy.log_file.parent / "go").touch()
    wait_until(lambda: busy.log_events("heartbeat failed") and idle.log_events("database trouble, trying again"))
    idle_id = database.enqueue("other_job")
    proxy.thaw()

    for job_id in (busy_id, idle_id):
        job = wait_for_status(database, job_id, "completed", timeout=8)
        assert (job["result"], job["attempts"]) == (1, 0)
        assert not any(past["charged"] for past in attempts_of(database, job_id))


def test_sigterm_works_on_half_open_connections(
    database: Database, proxy: Proxy, worker_process: WorkerProcesses
) -> None:
    environ = {"DATABASE_URL": through(proxy, database), "DB_TIMEOUT_SECONDS": "0.5"}
    busy, completing = (worker_process.start(database, STEADY, environ=environ) for _ in range(2))
    database.enqueue()
    database.enqueue()
    for worker in (busy, completing):
        wait_for_file(worker.log_file.parent / "working")
    idle = worker_process.start(database, STEADY, environ=environ)
    wait_until(lambda: database.rows("select 1 from worker where idle"))

    proxy.freeze()
    (completing.log_file.parent / "go").touch()
    for worker in (busy, completing, idle):
        worker.terminate()
    started = time.monotonic()

    assert [worker.wait(20) for worker in (busy, completing, idle)] == [0, 0, 0]
    assert time.monotonic() - started < 8
    assert database.value("select count(*) from job_queue where attempts > 0 or status = 'error'") == 0


def test_a_long_job_does_not_hold_up_the_servers_notifications(
    database: Database, worker_process: WorkerProcesses
) -> None:
    """A listener that reads nothing for hours fills its socket; its backend then blocks inside a transaction, which
    keeps the server from vacuuming and its queue of notifications from being emptied."""
    handler = SIGNPOSTS + "def handle(job, ctx):\n    reach('working')\n    wait_for('go')"
    worker = worker_process.start(database, handler)
    database.enqueue()
    wait_for_file(worker.log_file.parent / "working")

    for batch in range(30):
        database.rows(
            """select pg_notify('job_ready', repeat('x', 7900) || %s::text || '-' || n)
                 from generate_series(1, 100) as n""",
            batch,
        )
    blocked = """select application_name from pg_stat_activity
                  where datname = current_database() and application_name like 'jobbko %'
                    and wait_event = 'ClientWrite'"""

    wait_until(lambda: database.rows(blocked) == [], 2, what="no backend of the worker to be blocked")
    (worker.log_file.parent / "go").touch()
    wait_until(lambda: database.value("select count(*) from job_queue where status = 'completed'"))


def test_a_worker_with_more_than_a_thousand_open_files_goes_on(
    database: Database, worker_process: WorkerProcesses
) -> None:
    """select() cannot wait for a file descriptor over 1023."""
    worker = worker_process.start(
        database,
        """
import os, resource
kept = []
def handle(job, ctx):
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    while len(kept) < 1100:
        kept.append(os.open("/dev/null", os.O_RDONLY))
    return max(kept)
""",
    )
    assert wait_for_status(database, database.enqueue(), "completed")["result"] > 1023
    database.rows(
        """select pg_terminate_backend(pid) from pg_stat_activity
            where datname = current_database() and application_name like 'jobbko %'"""
    )

    for _ in range(2):
        wait_until(lambda: database.value("select idle from worker"))
        wait_for_status(database, database.enqueue(), "completed")
    assert worker.is_alive(), worker.log_text()
    worker.terminate()
    assert worker.wait() == 0
