"""Workers behind a pooler that gives each transaction another session: POOLER=true."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.databases import Database
from tests.fault_tools import SIGNPOSTS, add_written, wait_for_file, wait_for_status, written
from tests.pgbouncer import PROGRAM, PgBouncer
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcess, WorkerProcesses

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="there is no pgbouncer: apt-get install pgbouncer")

HANDLER = (
    SIGNPOSTS
    + """
def handle(job, ctx):
    if job.payload.get("waits"):
        reach("begun")
        ctx.checkpoint({"part": 1})
        while True:
            time.sleep(0.02)
    done = len(ctx.checkpoints())
    with ctx.transaction(checkpoint={"part": done + 1}) as conn:
        conn.execute("insert into written (job_id, note) values (%s, 'part')", (job.id,))
    ctx.on_complete(lambda conn: conn.execute("insert into written (job_id, note) values (%s, 'done')", (job.id,)))
    return {"done": done}
"""
)


@pytest.fixture
def pooler(database: Database, tmp_path: Path) -> Iterator[PgBouncer]:
    """Two connections to the server, whoever asks."""
    with PgBouncer(tmp_path / "pooler", database.dsn("worker_test"), pool_size=2) as running:
        yield running


def start(workers: WorkerProcesses, database: Database, pooler: PgBouncer) -> WorkerProcess:
    return workers.start(database, HANDLER, environ={"DATABASE_URL": pooler.dsn, "POOLER": "true"})


def test_three_workers_share_two_connections_and_every_job_is_done_once(
    database: Database, worker_process: WorkerProcesses, pooler: PgBouncer
) -> None:
    """More executions than make psycopg prepare a statement; the pooler goes round its connections."""
    add_written(database)
    workers = [start(worker_process, database, pooler) for _ in range(3)]
    database.rows("insert into job_queue (job_type, payload) select 'test_job', '{}' from generate_series(1, 150)")

    wait_until(
        lambda: database.value("select bool_and(status = 'completed') from job_queue"), 40, what="all to complete"
    )

    assert sorted(written(database)) == ["done"] * 150 + ["part"] * 150
    assert database.value("select count(*) from job_attempt") == 0
    assert database.value("select count(distinct worker_id) from job_queue") > 1
    sessions = database.rows("select query from pg_stat_activity where usename = 'worker_test'")
    assert len(sessions) <= 2
    for worker in workers:
        worker.terminate()
    assert [worker.wait() for worker in workers] == [0, 0, 0]
    assert [line for worker in workers for line in worker.log_events() if line["level"] in ("warning", "error")] == []


def test_a_cancel_reaches_the_worker_with_its_heartbeat(
    database: Database, worker_process: WorkerProcesses, pooler: PgBouncer
) -> None:
    worker = start(worker_process, database, pooler)
    job_id = database.enqueue(payload={"waits": True})
    wait_for_file(worker.log_file.parent / "begun")

    database.rows("select cancel_job(%s)", job_id)

    assert wait_for_status(database, job_id, "error")["error_class"] == "cancelled"


def test_a_pooler_that_dies_is_an_outage_like_another(
    database: Database, worker_process: WorkerProcesses, pooler: PgBouncer
) -> None:
    add_written(database)
    worker = start(worker_process, database, pooler)
    pooler.stop()
    job_id = database.enqueue()
    pooler.start()

    wait_for_status(database, job_id, "completed", timeout=30)
    assert worker.is_alive()


def test_nothing_of_a_worker_stays_in_a_session(
    database: Database, worker_process: WorkerProcesses, pooler: PgBouncer
) -> None:
    add_written(database)
    worker = start(worker_process, database, pooler)
    for _ in range(8):
        wait_for_status(database, database.enqueue(), "completed")

    # The sessions that it has used, as the pooler gives them to the next one.
    with psycopg.connect(pooler.dsn, autocommit=True, prepare_threshold=None) as conn:
        for _ in range(4):
            assert conn.execute("select count(*) from pg_prepared_statements").fetchone() == (0,)
            assert conn.execute("select count(*) from pg_listening_channels()").fetchone() == (0,)
            assert conn.execute("show synchronous_commit").fetchone() == ("on",)
    assert database.value("select count(*) from pg_locks where locktype = 'advisory'") == 0
    assert worker.is_alive()
