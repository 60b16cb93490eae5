"""The server goes away, comes back, freezes or loses power in the middle of a job."""

import contextlib
import os
import signal
from collections.abc import Iterator
from datetime import datetime

import psutil
import psycopg
import pytest

from demo.embedded_postgres import EmbeddedPostgres
from tests.databases import Database, Server, embedded_server
from tests.fault_tools import (
    SIGNPOSTS,
    add_written,
    attempts_of,
    statuses_of,
    wait_for_file,
    wait_for_status,
    written,
)
from tests.waiting import stays, wait_until
from tests.worker_processes import WorkerProcesses

# Works until "go"; when it is stopped it says when, and tries to write all the same.
WORKING = (
    SIGNPOSTS
    + """
import datetime

def handle(job, ctx):
    ctx.on_complete(lambda conn: conn.execute("insert into written values (%s, 'row')", (job.id,)))
    try:
        reach("working")
        if not os.path.exists("stopped"):
            wait_for("go")
    except BaseException as error:
        reach("stopped", datetime.datetime.now(datetime.UTC).isoformat())
        raise
    return job.attempt
"""
)


@pytest.fixture(scope="module")
def own_postgres() -> Iterator[EmbeddedPostgres]:
    """One server for these tests, each of which leaves it running."""
    with embedded_server() as postgres:
        yield postgres


@pytest.fixture(scope="module")
def own_server(own_postgres: EmbeddedPostgres) -> Server:
    server = Server(own_postgres.dsn())
    server.prepare()
    return server


@pytest.fixture
def own_database(own_postgres: EmbeddedPostgres, own_server: Server) -> Iterator[Database]:
    if not own_postgres.is_running():
        own_postgres.start()
    database = own_server.create_database()
    yield database
    database.close()


def thaw(postgres: EmbeddedPostgres) -> None:
    """Again where a backend has ended while the others were woken."""
    for _ in range(20):
        with contextlib.suppress(psutil.NoSuchProcess):
            postgres.thaw()
            return


def test_a_job_lives_through_a_restart_of_the_server_within_its_lease(
    own_postgres: EmbeddedPostgres, own_database: Database, worker_process: WorkerProcesses
) -> None:
    own_database.add_job_type("test_job", lease_seconds=8)
    add_written(own_database)
    worker = worker_process.start(own_database, WORKING)
    job_id = own_database.enqueue()
    wait_for_file(worker.log_file.parent / "working")
    token = own_database.job(job_id)["lease_token"]

    own_database.close()
    own_postgres.restart()
    beats = own_database.job(job_id)["lease_until"]
    wait_until(lambda: own_database.job(job_id)["lease_until"] > beats, what="a heartbeat after the restart")
    assert own_database.job(job_id)["lease_token"] == token
    (worker.log_file.parent / "go").touch()

    job = wait_for_status(own_database, job_id, "completed")
    assert (job["result"], job["attempts"], attempts_of(own_database, job_id)) == (1, 0, [])
    assert statuses_of(own_database, job_id) == ["pending", "running", "completed"]
    assert written(own_database) == ["row"]
    assert not (worker.log_file.parent / "stopped").exists()


@pytest.mark.parametrize("frozen", [False, True], ids=["stopped", "frozen"])
def test_a_handler_is_stopped_before_a_lease_that_cannot_be_renewed_ends(
    own_postgres: EmbeddedPostgres, own_database: Database, worker_process: WorkerProcesses, frozen: bool
) -> None:
    own_database.add_job_type("test_job", backoff_base_seconds=1)
    add_written(own_database)
    worker = worker_process.start(own_database, WORKING, environ={"DB_TIMEOUT_SECONDS": "1"})
    job_id = own_database.enqueue()
    wait_for_file(worker.log_file.parent / "working")
    lease_until = own_database.job(job_id)["lease_until"]

    if frozen:
        own_postgres.freeze()
    else:
        own_database.close()
        own_postgres.stop()
    try:
        stopped_at = datetime.fromisoformat(wait_for_file(worker.log_file.parent / "stopped"))
    finally:
        thaw(own_postgres) if frozen else own_postgres.start()
    # A heartbeat may have gone through after the row was read, so the lease may end half a second later than it said.
    assert (lease_until - stopped_at).total_seconds() > -0.5
    if not frozen:
        assert stopped_at < lease_until

    job = wait_for_status(own_database, job_id, "completed", timeout=15)
    (past,) = attempts_of(own_database, job_id)
    # Whoever is there first: a sweep, or the worker itself, which puts back what it no longer holds.
    assert (past["outcome"], past["charged"], job["result"]) in [("lost", True, 2), ("released", False, 1)]
    assert written(own_database) == ["row"]
    assert worker.is_alive()
    assert [line["outcome"] for line in worker.log_events("job ended")] == ["lost_lease", "completed"]


def test_a_heartbeat_that_hangs_in_the_server_is_given_up_and_the_job_lives(
    own_postgres: EmbeddedPostgres, own_database: Database, worker_process: WorkerProcesses
) -> None:
    add_written(own_database)
    worker = worker_process.start(own_database, WORKING)
    job_id = own_database.enqueue()
    wait_for_file(worker.log_file.parent / "working")
    (backend,) = wait_until(
        lambda: own_database.rows("select pid from pg_stat_activity where application_name = 'jobbko test_job lease'")
    )

    os.kill(backend["pid"], signal.SIGSTOP)
    try:
        wait_until(lambda: "did not answer" in worker.log_text(), what="the heartbeat to be given up")
        frozen_lease = own_database.job(job_id)["lease_until"]
        wait_until(lambda: own_database.job(job_id)["lease_until"] > frozen_lease)
        (worker.log_file.parent / "go").touch()
        job = wait_for_status(own_database, job_id, "completed")
    finally:
        os.kill(backend["pid"], signal.SIGCONT)

    assert (job["result"], attempts_of(own_database, job_id)) == (1, [])


def test_a_crash_of_the_server_right_after_the_claim_leaves_one_result(
    own_postgres: EmbeddedPostgres, own_database: Database, worker_process: WorkerProcesses
) -> None:
    """The claim commits asynchronously: a crash may undo it while the handler runs already."""
    own_database.add_job_type("test_job", backoff_base_seconds=1)
    add_written(own_database)
    workers = [worker_process.start(own_database, WORKING) for _ in range(2)]
    job_id = own_database.enqueue()
    paths = [worker.log_file.parent / "working" for worker in workers]
    wait_until(lambda: any(path.exists() for path in paths), every=0.002)

    own_postgres.kill()
    own_database.close()
    own_postgres.start()
    for worker in workers:
        (worker.log_file.parent / "go").touch()

    wait_for_status(own_database, job_id, "completed", timeout=15)
    assert written(own_database) == ["row"]
    assert statuses_of(own_database, job_id).count("completed") == 1
    wait_until(lambda: any(worker.log_events("job ended") for worker in workers))
    assert all(worker.is_alive() for worker in workers)


def test_a_checkpoint_survives_a_restart_of_the_server(
    own_postgres: EmbeddedPostgres, own_database: Database, worker_process: WorkerProcesses
) -> None:
    own_database.add_job_type("patient_job", lease_seconds=8)
    worker = worker_process.start(
        own_database,
        SIGNPOSTS
        + """
def handle(job, ctx):
    ctx.checkpoint("before")
    reach("ready")
    wait_for("go")
    ctx.checkpoint("after")
    return [point.data for point in ctx.checkpoints()]
""",
        job_type="patient_job",
    )
    job_id = own_database.enqueue("patient_job")
    wait_for_file(worker.log_file.parent / "ready")

    own_database.close()
    own_postgres.stop()
    (worker.log_file.parent / "go").touch()
    wait_until(lambda: worker.log_events("database not reachable, trying again"))
    own_postgres.start()

    job = wait_for_status(own_database, job_id, "completed")
    assert job["result"] == ["before", "after"]
    assert (job["attempts"], attempts_of(own_database, job_id)) == (0, [])


def test_a_read_only_server_is_waited_out(database: Database, worker_process: WorkerProcesses) -> None:
    """As after a failover to a standby that is not promoted yet, in the middle of a job too."""
    handler = SIGNPOSTS + "def handle(job, ctx):\n    reach('working')\n    wait_for('go')"
    worker = worker_process.start(database, handler)
    job_id = database.enqueue()
    wait_for_file(worker.log_file.parent / "working")

    with psycopg.connect(database.dsn(), autocommit=True) as conn:
        conn.execute("set default_transaction_read_only = off")
        conn.execute(f"alter database {database.name} set default_transaction_read_only = on")
        terminate = """select pg_terminate_backend(pid) from pg_stat_activity
                        where datname = current_database() and application_name like 'jobbko %'"""
        conn.execute(terminate)
        (worker.log_file.parent / "go").touch()
        wait_until(lambda: "read-only" in worker.log_text(), what="the worker to notice")
        stays(worker.is_alive, 0.5)
        conn.execute(f"alter database {database.name} reset default_transaction_read_only")
        conn.execute(terminate)

    assert wait_for_status(database, job_id, "completed", timeout=12)
    assert worker.is_alive()
