"""Completion with data: a handler's writes and the completion are both there, or both absent."""

import time
from pathlib import Path

import pytest

from tests.databases import Database
from tests.fault_tools import (
    SIGNPOSTS,
    add_written,
    attempts_of,
    bury,
    statuses_of,
    take_away,
    wait_for_file,
    wait_for_lock,
    wait_for_status,
    written,
)
from tests.sessions import make_due
from tests.tcp_proxy import Proxy
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcesses

# Writes a row and does what the payload says, in its first run only.
WRITER = (
    SIGNPOSTS
    + """
import os, signal, psycopg, sidelinja_jobs

def handle(job, ctx):
    first = job.attempt == 1 and not os.path.exists("second")
    ctx.on_complete(lambda conn: conn.execute("insert into written values (%s, 'before')", (job.id,)))
    ctx.on_complete(lambda conn: sidelinja_jobs.enqueue(conn, "other_job", {"from": str(job.id)}))
    if first:
        ctx.on_complete(lambda conn: globals()[job.payload["do"]](conn))
    ctx.on_complete(lambda conn: conn.execute("insert into written values (%s, 'after')", (job.id,)))
    return {"attempt": job.attempt}

def fail(conn):
    raise ValueError("the write failed")

def break_sql(conn):
    conn.execute("select 1 / 0")

def refuse(conn):
    sidelinja_jobs.enqueue(conn, "other_job", {"blob": "data:audio/mp3;base64,AAAA"})

def commit(conn):
    conn.commit()

def leave(conn):
    raise SystemExit(3)

def die(conn):
    os.kill(os.getpid(), signal.SIGKILL)

def lose_connection(conn):
    if not os.path.exists("second"):
        reach("second")
        conn.execute("select pg_terminate_backend(pg_backend_pid())")

def wait(conn):
    reach("second")
    wait_for("go")
"""
)


def assert_complete_once(database: Database, job_id: object) -> None:
    assert written(database) == ["after", "before"]
    assert database.value("select count(*) from job_queue where job_type = 'other_job'") == 1
    assert statuses_of(database, job_id).count("completed") == 1  # type: ignore[arg-type]


FAILING = {
    "fail": "ValueError",
    "break_sql": "DivisionByZero",
    "refuse": "RefusedError",
    "commit": "ProgrammingError",
    "leave": "SystemExit",
}


def test_a_failing_write_takes_all_others_and_the_completion_with_it(
    database: Database, worker_process: WorkerProcesses
) -> None:
    add_written(database)
    worker = worker_process.start(database, WRITER)

    for write, error_class in FAILING.items():
        job_id = database.enqueue(payload={"do": write})
        job = wait_for_status(database, job_id, "retry", "error")
        assert (job["status"], job["attempts"], job["error_class"]) == ("retry", 1, error_class)
        assert (job["result"], written(database)) == (None, [])
        assert database.rows("select * from job_queue where job_type = 'other_job'") == []

        make_due(database, job_id)
        job = wait_for_status(database, job_id, "completed")
        assert_complete_once(database, job_id)
        assert job["result"] == {"attempt": 2}
        database.rows("delete from written")
        database.rows("delete from job_queue where job_type = 'other_job'")
    assert worker.is_alive()


def test_a_process_killed_between_its_writes_and_the_commit_leaves_nothing(
    database: Database, worker_process: WorkerProcesses
) -> None:
    add_written(database)
    job_id = database.enqueue(payload={"do": "die"})
    worker = worker_process.start(database, WRITER, ready=False)

    assert worker.wait() == -9
    assert database.job(job_id)["status"] == "running"
    assert written(database) == []

    assert bury(database, job_id)["status"] == "retry"
    worker_process.start(database, WRITER)
    wait_for_status(database, job_id, "completed")
    assert_complete_once(database, job_id)


def test_a_lease_lost_before_the_commit_takes_the_writes_with_it(
    database: Database, worker_process: WorkerProcesses
) -> None:
    add_written(database)
    worker = worker_process.start(database, WRITER)
    job_id = database.enqueue(payload={"do": "wait"})
    wait_for_file(worker.log_file.parent / "second")

    take_away(database, job_id)
    (worker.log_file.parent / "go").touch()
    (ended,) = wait_until(lambda: worker.log_events("job ended"))

    assert ended["outcome"] == "lost_lease"
    assert written(database) == []
    assert database.job(job_id)["status"] == "running"

    bury(database, job_id)
    wait_for_status(database, job_id, "completed")
    assert_complete_once(database, job_id)


def test_a_connection_lost_among_the_writes_costs_nothing(database: Database, worker_process: WorkerProcesses) -> None:
    add_written(database)
    worker_process.start(database, WRITER)

    job_id = database.enqueue(payload={"do": "lose_connection"})
    job = wait_for_status(database, job_id, "completed")

    assert_complete_once(database, job_id)
    assert (job["attempts"], attempts_of(database, job_id)) == (0, [])


@pytest.mark.parametrize("answered", [False, True], ids=["never arrived", "answer lost"])
def test_a_connection_lost_at_the_commit_completes_once(
    database: Database, worker_process: WorkerProcesses, answered: bool
) -> None:
    add_written(database)
    with Proxy(database.server.host, database.server.port) as proxy:
        worker = worker_process.start(
            database, WRITER, environ={"DATABASE_URL": proxy.dsn(database.dsn("worker_test"))}
        )
        cut = proxy.cut_at("COMMIT", answered=answered)

        (worker.log_file.parent / "second").touch()
        job_id = database.enqueue()
        wait_for_status(database, job_id, "completed")
        (ended,) = wait_until(lambda: worker.log_events("job ended"))

    assert cut.happened.is_set()
    assert_complete_once(database, job_id)
    assert (ended["outcome"], attempts_of(database, job_id)) == ("completed", [])


HANGING = """
import sidelinja_jobs.lease
sidelinja_jobs.lease.COMPLETING_SECONDS = 0.2  # what the last writes may take when the run is to end

def handle(job, ctx):
    ctx.on_complete(lambda conn: conn.execute("lock table written"))
    ctx.on_complete(lambda conn: conn.execute("insert into written values (%s, 'x')", (job.id,)))
"""


def test_a_write_that_hangs_does_not_keep_a_worker_from_stopping(
    database: Database, worker_process: WorkerProcesses
) -> None:
    add_written(database)
    database.rows("grant all on written to worker_test")
    blocker = database.connect(autocommit=False)
    blocker.execute("lock table written")
    worker = worker_process.start(database, HANGING)
    job_id = database.enqueue()
    wait_for_lock(database)

    worker.terminate()
    started = time.monotonic()
    assert worker.wait(12) in (0, 70)

    assert time.monotonic() - started < 9
    job = wait_for_status(database, job_id, "pending")
    assert job["attempts"] == 0


def test_a_write_that_hangs_is_stopped_after_the_longest_run(
    database: Database, worker_process: WorkerProcesses
) -> None:
    database.add_job_type("brief_job", longest_run_seconds=1)
    add_written(database)
    database.rows("grant all on written to worker_test")
    blocker = database.connect(autocommit=False)
    blocker.execute("lock table written")
    worker_process.start(database, HANGING, job_type="brief_job")

    job_id = database.enqueue("brief_job")
    job = wait_for_status(database, job_id, "retry")
    assert (job["attempts"], job["error_class"]) == (1, "timeout")

    blocker.rollback()
    make_due(database, job_id)
    wait_for_status(database, job_id, "completed")
    assert written(database) == ["x"]


RESULTS = """
def handle(job, ctx):
    return {
        "nan": lambda: {"values": [float("nan"), float("inf"), 1.5]},
        "characters": lambda: {"a\\x00b": "c\\x00d", "e": "f\\ud800g"},
        "too_large": lambda: "x" * 17_000_000,
        "not_json": lambda: {"conn": object()},
        "huge_number": lambda: 10**5000,
        "nested": lambda: nested(100_000),
        "keys": lambda: {1: "one", 2.5: "two"},
        "circle": circle,
        "fine": lambda: "fine",
    }[job.payload["kind"]]()

def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value

def circle():
    value = {}
    value["self"] = value
    return value
"""


def test_any_result_is_stored_or_ends_in_a_clear_error(database: Database, worker_process: WorkerProcesses) -> None:
    ids = {
        kind: database.enqueue(payload={"kind": kind}, max_attempts=1)
        for kind in ("nan", "characters", "too_large", "not_json", "huge_number", "nested", "keys", "circle", "fine")
    }
    worker = worker_process.start(database, RESULTS)
    jobs = {kind: wait_for_status(database, job_id, "completed", "error") for kind, job_id in ids.items()}

    assert jobs["nan"]["result"] == {"values": [None, None, 1.5]}
    assert jobs["characters"]["result"] == {"a\ufffdb": "c\ufffdd", "e": "f\ufffdg"}
    assert jobs["keys"]["result"] == {"1": "one", "2.5": "two"}
    assert jobs["fine"]["result"] == "fine"
    too_large = jobs["too_large"]
    assert (too_large["status"], too_large["error_class"]) == ("error", "bad_result")
    assert "17000002 bytes is over the limit of 16777216" in too_large["error_msg"]
    for kind in ("not_json", "huge_number", "nested", "circle"):
        assert jobs[kind]["status"] == "error", kind
        assert jobs[kind]["error_msg"], kind
        assert jobs[kind]["result"] is None
    assert worker.is_alive()


def test_a_handler_may_return_nothing(database: Database, worker_process: WorkerProcesses, tmp_path: Path) -> None:
    worker_process.start(database, "def handle(job, ctx): pass")

    job = wait_for_status(database, database.enqueue(), "completed")

    assert job["result"] is None
