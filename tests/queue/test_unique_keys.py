"""Unique keys: one waiting or running job per type and key, and one more after a running one when asked."""

import contextlib
import threading
from collections.abc import Callable
from typing import Any
from uuid import UUID

import msgspec
import psycopg
import pytest

from sidelinja_jobs import Enqueued, enqueue, queue
from sidelinja_jobs.errors import RefusedError
from sidelinja_jobs.models import Claim
from tests.databases import Database
from tests.sessions import claim_one, expire, make_due, refused, run_in_threads, worker_session


def ask(database: Database, number: int, key: str = "k", job_type: str = "test_job") -> Enqueued:
    """Enqueues a job under a key, from a connection of its own, as the producer."""
    with psycopg.connect(database.dsn("producer"), autocommit=True) as conn:
        return enqueue(conn, job_type, {"number": number}, unique_key=key)


def jobs(database: Database) -> list[tuple[str, int]]:
    """Status and number of all jobs, oldest first."""
    rows = database.rows("select status, payload ->> 'number' as number from job_queue order by created_at, id")
    return [(row["status"], int(row["number"])) for row in rows]


def test_a_key_that_waits_returns_the_job_that_holds_it(database: Database) -> None:
    first = ask(database, 1)
    again = ask(database, 2)
    database.rows("update job_queue set status = 'retry', attempts = 1, scheduled_for = now() + interval '1 h'")
    in_retry = ask(database, 3)

    assert first.outcome == "created"
    assert (again, in_retry) == (Enqueued(first.id, "exists"), Enqueued(first.id, "exists"))
    assert jobs(database) == [("retry", 1)]


def test_keys_are_apart_by_type_and_by_name(database: Database) -> None:
    made = [
        ask(database, 1),
        ask(database, 2, job_type="other_job"),
        ask(database, 3, key="K"),
        ask(database, 4, key="k "),
    ]

    assert [enqueued.outcome for enqueued in made] == ["created"] * 4
    assert len({enqueued.id for enqueued in made}) == 4


def test_a_key_is_free_again_when_its_job_has_ended(database: Database) -> None:
    seen: list[UUID] = []
    for status in ("completed", "error"):
        seen.append(ask(database, len(seen)).id)
        database.rows(f"update job_queue set status = '{status}'")
    last = ask(database, 9)

    assert last.outcome == "created"
    assert len({*seen, last.id}) == 3


def test_the_key_of_a_dead_worker_is_free_after_its_job_ended(database: Database) -> None:
    conn = worker_session(database)
    first = ask(database, 1)
    database.rows("update job_queue set max_attempts = 1")
    claim_one(conn)
    expire(database, first.id)

    queue.sweep(conn)

    assert ask(database, 2).outcome == "created"


def by_hand(status: str) -> Callable[[Database, Any, Claim], object]:
    """Ends the job with the plain SQL of a foreign program."""
    return lambda database, conn, run: database.connect("plain").execute(
        "update job_queue set status = %s, completed_at = now() where id = %s", (status, run.id)
    )


def fail_then_cancel(database: Database, conn: Any, run: Claim) -> None:
    queue.fail(conn, run, "X", "x")
    database.rows("select cancel_job(%s)", run.id)


def cancel_then_release(database: Database, conn: Any, run: Claim) -> None:
    database.rows("select cancel_job(%s)", run.id)
    queue.release(conn, run, "cancelled")


def die_for_good(database: Database, conn: Any, run: Claim) -> None:
    database.rows("update job_queue set max_attempts = 1 where id = %s", run.id)
    expire(database, run.id)
    queue.sweep(conn)


ENDS: dict[str, tuple[Callable[[Database, Any, Claim], object], str]] = {
    "completed": (lambda database, conn, run: queue.complete(conn, run, {}), "completed"),
    "failed for good": (lambda database, conn, run: queue.fail(conn, run, "X", "x", permanent=True), "error"),
    "cancelled while running": (cancel_then_release, "error"),
    "cancelled in retry": (fail_then_cancel, "error"),
    "died for good": (die_for_good, "error"),
    "completed by a foreign program": (by_hand("completed"), "completed"),
    "put into error by hand": (by_hand("error"), "error"),
}


@pytest.mark.parametrize("end", list(ENDS))
def test_a_key_that_runs_is_followed_by_one_more_job_with_the_newest_payload(database: Database, end: str) -> None:
    conn = worker_session(database)
    first = ask(database, 1)
    run = claim_one(conn)
    asked = [ask(database, number) for number in (2, 3, 4)]
    assert asked == [Enqueued(first.id, "rerun")] * 3
    finish, status = ENDS[end]

    finish(database, conn, run)

    assert jobs(database) == [(status, 1), ("pending", 4)]
    follower = claim_one(conn)
    queue.complete(conn, follower, {})
    assert jobs(database) == [(status, 1), ("completed", 4)]
    assert database.value("select unique_key from job_queue where id = %s", follower.id) == "k"


def test_a_rerun_waits_until_the_job_has_really_ended(database: Database) -> None:
    conn = worker_session(database)
    first = ask(database, 1)
    run = claim_one(conn)
    ask(database, 2)
    queue.fail(conn, run, "X", "x")
    assert jobs(database) == [("retry", 1)]
    make_due(database, first.id)
    queue.release(conn, claim_one(conn), "SIGTERM")
    assert jobs(database) == [("retry", 1)]

    queue.complete(conn, claim_one(conn), {})

    assert jobs(database) == [("completed", 1), ("pending", 2)]


def test_a_rerun_takes_over_rank_and_attempts_but_no_history(database: Database) -> None:
    conn = worker_session(database)
    with psycopg.connect(database.dsn("producer"), autocommit=True) as producer:
        enqueue(producer, "test_job", {"number": 1}, priority=7, max_attempts=9, unique_key="k")
    queue.fail(conn, claim_one(conn), "X", "x", retry_after_seconds=0)
    run = claim_one(conn)
    ask(database, 2)

    queue.complete(conn, run, {})

    follower = database.row("select * from job_queue where status = 'pending'")
    assert (follower["priority"], follower["max_attempts"], follower["attempts"]) == (7, 9, 0)
    assert (follower["rerun_requested_at"], follower["error_msg"], follower["result"]) == (None, None, None)


def test_a_key_that_was_asked_for_in_a_transaction_that_fails_has_no_rerun(database: Database) -> None:
    conn = worker_session(database)
    ask(database, 1)
    run = claim_one(conn)
    producer = database.connect("producer", autocommit=False)
    enqueue(producer, "test_job", {"number": 2}, unique_key="k")
    producer.rollback()

    queue.complete(conn, run, {})

    assert jobs(database) == [("completed", 1)]


def test_a_caller_with_an_old_snapshot_gets_an_answer_or_an_error_but_never_hangs(database: Database) -> None:
    """Repeatable read: what the caller sees of the key is older than what the index says."""
    conn = worker_session(database)
    ask(database, 1)
    run = claim_one(conn)
    for change in (
        lambda: queue.fail(conn, run, "X", "x"),
        lambda: database.rows("update job_queue set status = 'completed'"),
        lambda: ask(database, 2),
    ):
        with psycopg.connect(database.dsn("producer"), options="-c statement_timeout=5s") as caller:
            caller.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            caller.execute("select id from job_queue")
            change()
            with contextlib.suppress(psycopg.errors.SerializationFailure):
                assert enqueue(caller, "test_job", {}, unique_key="k").outcome == "created"
            caller.rollback()


def test_eight_enqueuers_at_once_make_one_job(database: Database) -> None:
    rounds = 20
    outcomes: list[list[str]] = [[] for _ in range(rounds)]
    start = threading.Barrier(8)

    def work(number: int) -> None:
        conn = database.connect("producer")
        for turn in range(rounds):
            start.wait(30)
            made = enqueue(conn, "test_job", {"number": number}, unique_key=f"k{turn}")
            outcomes[turn].append(made.outcome)

    run_in_threads(work, 8)

    assert [sorted(made) for made in outcomes] == [["created"] + ["exists"] * 7] * rounds
    assert database.value("select count(*) from job_queue") == rounds


def test_a_rerun_that_was_promised_while_the_worker_ran_on_happens_once(database: Database) -> None:
    promised: list[int] = []
    done: list[int] = []
    asked = threading.Event()

    def work(number: int) -> None:
        if number == 0:
            producer = database.connect("producer")
            for turn in range(400):
                made = enqueue(producer, "test_job", {"number": turn}, unique_key="k")
                if made.outcome in ("created", "rerun"):
                    promised.append(turn)
            asked.set()
            return
        conn = worker_session(database)
        while True:
            last_look = asked.is_set()
            claims = queue.claim(conn, "test_job", "w1", 1)
            for run in claims:
                done.append(msgspec.json.decode(run.payload_text or "")["number"])
                queue.complete(conn, run, {})
            if last_look and not claims:
                return

    run_in_threads(work, 2)

    assert done == sorted(set(done))
    assert set(done) <= set(promised)
    assert done[-1] == promised[-1]
    assert sorted(jobs(database)) == [("completed", number) for number in done]


def test_a_bare_insert_of_a_key_that_is_taken_is_refused(database: Database) -> None:
    ask(database, 1)

    with refused("23505", "job_queue_unique_key"):
        database.connect("plain").execute(
            "insert into job_queue (job_type, payload, unique_key) values ('test_job', '{}', 'k')"
        )


def test_a_key_that_the_database_cannot_hold_is_refused_before_it_gets_there(database: Database) -> None:
    conn = database.connect("producer", autocommit=False)

    for key in ("", "k" * 501, "a\x00b", "a\ud800b"):
        with pytest.raises(RefusedError, match="unique_key must have 1 to 500 characters"):
            enqueue(conn, "test_job", {}, unique_key=key)
    assert enqueue(conn, "test_job", {}, unique_key="æ" * 500).outcome == "created"  # the transaction is still good
