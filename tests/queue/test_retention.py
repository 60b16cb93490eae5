"""Retention: what is deleted, what stays, and that nobody waits for it."""

from datetime import timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID, uuid4

import pytest

from sidelinja_jobs import queue
from tests.databases import Database
from tests.queue.sink_session import Sink
from tests.sessions import claim_one, expire, refused, run_in_threads, worker_session


def ended(database: Database, days: float | None, status: str = "completed", job_type: str = "test_job",
          **columns: Any) -> UUID:  # fmt: skip
    """A job that ended so many days ago; None: it does not say when, and was enqueued 50 days ago."""
    now = database.value("select now()")
    then = None if days is None else now - timedelta(days=days)
    created = now - timedelta(days=50 if days is None else days)
    return database.enqueue(job_type, status=status, completed_at=then, created_at=created, **columns)


def rules(database: Database, completed: int | None, error: int | None, job_type: str = "test_job") -> None:
    database.rows("select set_job_retention(%s, %s, %s)", job_type, completed, error)


def prune(database: Database, limit: int = 1000) -> int:
    """A look, however lately there was another one."""
    database.rows("update retention set next_at = now(), next_calls_at = now()")
    count: int = database.value("select prune(%s)", limit)
    return count


def ids(database: Database) -> set[UUID]:
    return {row["id"] for row in database.rows("select id from job_queue")}


def test_ended_jobs_go_by_the_rule_of_their_type_and_status(database: Database) -> None:
    rules(database, 30, 40)
    gone = {
        ended(database, 31),
        ended(database, 41, "error", error_class="OSError"),
        ended(database, 41, "error", error_class="cancelled"),
        ended(database, None),
        ended(database, None, "error"),
    }
    kept = {
        ended(database, 29),
        ended(database, 39, "error"),
        ended(database, 31, "error", error_class="cancelled"),
        ended(database, 5000, job_type="other_job"),
        ended(database, 5000, job_type="type_without_a_row"),
    }
    for status in ("pending", "retry", "running"):
        kept.add(ended(database, 5000, status))  # whatever its columns say, it has not ended

    assert prune(database) == len(gone)
    assert ids(database) == kept


def test_no_type_of_ours_but_the_statistics_loses_anything_by_default(database: Database) -> None:
    rows = database.rows("select * from retention_rules()")
    days = {row["job_type"]: (row["keep_completed_days"], row["keep_error_days"]) for row in rows}

    assert {name: kept for name, kept in days.items() if kept != (0, 0)} == {"stats_parse": (30, 90)}


def test_what_an_operator_sets_outlives_migrate_and_may_be_taken_back(database: Database) -> None:
    database.add_job_type("test_job", keep_completed_days=7, keep_error_days=8)

    def rule() -> tuple[int, int, bool]:
        row = database.row("select * from retention_rules() where job_type = 'test_job'")
        return row["keep_completed_days"], row["keep_error_days"], row["is_own"]

    assert rule() == (7, 8, False)
    rules(database, 0, None)
    database.add_job_type("test_job", keep_completed_days=9, keep_error_days=10)  # as migrate does at each start
    assert rule() == (0, 10, True)
    rules(database, None, None)
    assert rule() == (9, 10, False)
    entries = database.rows("select action, detail from audit_entry order by id")
    assert entries[0] == {"action": "retention.type", "detail": {"keep_completed_days": 0}}


def test_a_job_takes_its_history_with_it_and_its_events_and_children_stay(database: Database) -> None:
    rules(database, 1, 1)
    conn = worker_session(database)
    job_id = database.enqueue(max_attempts=1)
    run = claim_one(conn)
    queue.write_checkpoint(conn, run, {"part": 1}, 1)
    queue.fail(conn, run, "OSError", "no")
    child = database.enqueue("other_job", parent_id=job_id)
    database.rows("update job_queue set completed_at = now() - interval '2 days' where id = %s", job_id)

    prune(database)

    assert ids(database) == {child}
    assert database.job(child)["parent_id"] == job_id
    for table in ("job_attempt", "job_checkpoint"):
        assert database.value(f"select count(*) from {table}") == 0
    assert database.value("select count(*) from job_event where job_id = %s", job_id) == 3


def test_a_look_deletes_so_many_and_the_next_sweep_goes_on(database: Database) -> None:
    rules(database, 1, 1)
    rules(database, 1, 1, "other_job")
    for job_type in ("test_job", "other_job"):
        database.rows(
            "insert into job_queue (job_type, payload, status, completed_at)"
            " select %s, '{}', 'completed', now() - interval '9 days' from generate_series(1, 1500)",
            job_type,
        )
    conn = worker_session(database)

    counts = [3000]
    while counts[-1]:
        assert database.value("select next_at < now() from retention")
        queue.sweep(conn)
        counts.append(database.value("select count(*) from job_queue"))

    steps = [before - after for before, after in pairwise(counts)]
    assert all(0 < step <= 1000 for step in steps)  # fewer where half a second is over sooner
    queue.sweep(conn)
    assert database.value("select next_at > now() + interval '30 seconds' from retention")


def test_looks_are_a_minute_apart_over_all_workers(database: Database) -> None:
    rules(database, 1, 1)
    ended(database, 9)
    assert database.value("select prune()") == 1
    ended(database, 9)

    assert [database.value("select pruned from sweep_jobs()") for _ in range(3)] == [0, 0, 0]


def test_one_look_at_a_time_and_nobody_waits_for_it(database: Database) -> None:
    """While one deletes, others sweep, claim, enqueue and retry as if it were not there."""
    rules(database, 1, 1)
    doomed = ended(database, 9, "error")
    busy, conn = database.connect(autocommit=False), worker_session(database)
    conn.execute("set lock_timeout = '1s'")
    assert busy.execute("select prune()").fetchone() == (1,)

    database.enqueue()
    assert queue.sweep(conn)["rescued"] == 0
    assert claim_one(conn)
    other = ended(database, 9)
    assert database.value("select prune()") == 0
    busy.commit()
    assert {doomed, other} & ids(database) == {other}


def test_a_job_that_someone_holds_is_left_for_the_next_time(database: Database) -> None:
    rules(database, 1, 1)
    held, free = ended(database, 9, "error"), ended(database, 9, "error")
    operator = database.connect("operator", autocommit=False)
    operator.execute("select retry_job(%s)", (held,))

    assert prune(database) == 1
    operator.commit()
    assert prune(database) == 0
    assert {held, free} & ids(database) == {held}
    assert database.job(held)["status"] == "pending"


def test_retention_that_fails_does_not_keep_the_sweep_from_its_work(database: Database) -> None:
    rules(database, 1, 1)
    ended(database, 9)
    conn = worker_session(database)
    job_id = database.enqueue()
    claim_one(conn)
    expire(database, job_id)
    database.rows("create function refuse() returns trigger language plpgsql as 'begin raise ''no''; end'")
    database.rows("create trigger refuse before delete on job_queue for each row execute function refuse()")

    assert queue.sweep(conn)["rescued"] == 1
    assert database.job(job_id)["status"] == "retry"


def test_old_events_go_but_not_before_every_enabled_sink_has_passed_them(database: Database) -> None:
    sink = Sink(database)
    old, waiting, parked, unread = (database.enqueue() for _ in range(4))
    database.rows("update job_event set at = now() - interval '91 days'")
    events = {event["job_id"]: event for event in sink.next()}
    sink.record([events[old], events[waiting], events[parked]], "delivered")
    for job_id, state in ((waiting, None), (parked, "now()")):
        database.rows(
            f"insert into event_delivery (event_id, sink, job_id, parked_at) "
            f" values (%s, 'test', %s, {state or 'null'})",
            events[job_id]["event_id"],
            job_id,
        )
    database.enqueue()  # young

    def left() -> set[UUID]:
        return {
            row["job_id"] for row in database.rows("select job_id from job_event where at < now() - interval '1 h'")
        }

    prune(database)
    assert left() == {waiting, unread}
    database.rows("update event_sink set disabled_at = now()")
    prune(database)
    assert left() == set()
    assert database.value("select count(*) from job_event") == 1


def call(database: Database, job_id: UUID, days: int, state: str = "received") -> UUID:
    """A call of so many UTC days ago."""
    made: UUID = database.value(
        "insert into llm_call (job_id, job_type, lease_token, step, request_hash, model, reserved_usd, state, day)"
        " values (%s, 't', gen_random_uuid(), 's', %s, 'm', 1, %s, (now() at time zone 'UTC')::date - %s) returning id",
        job_id, uuid4().hex * 2, state, days,
    )  # fmt: skip
    return made


def test_calls_of_deleted_jobs_go_and_those_of_kept_ones_and_of_the_budgets_days_stay(database: Database) -> None:
    job_id, nobody = ended(database, 500), uuid4()
    gone = {call(database, nobody, 402), call(database, nobody, 500, "unknown")}
    kept = {call(database, job_id, 500), call(database, nobody, 500, "sent")}
    kept |= {call(database, nobody, days) for days in (0, 1, 300)}

    assert prune(database) == len(gone)
    assert {row["id"] for row in database.rows("select id from llm_call")} == kept
    database.rows("select set_retention(p_keep_call_days => 2)")
    prune(database)
    assert database.value("select count(*) from llm_call where day >= (now() at time zone 'UTC')::date - 1") == 2
    for days in (1, -1, 36501):
        with refused("JQ002"):
            database.rows("select set_retention(p_keep_call_days => %s)", days)


def test_audit_and_sessions_go_by_rules_of_their_own(database: Database) -> None:
    database.rows("select put_account('kari', 'operator')")
    for hours in (-1, 1):
        database.rows(
            "insert into admin_session (token_hash, account, expires_at)"
            " values (%s, 'kari', now() + make_interval(hours => %s))",
            uuid4().bytes * 2, hours,
        )  # fmt: skip
    database.rows("update audit_entry set at = now() - interval '731 days'")
    database.rows("select put_account('ola', 'viewer')")

    prune(database)

    assert database.value("select count(*) from admin_session where expires_at < now()") == 0
    assert database.value("select count(*) from admin_session") == 1
    assert [row["subject"] for row in database.rows("select subject from audit_entry")] == ["ola"]
    database.rows("select set_retention(0, 0, 0)")
    database.rows("update audit_entry set at = now() - interval '9999 days'")
    assert prune(database) == 0


def test_those_who_lock_many_rows_at_once_never_wait_for_each_other_in_a_circle(database: Database) -> None:
    """Retention, bulk retry, and workers that claim, sweep and complete."""
    rules(database, 1, 1)
    workers = {number: worker_session(database, worker_id=f"w{number}") for number in (2, 3)}
    operator, owner = database.connect("operator"), database.connect()
    database.rows("insert into job_queue (job_type, payload) select 'test_job', '{}' from generate_series(1, 400)")
    database.rows(
        "insert into job_queue (job_type, payload, status, completed_at)"
        " select 'test_job', '{}', 'error', now() - interval '9 days' from generate_series(1, 600)"
    )

    def work(number: int) -> None:
        for _ in range(12):
            if number == 0:
                failed = [
                    row[0] for row in operator.execute("select id from job_queue where status = 'error' limit 50")
                ]
                operator.execute("select * from act_on_jobs('retry', %s, '{error}')", (failed,))
            elif number == 1:
                owner.execute("update retention set next_at = now()")
                owner.execute("select prune(100)")
            else:
                runs = queue.claim(workers[number], "test_job", f"w{number}", 20)
                queue.sweep(workers[number])
                for run in runs:
                    queue.complete(workers[number], run, "{}")

    run_in_threads(work, 4)

    assert database.value("select deadlocks from pg_stat_database where datname = current_database()") == 0


@pytest.mark.parametrize("role", ["worker_test", "producer", "plain", "reader", "metrics"])
def test_only_an_operator_changes_the_rules_and_nobody_prunes_by_hand(database: Database, role: str) -> None:
    conn = database.connect(role)
    for statement in ("set_job_retention('test_job', 1, 1)", "set_retention(1, 1, 1)", "prune()", "prune_jobs()"):
        with refused("42501"):
            conn.execute(f"select {statement}")


def test_days_that_are_impossible_are_refused(database: Database) -> None:
    for days in (-1, 36501):
        with refused("JQ002", "expected 0"):
            rules(database, days, 0)
