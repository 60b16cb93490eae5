"""A server that answers, but not as hoped: statements that keep failing, sessions that a handler has bent."""

import time

import pytest

from tests.databases import Database
from tests.fault_tools import (
    SIGNPOSTS,
    add_written,
    attempts_of,
    statuses_of,
    wait_for_file,
    wait_for_status,
    written,
)
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcesses

DONE = "def handle(job, ctx): return job.attempt"


def break_function(database: Database, name: str, arguments: str, sqlstate: str) -> str:
    """Replaces a function by one that raises; returns the statement that puts the old one back."""
    old: str = database.value("select pg_get_functiondef(oid) from pg_proc where proname = %s", name)
    result = "integer" if name == "write_checkpoint" else "void"
    default = " default null" if name == "write_checkpoint" else ""
    database.rows(
        f"create or replace function {name}({arguments}{default}) returns {result} language plpgsql "
        f"security definer as $$ begin raise exception 'broken on purpose' using errcode = '{sqlstate}'; end $$"
    )
    return old


def test_a_completion_that_the_server_keeps_refusing_is_given_up(
    database: Database, worker_process: WorkerProcesses
) -> None:
    """The worker must not hold the job for ever, nor itself."""
    database.add_job_type("test_job", backoff_base_seconds=1)
    old = break_function(database, "complete_job", "p_job_id uuid, p_lease_token uuid, p_result jsonb", "XX000")
    worker = worker_process.start(database, DONE)
    job_id = database.enqueue()

    wait_until(lambda: worker.log_events("job ended"), 12, what="the run to be given up")
    database.rows(old.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"))

    wait_for_status(database, job_id, "completed", timeout=15)
    assert statuses_of(database, job_id).count("completed") == 1
    assert worker.is_alive()


def test_a_worker_stops_while_the_server_refuses_the_completion(
    database: Database, worker_process: WorkerProcesses
) -> None:
    database.rows("update job_type set lease_seconds = 60 where name = 'test_job'")
    break_function(database, "complete_job", "p_job_id uuid, p_lease_token uuid, p_result jsonb", "53100")
    hurried = "import sidelinja_jobs.settling as settling\nsettling.REFUSED_HURRIED_SECONDS = 1  # five, as delivered\n"
    worker = worker_process.start(database, hurried + DONE)
    job_id = database.enqueue()
    wait_for_status(database, job_id, "running")

    worker.terminate()
    started = time.monotonic()

    assert worker.wait(20) in (0, 70)
    assert time.monotonic() - started < 8


@pytest.mark.parametrize("batch_size", [1, 20], ids=["alone", "in a batch"])
def test_a_server_that_ends_the_session_among_the_writes_costs_no_attempt(
    database: Database, worker_process: WorkerProcesses, batch_size: int
) -> None:
    """Its last words come while the socket still looks open: then the connection is lost, and no write has failed."""
    add_written(database)
    database.add_job_type("batch_job", batch_size=batch_size)
    ids = [database.enqueue("batch_job", payload={"n": number}) for number in range(5)]
    worker_process.start(
        database,
        """
ended = []

def handle(job, ctx):
    ctx.on_complete(lambda conn: conn.execute("insert into written values (%s, %s)", (job.id, str(job.payload["n"]))))
    if job.payload["n"] == 2:
        ctx.on_complete(end)

def end(conn):
    if not ended:
        ended.append(conn)
        conn.execute("do $$ begin raise exception 'terminating connection' using errcode = '57P01'; end $$")
""",
        job_type="batch_job",
    )

    for job_id in ids:
        wait_for_status(database, job_id, "completed", "retry")

    assert [attempts_of(database, job_id) for job_id in ids] == [[]] * 5
    assert written(database) == ["0", "1", "2", "3", "4"]


def test_a_checkpoint_that_the_server_cannot_take_is_the_handlers_error(
    database: Database, worker_process: WorkerProcesses
) -> None:
    """It is no broken connection: trying it again and again would keep the job for its longest run."""
    worker_process.start(database, "def handle(job, ctx): ctx.checkpoint('x')")
    arguments = "p_job_id uuid, p_lease_token uuid, p_data jsonb, p_seq integer"
    for sqlstate in ("54000", "22P02", "XX000"):  # too large, bad data, internal
        break_function(database, "write_checkpoint", arguments, sqlstate)

        job = wait_for_status(database, database.enqueue(), "retry", timeout=5)
        assert "broken on purpose" in job["error_msg"]


def test_what_a_handler_does_to_its_session_harms_nobody(database: Database, worker_process: WorkerProcesses) -> None:
    worker = worker_process.start(
        database,
        """
def handle(job, ctx):
    with ctx.transaction() as conn:
        conn.execute("set " + job.payload["set"])
    return "done"
""",
    )
    settings = ["statement_timeout = 200", "default_transaction_read_only = on", "lock_timeout = 1"]
    ids = [database.enqueue(payload={"set": setting}) for setting in settings]

    jobs = [wait_for_status(database, job_id, "completed") for job_id in ids]

    assert [job["result"] for job in jobs] == ["done"] * 3
    assert [attempts_of(database, job_id) for job_id in ids] == [[]] * 3
    assert worker.is_alive()


def test_sigterm_in_the_middle_of_a_claim_releases_what_it_brings(
    database: Database, worker_process: WorkerProcesses
) -> None:
    database.add_job_type("batch_job", batch_size=3)
    database.rows(
        """create function dawdle() returns trigger language plpgsql as
               $$ begin perform pg_sleep(0.3); return null; end $$;
           create trigger dawdle after update on job_queue for each row
               when (new.status = 'running' and old.status <> 'running') execute function dawdle()"""
    )
    handler = SIGNPOSTS + "def handle(job, ctx): reach('started')"
    worker = worker_process.start(database, handler, job_type="batch_job")
    ids = [
        row["id"]
        for row in database.rows(
            "insert into job_queue (job_type, payload) select 'batch_job', '{}' from generate_series(1, 3) returning id"
        )
    ]
    wait_until(lambda: database.rows("select pid from pg_stat_activity where wait_event = 'PgSleep'"), every=0.005)

    worker.terminate()
    assert worker.wait() == 0

    assert [database.job(job_id)["status"] for job_id in ids] == ["pending"] * 3
    assert [database.job(job_id)["attempts"] for job_id in ids] == [0] * 3
    assert not (worker.log_file.parent / "started").exists()


def test_a_type_that_is_taken_from_a_worker_stops_its_run_and_the_worker(
    database: Database, worker_process: WorkerProcesses
) -> None:
    worker = worker_process.start(
        database, SIGNPOSTS + "def handle(job, ctx):\n    reach('working')\n    wait_for('never')"
    )
    job_id = database.enqueue()
    wait_for_file(worker.log_file.parent / "working")

    database.rows("update job_type set role = 'worker_foreign' where name = 'test_job'")

    assert worker.wait() == 78
    assert "may not work jobs" in worker.log_text()
    assert database.job(job_id)["result"] is None
