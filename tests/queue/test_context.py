"""What a handler does through its context: transactions, checkpoints, side connections, progress."""

import pytest

from tests.databases import Database
from tests.fault_tools import (
    SIGNPOSTS,
    add_written,
    attempts_of,
    take_away,
    wait_for_file,
    wait_for_status,
    written,
)
from tests.sessions import make_due
from tests.tcp_proxy import Proxy
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcess, WorkerProcesses

INSERT = '"insert into written values (%s, %s)", (job.id, '


def checkpoints(database: Database) -> list[tuple[int, object]]:
    rows = database.rows("select seq, data from job_checkpoint order by seq")
    return [(row["seq"], row["data"]) for row in rows]


def start_through(proxy: Proxy, database: Database, workers: WorkerProcesses, source: str) -> WorkerProcess:
    return workers.start(database, source, environ={"DATABASE_URL": proxy.dsn(database.dsn("worker_test"))})


@pytest.mark.parametrize("argument", ["", "checkpoint={'part': 1}"], ids=["plain", "with checkpoint"])
def test_a_transaction_of_a_lost_run_is_rolled_back_and_the_handler_stopped(
    database: Database, worker_process: WorkerProcesses, argument: str
) -> None:
    add_written(database)
    worker = worker_process.start(
        database,
        SIGNPOSTS
        + f"""
def handle(job, ctx):
    try:
        with ctx.transaction({argument}) as conn:
            conn.execute({INSERT} "lost"))
            reach("written")
            wait_for("go")
            time.sleep = None  # whatever comes after the block is not reached
        reach("after")
    except BaseException as error:
        reach("raised", repr(error))
        raise
""",
    )
    job_id = database.enqueue()
    folder = worker.log_file.parent
    wait_for_file(folder / "written")

    take_away(database, job_id)
    (folder / "go").touch()

    assert "JobStopped" in wait_for_file(folder / "raised")
    (ended,) = wait_until(lambda: worker.log_events("job ended"))
    assert ended["outcome"] == "lost_lease"
    assert not (folder / "after").exists()
    assert (written(database), checkpoints(database)) == ([], [])


def test_rows_and_checkpoint_are_committed_together(database: Database, worker_process: WorkerProcesses) -> None:
    add_written(database)
    worker_process.start(
        database,
        f"""
def handle(job, ctx):
    done = [point.data["part"] for point in ctx.checkpoints()]
    for part in range(len(done), 3):
        with ctx.transaction(checkpoint={{"part": part}}) as conn:
            conn.execute({INSERT} str(part)))
            if part == 1 and job.attempt == 1:
                raise ValueError("inside")
    return done
""",
    )
    job_id = database.enqueue()
    wait_for_status(database, job_id, "retry")

    assert written(database) == ["0"]
    assert checkpoints(database) == [(1, {"part": 0})]
    assert attempts_of(database, job_id)[0]["checkpoint"] == 1

    make_due(database, job_id)
    job = wait_for_status(database, job_id, "completed")
    assert job["result"] == [0]
    assert written(database) == ["0", "1", "2"]
    assert checkpoints(database) == []  # of no more use


CHECKPOINTS = """
def handle(job, ctx):
    for number in range(1, 4):
        ctx.checkpoint({"number": number})
    return [point.data["number"] for point in ctx.checkpoints()]
"""


@pytest.mark.parametrize("answered", [False, True], ids=["never arrived", "answer lost"])
def test_a_checkpoint_is_written_once_over_a_broken_connection(
    database: Database, worker_process: WorkerProcesses, answered: bool
) -> None:
    with Proxy(database.server.host, database.server.port) as proxy:
        start_through(proxy, database, worker_process, CHECKPOINTS)
        cut = proxy.cut_at("write_checkpoint", answered=answered)

        job_id = database.enqueue()
        job = wait_for_status(database, job_id, "completed")

    assert cut.happened.is_set()
    assert job["result"] == [1, 2, 3]
    assert attempts_of(database, job_id) == []


def test_a_commit_whose_answer_is_lost_is_not_repeated_by_the_next_run(
    database: Database, worker_process: WorkerProcesses
) -> None:
    add_written(database)
    source = f"""
def handle(job, ctx):
    done = len(ctx.checkpoints())
    if not done:
        with ctx.transaction(checkpoint=1) as conn:
            conn.execute({INSERT} "row"))
    return done
"""
    with Proxy(database.server.host, database.server.port) as proxy:
        start_through(proxy, database, worker_process, source)
        cut = proxy.cut_at("COMMIT", answered=True)
        job_id = database.enqueue()
        wait_for_status(database, job_id, "retry")
        make_due(database, job_id)
        job = wait_for_status(database, job_id, "completed")

    assert cut.happened.is_set()
    assert job["result"] == 1
    assert written(database) == ["row"]


DEAD_CONNECTION = """
def handle(job, ctx):
    ctx.checkpoint("first")
    with ctx.side_connection() as conn:
        conn.execute('''select pg_terminate_backend(pid) from pg_stat_activity
                         where datname = current_database() and application_name like '% work' ''')
    if job.payload["then"] == "checkpoint":
        ctx.checkpoint("second")
    elif job.payload["then"] == "transaction with checkpoint":
        with ctx.transaction(checkpoint="second") as conn:
            conn.execute("select 1")
    else:
        with ctx.transaction() as conn:
            conn.execute("select 1")
    return [point.data for point in ctx.checkpoints()]
"""


def test_a_connection_that_died_while_the_handler_worked_costs_nothing(
    database: Database, worker_process: WorkerProcesses
) -> None:
    worker_process.start(database, DEAD_CONNECTION)
    results = {
        "checkpoint": ["first", "second"],
        "transaction with checkpoint": ["first", "second"],
        "transaction": ["first"],
    }
    for then, result in results.items():
        job = wait_for_status(database, database.enqueue(payload={"then": then}), "completed", "retry")

        assert (job["status"], job["error_msg"], job["result"]) == ("completed", None, result)


def test_the_smaller_rules_of_a_context(database: Database, worker_process: WorkerProcesses) -> None:
    add_written(database)
    worker_process.start(
        database,
        f"""
import math, sidelinja_jobs

def raised(call):
    try:
        call()
    except Exception as error:
        return str(error)

def handle(job, ctx):
    seen = {{"should_stop": ctx.should_stop(), "none_yet": ctx.checkpoints()}}
    with ctx.transaction() as conn:
        seen["nested"] = raised(lambda: ctx.checkpoint(1))
        conn.execute({INSERT} "inside"))
    ctx.checkpoint({{"text": "a\\x00b\\ud800", "number": math.nan}})
    seen["cleaned"] = ctx.checkpoints()[0].data
    ctx.drop_checkpoints()
    ctx.checkpoint("again")
    seen["restarted"] = [(point.seq, point.data) for point in ctx.checkpoints()]
    with ctx.side_connection() as side, side.transaction():
        seen["foreign"] = raised(lambda: sidelinja_jobs.enqueue(side, "foreign_job", {{}}))
    try:
        with ctx.transaction() as conn, ctx.side_connection() as side:
            conn.execute({INSERT} "rolled back"))
            side.execute({INSERT} "survives"))
            raise KeyError
    except KeyError:
        pass
    return seen
""",
    )
    job = wait_for_status(database, database.enqueue(), "completed", "retry")

    seen = job["result"]
    assert job["status"] == "completed", job["error_msg"]
    assert (seen["should_stop"], seen["none_yet"]) == (False, [])
    assert seen["nested"] == "inside ctx.transaction, use its checkpoint argument"
    assert seen["cleaned"] == {"text": "a\ufffdb\ufffd", "number": None}
    assert seen["restarted"] == [[1, "again"]]
    assert "worker_test may not enqueue" in seen["foreign"]
    assert written(database) == ["inside", "survives"]


def test_a_statement_that_is_interrupted_ends_on_the_server_too(
    database: Database, worker_process: WorkerProcesses
) -> None:
    """Its locks would stand in the way of the next run."""
    worker = worker_process.start(
        database,
        """
def handle(job, ctx):
    with ctx.transaction() as conn:
        conn.execute("select pg_sleep(30)")
""",
    )
    job_id = database.enqueue()
    sleeping = "select 1 from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'"
    wait_until(lambda: database.rows(sleeping))

    worker.terminate()

    assert worker.wait(5) == 0
    assert database.job(job_id)["status"] == "pending"
    wait_until(lambda: not database.rows(sleeping), 3, what="the statement to end on the server")
