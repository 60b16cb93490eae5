"""The functions that the event forwarder lives on (db/init/0019), called through its own login."""

import json
from typing import Any
from uuid import UUID

import psycopg
import pytest

from tests.databases import Database
from tests.queue.sink_session import Sink
from tests.sessions import refused


def change(conn: Any, job_id: UUID, status: str) -> None:
    conn.execute("update job_queue set status = %s where id = %s", (status, job_id))


def seen(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(event["job_id"], event["old_status"], event["new_status"]) for event in events]


def test_a_new_sink_begins_with_what_happens_from_now_on(database: Database) -> None:
    database.enqueue()
    sink = Sink(database)
    later = database.enqueue()

    assert seen(sink.next()) == [(later, None, "pending")]


def test_a_new_sink_misses_nothing_of_a_transaction_that_runs_already(database: Database) -> None:
    running = database.connect(autocommit=False)
    running.execute("insert into job_queue (job_type, payload) values ('test_job', '{}')")
    sink = Sink(database)
    running.commit()

    assert len(sink.next()) == 1


def test_an_event_of_a_transaction_that_commits_late_is_not_passed_over(database: Database) -> None:
    """A cursor by id alone would go past the first one's event, which is not yet to be seen."""
    sink = Sink(database)
    late = database.connect(autocommit=False)
    late.execute("insert into job_queue (job_type, payload) values ('test_job', '{\"late\": true}')")
    early = database.enqueue()
    sink.record(sink.next())
    late.commit()
    second = sink.next()

    assert early in [event["job_id"] for event in second]
    assert len(second) == 2


def test_events_of_a_job_come_in_their_order_where_the_cursor_has_another(database: Database) -> None:
    """The first transaction got its number before the second, and changed the job after it."""
    sink = Sink(database)
    job_id = database.enqueue()
    first, second = database.connect(autocommit=False), database.connect(autocommit=False)
    first.execute("select pg_current_xact_id()")
    change(second, job_id, "running")
    second.commit()
    change(first, job_id, "completed")
    first.commit()

    assert [event["new_status"] for event in sink.next()] == ["pending", "completed", "running"]
    assert sink.deliver_all() == [(job_id, "pending"), (job_id, "running"), (job_id, "completed")]


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_the_order_of_a_job_holds_where_a_batch_ends_between_its_events(database: Database, limit: int) -> None:
    sink = Sink(database)
    job_id = database.enqueue()
    first, second = database.connect(autocommit=False), database.connect(autocommit=False)
    first.execute("select pg_current_xact_id()")
    change(second, job_id, "running")
    second.commit()
    change(first, job_id, "completed")
    first.commit()
    whole = sink.next
    sink.next = lambda _limit=0: whole(limit)  # type: ignore[method-assign, assignment]

    assert sink.deliver_all() == [(job_id, "pending"), (job_id, "running"), (job_id, "completed")]


def test_the_order_of_a_job_holds_where_a_third_transaction_hides_its_earlier_event(database: Database) -> None:
    """Numbers 1 (ours), 2 (still running), 3 (the earlier change): behind the cursor is 1 alone."""
    sink = Sink(database)
    job_id = database.enqueue()
    sink.record(sink.next())
    first, third, second = (database.connect(autocommit=False) for _ in range(3))
    first.execute("select pg_current_xact_id()")
    third.execute("select pg_current_xact_id()")
    change(second, job_id, "running")
    second.commit()
    change(first, job_id, "completed")
    first.commit()

    (only,) = sink.next()
    assert (only["new_status"], only["is_held"]) == ("completed", True)
    assert sink.deliver_all() == []
    third.commit()
    assert sink.deliver_all() == [(job_id, "running"), (job_id, "completed")]


def test_an_event_waits_for_an_earlier_one_of_its_job_and_for_no_other(database: Database) -> None:
    sink = Sink(database)
    failing = database.enqueue()
    sink.record(sink.next(), "failed", wait_seconds=3600)
    other = database.enqueue()
    sink.record(sink.next())
    change(database.connect(), failing, "running")
    change(database.connect(), other, "running")

    assert [(event["job_id"], event["is_held"]) for event in sink.next() if event["new_status"] == "running"] == [
        (failing, True), (other, False),
    ]  # fmt: skip
    sink.record(sink.next(), "waiting")
    assert [event["job_id"] for event in sink.next()] == [other], "the failing one's turn is in an hour"


def test_a_retried_event_goes_first_and_then_those_that_waited_for_it(database: Database) -> None:
    sink = Sink(database)
    job_id = database.enqueue()
    sink.record(sink.next(), "failed")
    change(database.connect(), job_id, "running")
    change(database.connect(), job_id, "completed")

    again = sink.next()
    assert [(event["new_status"], event["is_new"], event["is_held"], event["tries"]) for event in again] == [
        ("pending", False, False, 1), ("running", True, True, 0), ("completed", True, True, 0),
    ]  # fmt: skip
    assert sink.deliver_all() == [(job_id, "pending"), (job_id, "running"), (job_id, "completed")]
    assert database.value("select count(*) from event_delivery") == 0


def test_a_parked_event_holds_up_nothing_and_is_sent_anew_when_an_operator_says_so(database: Database) -> None:
    sink = Sink(database)
    job_id = database.enqueue()
    sink.record(sink.next(), "parked")
    change(database.connect(), job_id, "running")

    assert sink.deliver_all() == [(job_id, "running")]
    operator = database.connect("operator")
    assert operator.execute("select replay_deliveries('test')").fetchone() == (1,)
    assert operator.execute("select replay_deliveries('test')").fetchone() == (0,)
    assert sink.deliver_all() == [(job_id, "pending")]
    assert database.value("select detail->>'events' from audit_entry where action = 'delivery.replay'") == "1"


def test_one_session_has_a_sink_until_it_ends(database: Database) -> None:
    first = Sink(database)
    second = Sink(database)

    assert (first.is_open, second.is_open) == (True, False)
    first.leave()
    assert second.open()


def test_what_a_session_records_after_another_has_taken_over_is_refused(database: Database) -> None:
    first, second = Sink(database), Sink(database)
    database.enqueue()
    events, start = first.next(), first.cursor
    second.record(second.next(), "failed")

    with refused("JQ001", "is not at"):
        first.conn.execute(
            "select record_deliveries('test', %s, %s, %s, %s, '[]', false)",
            (*start, events[0]["xid"], events[0]["event_id"]),
        )


def test_the_filter_marks_what_is_not_wanted(database: Database) -> None:
    sink = Sink(database, job_types=["test_job"], statuses=["running", "error"])
    job_id, _other = database.enqueue(), database.enqueue("other_job", status="error")
    change(database.connect(), job_id, "running")

    assert [(event["job_type"], event["new_status"]) for event in sink.next() if event["is_wanted"]] == [
        ("test_job", "running")
    ]


def test_payload_and_result_leave_only_where_the_sink_says_so(database: Database) -> None:
    thin = Sink(database)
    database.enqueue(payload={"path": "a.mp3"}, status="completed", result=psycopg.types.json.Jsonb({"text": "hei"}))
    (event,) = thin.next()
    assert (event["payload"], event["result"]) == (None, None)
    assert thin.open(includes=["payload", "result"])
    (event,) = thin.next()

    assert (json.loads(event["payload"]), json.loads(event["result"])) == ({"path": "a.mp3"}, {"text": "hei"})


def test_the_message_of_a_failure_is_the_one_of_that_attempt(database: Database) -> None:
    sink = Sink(database)
    conn = database.connect()
    job_id = database.enqueue()
    for number in (1, 2):
        change(conn, job_id, "running")
        conn.execute(
            "insert into job_attempt (job_id, attempt, outcome, charged, error_class, error_msg)"
            " values (%s, %s, 'failed', true, 'OSError', %s)",
            (job_id, number, f"failure {number}"),
        )
        conn.execute(
            "update job_queue set status = 'retry', attempts = %s, error_class = 'OSError' where id = %s",
            (number, job_id),
        )
    conn.execute(
        "update job_queue set status = 'error', error_class = 'cancelled', error_msg = 'by hand' where id = %s",
        (job_id,),
    )

    assert [event["error_msg"] for event in sink.next() if event["new_status"] in ("retry", "error")] == [
        "failure 1", "failure 2", "by hand",
    ]  # fmt: skip


def test_an_event_that_retention_removed_is_forgotten(database: Database) -> None:
    sink = Sink(database)
    database.enqueue()
    events = sink.next()
    database.rows("delete from job_event")
    sink.record(events, "failed")
    database.enqueue()
    sink.record(sink.next(), "failed")
    database.rows("delete from job_event")

    assert database.value("select count(*) from event_delivery") == 0
    assert sink.next() == []


def test_what_waited_for_an_event_that_is_gone_goes_on_when_the_sink_is_enabled(database: Database) -> None:
    sink = Sink(database)
    job_id = database.enqueue()
    sink.record(sink.next(), "failed", wait_seconds=3600)
    change(database.connect(), job_id, "running")
    sink.record(sink.next(), "waiting")
    sink.conn.execute("select disable_event_sink('test', 'gone')")
    database.rows("delete from job_event where new_status = 'pending'")
    assert sink.next() == []

    database.connect("operator").execute("select enable_event_sink('test')")
    assert sink.deliver_all() == [(job_id, "running")]


def test_what_was_to_be_tried_later_is_tried_at_once_when_the_sink_is_enabled(database: Database) -> None:
    sink = Sink(database)
    job_id = database.enqueue()
    sink.record(sink.next(), "failed", wait_seconds=3600)

    database.connect("operator").execute("select enable_event_sink('test')")
    assert sink.deliver_all() == [(job_id, "pending")]


def test_the_state_tells_the_age_of_the_oldest_that_is_left(database: Database) -> None:
    sink = Sink(database)
    state = "select * from event_sink_state('test')"
    assert sink.conn.execute(state).fetchone() == {"lag_seconds": 0, "waiting": 0, "parked": 0}
    database.enqueue()
    database.rows("update job_event set at = at - interval '1 minute'")
    assert 60 <= sink.conn.execute(state).fetchone()["lag_seconds"] < 90
    sink.record(sink.next(), "failed")
    waiting = sink.conn.execute(state).fetchone()
    assert 60 <= waiting["lag_seconds"] < 90
    assert (waiting["waiting"], waiting["parked"]) == (1, 0)
    sink.record(sink.next(), "parked")

    assert sink.conn.execute(state).fetchone() == {"lag_seconds": 0, "waiting": 0, "parked": 1}


def test_ids_of_events_are_drawn_one_by_one(database: Database) -> None:
    """With a cache of its own, each session would give a job's later change a lower number."""
    assert database.value("select seqcache from pg_sequence where seqrelid = 'job_event_id_seq'::regclass") == 1


@pytest.mark.parametrize("role", ["worker_test", "producer", "plain", "metrics", "reader"])
def test_nobody_else_may_deliver_or_replay(database: Database, role: str) -> None:
    conn = database.connect(role)
    for call in ("next_events('test', 1)", "read_event_sink('test')", "replay_deliveries()", "renew_event_epoch()",
                 "disable_event_sink('test', 'x')", "enable_event_sink('test')"):  # fmt: skip
        with refused("42501"):
            conn.execute(f"select {call}")


def test_the_forwarder_reads_no_table(database: Database) -> None:
    conn = database.connect("delivery")
    for table in ("job_queue", "job_event", "event_sink", "event_delivery", "admin_account"):
        with refused("42501"):
            conn.execute(f"select 1 from {table}")
