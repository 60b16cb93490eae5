"""Batches: claimed, settled and put back many at a time, and still each job stands for itself."""

from collections import Counter

import msgspec
import pytest

from sidelinja_jobs import queue
from tests.databases import Database
from tests.fault_tools import (
    add_written,
    attempts_of,
    statuses_of,
    take_away,
    wait_for_file,
    wait_for_status,
    written,
)
from tests.queue.batch_support import COMPLETED, NUMBERED, PATIENT, PLAIN, enqueue_numbers, start
from tests.sessions import worker_session
from tests.tcp_proxy import Proxy
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcesses

RESULT = msgspec.Raw(b'{"n":1}')


def test_of_many_completions_those_without_their_fence_write_nothing(database: Database) -> None:
    conn = worker_session(database)
    enqueued = [database.enqueue() for _ in range(100)]
    runs = queue.claim(conn, "test_job", "w1", 100)
    queue.write_checkpoint(conn, runs[0], {"part": 1}, 1)
    queue.write_checkpoint(conn, runs[1], {"part": 1}, 1)
    take_away(database, runs[1].id)
    database.rows("update job_queue set status = 'pending' where id = %s", runs[2].id)

    assert queue.complete_many(conn, runs, [RESULT] * 100) == {runs[1].id, runs[2].id} < set(enqueued)

    assert Counter(row["status"] for row in database.rows("select status from job_queue")) == {
        "completed": 98,
        "running": 1,
        "pending": 1,
    }
    assert database.rows("select job_id from job_checkpoint") == [{"job_id": runs[1].id}]
    assert database.value("select count(*) from job_event where new_status = 'completed'") == 98
    assert queue.complete_many(conn, runs, [RESULT] * 100) == {runs[1].id, runs[2].id}, "it knows what it has done"
    assert database.value("select count(*) from job_event where new_status = 'completed'") == 98


def test_a_worker_ends_no_batch_of_another_role(database: Database) -> None:
    conn = worker_session(database)
    for _ in range(3):
        database.enqueue()
    runs = queue.claim(conn, "test_job", "w1", 3)
    stranger = worker_session(database, role="worker_foreign", job_type="foreign_job", worker_id="w2")

    assert queue.complete_many(stranger, runs, [RESULT] * 3) == {run.id for run in runs}
    assert queue.release_many(stranger, runs, "x") == {}
    assert queue.release_many(conn, runs, "x") == {run.id: "pending" for run in runs}
    assert database.value("select count(*) from job_attempt where outcome = 'released' and not charged") == 3


def test_each_job_of_a_batch_gets_its_own_result_and_events(
    database: Database, worker_process: WorkerProcesses
) -> None:
    ids = enqueue_numbers(database, 100)
    worker = start(database, worker_process, PLAIN)
    wait_until(lambda: database.value(COMPLETED) == 100)

    jobs = [database.job(job_id) for job_id in ids]
    assert [job["result"] for job in jobs] == [{"number": number} for number in range(100)]
    assert all(job["progress"] == 1 and job["lease_until"] is None for job in jobs)
    assert {tuple(statuses_of(database, job_id)) for job_id in ids} == {("pending", "running", "completed")}
    worker.terminate()
    worker.wait()
    lines = [line for line in worker.log_events() if line["event"] in ("jobs ended", "job ended")]
    assert len(lines) < 20, "one line for what was settled together"
    assert sum(line.get("jobs", 1) for line in lines) == 100


def test_failures_of_a_batch_are_settled_alone(database: Database, worker_process: WorkerProcesses) -> None:
    ids = enqueue_numbers(database, 20, fails=7)
    start(database, worker_process, PLAIN)

    failed = wait_for_status(database, ids[7], "retry")
    wait_until(lambda: database.value(COMPLETED) == 19)

    assert (failed["error_class"], failed["error_msg"], failed["attempts"]) == ("ValueError", "not this one", 1)


def test_a_failing_write_takes_back_its_own_job_alone(database: Database, worker_process: WorkerProcesses) -> None:
    add_written(database)
    ids = enqueue_numbers(database, 20, fails=7)
    start(database, worker_process, NUMBERED)

    failed = wait_for_status(database, ids[7], "retry")
    wait_until(lambda: database.value(COMPLETED) == 19)

    assert failed["error_class"] == "DivisionByZero"
    assert written(database) == sorted(str(number) for number in range(20) if number != 7)


def test_a_run_that_was_lost_while_it_waited_for_the_others_writes_nothing(
    database: Database, worker_process: WorkerProcesses
) -> None:
    add_written(database)
    ids = enqueue_numbers(database, 12, waits=8)
    worker = start(database, worker_process, PATIENT + NUMBERED, lease_seconds=60)
    wait_for_file(worker.log_file.parent / "working")
    assert database.job(ids[5])["status"] == "running", "finished, and not settled yet: it has writes"

    take_away(database, ids[5])
    (worker.log_file.parent / "go").touch()
    wait_until(lambda: database.value(COMPLETED) == 11)

    assert written(database) == sorted(str(number) for number in range(12) if number != 5)
    assert database.job(ids[5])["status"] == "running"
    wait_until(lambda: worker.log_events("jobs ended"))
    lost = [line["job_id"] for line in worker.log_events("job ended") if line["outcome"] == "lost_lease"]
    assert lost == [str(ids[5])]


@pytest.mark.parametrize(("seconds", "transactions"), [(60, 2), (0, 12)])
def test_writes_share_a_transaction_for_so_long_and_no_longer(
    database: Database, worker_process: WorkerProcesses, seconds: int, transactions: int
) -> None:
    """The rows of its jobs are locked meanwhile. The first job of all never waits for others."""
    add_written(database)
    enqueue_numbers(database, 12)
    start(database, worker_process, f"{PATIENT}together.WRITES_SECONDS = {seconds}\n{NUMBERED}", lease_seconds=20)

    wait_until(lambda: database.value(COMPLETED) == 12)

    assert database.value("select count(distinct xid) from job_event where new_status = 'completed'") == transactions
    assert len(written(database)) == 12


def test_a_write_that_is_broken_off_takes_nothing_from_the_others(
    database: Database, worker_process: WorkerProcesses
) -> None:
    """Lost in the middle of its own statement: that connection can go on with nothing."""
    add_written(database)
    ids = enqueue_numbers(database, 12, sleeps=8)
    start(database, worker_process, PATIENT + NUMBERED)
    wait_until(lambda: database.rows("select 1 from pg_stat_activity where wait_event = 'PgSleep'"))

    take_away(database, ids[8])
    wait_until(lambda: database.value(COMPLETED) == 11)

    assert written(database) == sorted(str(number) for number in range(12) if number != 8)
    assert database.value("select count(*) from job_attempt where outcome = 'failed'") == 0


def test_what_is_finished_does_not_wait_for_a_slow_neighbour(
    database: Database, worker_process: WorkerProcesses
) -> None:
    ids = enqueue_numbers(database, 12, waits=8)
    worker = start(database, worker_process, PLAIN)
    wait_for_file(worker.log_file.parent / "working")

    wait_until(lambda: database.value(COMPLETED) == 8, what="the lease thread to settle what is finished")

    assert [database.job(job_id)["status"] for job_id in ids[8:]] == ["running"] * 4
    (worker.log_file.parent / "go").touch()
    wait_until(lambda: database.value(COMPLETED) == 12)
    assert [job_id for job_id in ids if attempts_of(database, job_id)] == []


def test_the_next_batch_is_claimed_ahead_while_the_first_one_is_worked(
    database: Database, worker_process: WorkerProcesses
) -> None:
    ids = enqueue_numbers(database, 60, waits=25)
    worker = start(database, worker_process, PLAIN, batch_size=30, lease_seconds=60)
    wait_for_file(worker.log_file.parent / "working")

    wait_until(lambda: {database.job(job_id)["status"] for job_id in ids[30:]} == {"running"})
    lease_until = database.job(ids[30])["lease_until"]
    database.rows("select pg_notify('job_cancel', worker_id) from worker")  # the next heartbeat comes at once
    wait_until(lambda: database.job(ids[30])["lease_until"] > lease_until, what="a heartbeat of what waits")
    (worker.log_file.parent / "go").touch()
    wait_until(lambda: database.value(COMPLETED) == 60)

    assert database.value("select count(distinct worker_id) from job_event where new_status = 'running'") == 1
    assert database.value("select count(*) from job_event where new_status = 'running'") == 60


def test_what_was_claimed_ahead_is_given_back_when_the_batch_before_takes_long(
    database: Database, worker_process: WorkerProcesses
) -> None:
    ids = enqueue_numbers(database, 15, waits=7)
    worker = start(database, worker_process, PLAIN, batch_size=5)
    wait_for_file(worker.log_file.parent / "working")

    wait_until(lambda: {database.job(job_id)["status"] for job_id in ids[10:]} == {"pending"})
    other = worker_process.start(database, "def handle(job, ctx): return 'other'", job_type="batch_job")
    jobs = [wait_for_status(database, job_id, "completed") for job_id in ids[10:]]

    assert [(job["result"], job["attempts"]) for job in jobs] == [("other", 0)] * 5
    assert other.is_alive()


def test_what_could_not_be_given_back_is_found_among_what_nobody_holds(
    database: Database, worker_process: WorkerProcesses
) -> None:
    ids = enqueue_numbers(database, 15, waits=7)
    with Proxy(database.server.host, database.server.port) as proxy:
        cut = proxy.cut_at("release_jobs", answered=False)
        environ = {"DATABASE_URL": proxy.dsn(database.dsn("worker_test")), "DB_TIMEOUT_SECONDS": "0.5"}
        start(database, worker_process, PLAIN, environ, batch_size=5, lease_seconds=6)

        wait_until(cut.happened.is_set, what="what was claimed ahead to be given back")
        wait_until(lambda: {database.job(job_id)["status"] for job_id in ids[10:]} == {"pending"})

    past = [attempt for job_id in ids[10:] for attempt in attempts_of(database, job_id)]
    assert [(attempt["outcome"], attempt["charged"]) for attempt in past] == [("released", False)] * 5


def test_what_a_batch_does_not_come_to_within_a_lease_is_put_back(
    database: Database, worker_process: WorkerProcesses
) -> None:
    """Its first job takes longer than anything known when it was claimed: others may take the rest."""
    ids = enqueue_numbers(database, 5)
    slow = "import time\ndef handle(job, ctx): time.sleep(2.2 if job.payload['number'] == 0 else 0)"
    start(database, worker_process, slow)

    wait_until(lambda: database.value(COMPLETED) == 5)

    assert attempts_of(database, ids[0]) == []
    past = [attempt for job_id in ids for attempt in attempts_of(database, job_id)]
    assert {(attempt["outcome"], attempt["charged"], attempt["error_msg"]) for attempt in past} == {
        ("released", False, "claimed in a batch that takes longer than a lease")
    }
    assert len(past) == 4


@pytest.mark.parametrize("cut_at", ["release_jobs", "nothing"], ids=["over a broken connection", "in one call"])
def test_sigterm_puts_back_a_batch_and_what_was_claimed_ahead_at_no_cost(
    database: Database, worker_process: WorkerProcesses, cut_at: str
) -> None:
    ids = enqueue_numbers(database, 60, waits=25)
    with Proxy(database.server.host, database.server.port) as proxy:
        environ = {"DATABASE_URL": proxy.dsn(database.dsn("worker_test"))}
        worker = start(database, worker_process, PLAIN, environ, lease_seconds=60)
        wait_for_file(worker.log_file.parent / "working")
        wait_until(lambda: database.value(COMPLETED) == 25)

        proxy.cut_at(cut_at, answered=False)
        worker.terminate()

        assert worker.wait() == 0
    jobs = [database.job(job_id) for job_id in ids]
    assert [job["status"] for job in jobs] == ["completed"] * 25 + ["pending"] * 35
    assert {job["attempts"] for job in jobs} == {0}
    assert database.value("select count(*) from job_attempt where charged") == 0
    assert database.rows("select 1 from worker") == []
