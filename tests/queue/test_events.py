"""job_event: one row per change of status, with who did it. Notifications: only when someone sleeps."""

from collections.abc import Callable
from typing import Any

import psycopg

from sidelinja_jobs import queue
from tests.databases import Database
from tests.sessions import claim_one, expire, make_due, worker_session


def events(database: Database) -> list[tuple[Any, ...]]:
    """Old status, new status and actor of every event, in order."""
    return [
        (row["old_status"], row["new_status"], row["actor"])
        for row in database.rows("select old_status, new_status, actor from job_event order by id")
    ]


class Listener:
    """Counts the notifications that any role may hear."""

    def __init__(self, database: Database) -> None:
        self._conn = database.connect("reader")
        self._probe = database.connect()
        self._conn.execute("listen job_ready")
        self._conn.execute("listen job_cancel")

    def heard(self) -> list[tuple[str, str]]:
        """Channel and payload of all since the last time; a mark sent behind them tells that none is on its way."""
        self._probe.execute("notify job_ready, 'mark'")
        found = []
        for notice in self._conn.notifies(timeout=10):
            if notice.payload == "mark":
                return found
            found.append((notice.channel, notice.payload))
        raise AssertionError("the mark never came")


def test_the_life_of_a_job_is_one_row_per_change_of_status(database: Database) -> None:
    database.connect("producer").execute("insert into job_queue (job_type, payload) values ('test_job', '{}')")
    conn = worker_session(database)
    run = claim_one(conn)
    queue.extend(conn, [run], [(0.5, "half way")])
    queue.write_checkpoint(conn, run, {}, 1)
    queue.confirm(conn, run)
    queue.fail(conn, run, "ValueError", "x")
    make_due(database, run.id)
    queue.complete(conn, claim_one(conn), {})

    assert events(database) == [
        (None, "pending", "jobbko_producer"),
        ("pending", "running", "worker_test"),
        ("running", "retry", "worker_test"),
        ("retry", "running", "worker_test"),
        ("running", "completed", "worker_test"),
    ]
    failed = database.row("select * from job_event where new_status = 'retry'")
    assert (failed["job_id"], failed["job_type"], failed["attempts"]) == (run.id, "test_job", 1)
    assert (failed["error_class"], failed["worker_id"]) == ("ValueError", "w1")


def test_bulk_statements_write_one_row_per_changed_job(database: Database) -> None:
    plain = database.connect("plain")
    plain.execute("insert into job_queue (job_type, payload) select 'test_job', '{}' from generate_series(1, 1000)")
    plain.execute("update job_queue set status = 'running' where id in (select id from job_queue limit 400)")
    plain.execute(
        "update job_queue set priority = 3, status = case when status = 'running' then 'completed' else status end"
    )
    plain.execute("update job_queue set priority = 4")
    plain.execute("update job_queue set status = status")

    found = database.rows(
        "select old_status, new_status, count(*), count(distinct job_id) as jobs from job_event group by 1, 2"
    )
    assert {(row["old_status"], row["new_status"]): (row["count"], row["jobs"]) for row in found} == {
        (None, "pending"): (1000, 1000),
        ("pending", "running"): (400, 400),
        ("running", "completed"): (400, 400),
    }


def test_jobs_that_are_copied_in_have_their_events_too(database: Database) -> None:
    producer = database.connect("producer")
    with producer.cursor().copy("copy job_queue (job_type, payload) from stdin") as copy:
        for number in range(100):
            copy.write_row(("test_job", f'{{"number": {number}}}'))

    assert events(database) == [(None, "pending", "jobbko_producer")] * 100


def test_what_was_rolled_back_left_no_event(database: Database) -> None:
    plain = database.connect("plain", autocommit=False)
    plain.execute("insert into job_queue (job_type, payload) values ('test_job', '{}')")
    plain.rollback()

    assert events(database) == []


def test_the_operators_program_names_the_person_behind_it_and_nobody_else_can(database: Database) -> None:
    for role in ("operator", "plain", "producer", "worker_test"):
        conn = database.connect(role)
        conn.execute("select set_config('jobbko.actor', 'Kari Nordmann', false)")
        statement = "insert into job_queue (job_type, payload) values ('test_job', '{}')"
        conn.execute("select enqueue_job('test_job', '{}')" if role in ("operator", "worker_test") else statement)
    anonymous = database.connect("operator")
    anonymous.execute("select enqueue_job('test_job', '{}')")

    assert [actor for _, _, actor in events(database)] == [
        "Kari Nordmann", "jobbko_plain", "jobbko_producer", "worker_test", "jobbko_operator",
    ]  # fmt: skip


def test_a_sweep_and_an_operator_stand_in_the_events_by_name(database: Database) -> None:
    conn = worker_session(database)
    job_id = database.enqueue(max_attempts=1)
    claim_one(conn)
    expire(database, job_id)
    queue.sweep(worker_session(database, "worker_foreign", "foreign_job", "f1"))
    database.connect("operator").execute("select retry_job(%s)", (job_id,))

    assert events(database)[2:] == [("running", "error", "worker_foreign"), ("error", "pending", "jobbko_operator")]


def test_heartbeats_and_checkpoints_are_no_events(database: Database) -> None:
    conn = worker_session(database)
    database.enqueue()
    run = claim_one(conn)
    before = events(database)
    for number in range(1, 20):
        queue.extend(conn, [run], [(number / 20, None)])
        queue.beat_worker(conn, "w1")
        queue.write_checkpoint(conn, run, {}, number)

    assert events(database) == before


# ---------------------------------------------------------------- notifications


def test_an_enqueue_notifies_only_while_a_worker_of_the_type_is_idle(database: Database) -> None:
    listener = Listener(database)
    conn = worker_session(database)
    database.enqueue()
    assert listener.heard() == []
    claim_one(conn)
    queue.set_idle(conn, "w1")
    database.enqueue("other_job")
    assert listener.heard() == []

    database.enqueue()

    assert listener.heard() == [("job_ready", "test_job")]
    claim_one(conn)
    database.enqueue()
    assert listener.heard() == []


def test_no_worker_that_died_or_left_is_notified(database: Database) -> None:
    listener = Listener(database)
    conn = worker_session(database)
    queue.set_idle(conn, "w1")
    queue.unregister(conn, "w1")

    database.enqueue()

    assert listener.heard() == []


def test_a_thousand_jobs_in_one_statement_or_transaction_send_one_notification(database: Database) -> None:
    listener = Listener(database)
    queue.set_idle(worker_session(database), "w1")
    queue.set_idle(worker_session(database, "worker_foreign", "foreign_job", "f1"), "f1")
    database.rows(
        """insert into job_queue (job_type, payload)
           select case n % 2 when 0 then 'test_job' else 'foreign_job' end, '{}' from generate_series(1, 1000) as n"""
    )
    assert sorted(listener.heard()) == [("job_ready", "foreign_job"), ("job_ready", "test_job")]

    with psycopg.connect(database.dsn("producer")) as producer:
        for _ in range(100):
            producer.execute("insert into job_queue (job_type, payload) values ('test_job', '{}')")

    assert listener.heard() == [("job_ready", "test_job")]


def in_future(database: Database) -> None:
    database.rows("update job_queue set scheduled_for = now() + interval '1 hour'")


SILENT: dict[str, Callable[[Database], object]] = {
    "a job for later": lambda database: database.rows(
        "insert into job_queue (job_type, payload, scheduled_for) values ('test_job', '{}', now() + interval '1 s')"
    ),
    "a job inserted as completed": lambda database: database.enqueue(status="completed"),
    "a job moved to later": in_future,
    "a change of priority": lambda database: database.rows("update job_queue set priority = 9"),
    "a cancelled job": lambda database: database.rows("select cancel_job(id) from job_queue"),
    "a job of a type that nobody works": lambda database: database.enqueue("æ" * 200),
}


def heard_by_an_idle_worker(database: Database, act: Callable[[Database], object], listener: Listener) -> list[Any]:
    """What an act sends while one job is there, which is due, and one worker sleeps."""
    database.rows("delete from job_queue")
    database.enqueue()
    queue.set_idle(worker_session(database), "w1")
    listener.heard()
    act(database)
    return listener.heard()


def test_nobody_is_woken_for_nothing(database: Database) -> None:
    listener = Listener(database)

    heard = {what: heard_by_an_idle_worker(database, act, listener) for what, act in SILENT.items()}

    assert heard == {what: [] for what in SILENT}


def fail_at_once(database: Database) -> None:
    conn = worker_session(database, worker_id="w2")
    queue.fail(conn, claim_one(conn, worker_id="w2"), "X", "x", retry_after_seconds=0)


def release(database: Database) -> None:
    conn = worker_session(database, worker_id="w2")
    queue.release(conn, claim_one(conn, worker_id="w2"), "SIGTERM")


def retry_an_error(database: Database) -> None:
    database.rows("update job_queue set status = 'error'")
    database.connect("operator").execute("select retry_job(id) from job_queue")


def pull_forward(database: Database) -> None:
    in_future(database)
    database.connect("operator").execute("select retry_job(id) from job_queue")


def resume(database: Database) -> None:
    database.rows("select pause_job_type('test_job')")
    database.connect("operator").execute("select resume_job_type('test_job')")


def rerun(database: Database) -> None:
    database.rows("update job_queue set status = 'running', unique_key = 'k', rerun_requested_at = now()")
    database.rows("update job_queue set status = 'completed'")


def test_an_idle_worker_is_woken_by_whatever_makes_a_job_due(database: Database) -> None:
    listener = Listener(database)
    for act in (fail_at_once, release, retry_an_error, pull_forward, resume, rerun):
        heard = heard_by_an_idle_worker(database, act, listener)

        assert heard, act
        assert set(heard) == {("job_ready", "test_job")}, act


def test_a_cancel_notifies_the_worker_that_runs_the_job(database: Database) -> None:
    listener = Listener(database)
    job_id = database.enqueue()
    claim_one(worker_session(database, worker_id="host-7"), worker_id="host-7")

    database.connect("operator").execute("select cancel_job(%s)", (job_id,))

    assert listener.heard() == [("job_cancel", "host-7")]
