"""The specification to the letter: its table, its index, its backoff, its plain SQL."""

from typing import Any
from uuid import UUID

import pytest

from sidelinja_jobs import queue
from tests.databases import Database
from tests.sessions import claim_one, make_due, worker_session

# As section 3 of the specification writes them: name, type, nullable, default.
COLUMNS = [
    ("id", "uuid", "NO", "gen_random_uuid()"),
    ("job_type", "text", "NO", None),
    ("payload", "jsonb", "NO", None),
    ("status", "job_status", "NO", "'pending'::job_status"),
    ("priority", "smallint", "NO", "0"),
    ("result", "jsonb", "YES", None),
    ("error_msg", "text", "YES", None),
    ("attempts", "smallint", "NO", "0"),
    ("max_attempts", "smallint", "NO", "3"),
    ("created_at", "timestamp with time zone", "NO", "now()"),
    ("started_at", "timestamp with time zone", "YES", None),
    ("completed_at", "timestamp with time zone", "YES", None),
    ("scheduled_for", "timestamp with time zone", "NO", "now()"),
]
COLUMNS_OF_A_TABLE = """
    select column_name, case data_type when 'USER-DEFINED' then udt_name else data_type end as type, is_nullable,
           column_default
      from information_schema.columns where table_name = 'job_queue' order by ordinal_position
"""


def wait_seconds(database: Database, job_id: UUID) -> float:
    """From now to the time that a job waits for, in seconds of the database's clock."""
    found = database.value(
        "select extract(epoch from scheduled_for - clock_timestamp()) from job_queue where id = %s", job_id
    )
    return float(found)


def test_the_specified_columns_come_first_with_their_types_and_defaults(database: Database) -> None:
    found = [tuple(column.values()) for column in database.rows(COLUMNS_OF_A_TABLE)]

    assert found[: len(COLUMNS)] == COLUMNS


def test_what_was_added_never_stands_in_the_way_of_a_bare_insert(database: Database) -> None:
    added = database.rows(COLUMNS_OF_A_TABLE)[len(COLUMNS) :]

    assert {column["column_name"] for column in added} >= {"worker_id", "lease_token", "lease_until", "unique_key"}
    assert [
        column["column_name"] for column in added if column["is_nullable"] == "NO" and column["column_default"] is None
    ] == []


def test_the_enum_holds_the_five_statuses_in_the_specified_order(database: Database) -> None:
    found = database.value("select enum_range(null::job_status)::text[]")

    assert found == ["pending", "running", "completed", "error", "retry"]


def test_the_primary_key_is_the_id(database: Database) -> None:
    found = database.value(
        "select pg_get_constraintdef(oid) from pg_constraint where conrelid = 'job_queue'::regclass and contype = 'p'"
    )

    assert found == "PRIMARY KEY (id)"


def test_the_claimable_jobs_are_indexed_under_the_specified_name(database: Database) -> None:
    definition = database.value("select indexdef from pg_indexes where indexname = 'idx_job_queue_pending'")

    # job_type in front and id behind are the additions; priority and time stand as specified.
    assert "(job_type, priority DESC, scheduled_for, id)" in definition
    assert "WHERE (status = ANY (ARRAY['pending'::job_status, 'retry'::job_status]))" in definition


def test_every_column_table_and_status_is_explained_in_the_database(database: Database) -> None:
    bare = database.rows(
        """select c.relname, a.attname from pg_class c join pg_attribute a on a.attrelid = c.oid
            where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and a.attnum > 0
              and not a.attisdropped and c.relname <> 'schema_migrations'
              and col_description(c.oid, a.attnum) is null"""
    )
    bare += database.rows(
        """select relname from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'
              and obj_description(oid) is null"""
    )

    assert bare == []
    explained = database.value("select obj_description('job_status'::regtype)")
    for status in ("pending", "running", "completed", "error", "retry"):
        assert f"{status}:" in explained


def test_four_attempts_are_retried_after_30_60_and_120_seconds_and_then_end_in_error(database: Database) -> None:
    conn = worker_session(database)
    job_id = database.enqueue(max_attempts=4)
    seen: list[tuple[str, int, float | None]] = []

    for _ in range(4):
        settled = queue.fail(conn, claim_one(conn), "ValueError", "no luck")
        wait = round(wait_seconds(database, job_id)) if settled.status == "retry" else None
        seen.append((settled.status, settled.attempts, wait))
        if settled.status == "retry":
            make_due(database, job_id)

    assert seen == [("retry", 1, 30), ("retry", 2, 60), ("retry", 3, 120), ("error", 4, None)]
    (in_error,) = database.rows("SELECT * FROM job_queue WHERE status = 'error'")
    assert in_error["id"] == job_id
    assert in_error["error_msg"] == "no luck"
    assert in_error["completed_at"] is not None
    assert queue.claim(conn, "test_job", "w1", 1) == []


def test_backoff_doubles_up_to_an_hour_and_never_overflows(database: Database) -> None:
    expected = {-5: 30, 0: 30, 1: 30, 2: 60, 3: 120, 7: 1920, 8: 3600, 9: 3600, 40: 3600, 32767: 3600}

    found = database.rows("select n, backoff_seconds(n) as seconds from unnest(%s::int[]) as n", list(expected))

    assert {row["n"]: row["seconds"] for row in found} == expected


def test_jitter_only_lengthens_the_wait_and_by_no_more_than_its_share(database: Database) -> None:
    waits = [
        row["wait"]
        for row in database.rows("select backoff_seconds(2, 30, 3600, 0.5) as wait from generate_series(1, 500)")
    ]

    assert min(waits) >= 60
    assert max(waits) <= 90
    assert max(waits) - min(waits) > 15


def test_a_types_own_backoff_is_used(database: Database) -> None:
    database.add_job_type("quick_job", backoff_base_seconds=2, backoff_cap_seconds=3)
    conn = worker_session(database, job_type="quick_job")
    job_id = database.enqueue("quick_job", max_attempts=5)
    waits = []

    for _ in range(3):
        queue.fail(conn, claim_one(conn, "quick_job"), "X", "x")
        waits.append(round(wait_seconds(database, job_id)))
        make_due(database, job_id)

    assert waits == [2, 3, 3]


def test_a_failure_that_does_not_say_whether_it_is_permanent_is_retried(database: Database) -> None:
    conn = worker_session(database)
    database.enqueue()
    run = claim_one(conn)

    settled = conn.execute("select * from fail_job(%s, %s, 'X', 'x', null, null)", (run.id, run.lease_token)).fetchone()

    assert settled["status"] == "retry"


def test_thirty_thousand_attempts_are_counted_without_overflow(database: Database) -> None:
    conn = worker_session(database)
    job_id = database.enqueue(attempts=32766, max_attempts=32767)

    settled = queue.fail(conn, claim_one(conn), "X", "x")

    assert (settled.status, settled.attempts) == ("error", 32767)
    assert database.value("select attempt from job_attempt where job_id = %s", job_id) == 32767


def test_a_job_past_the_last_countable_attempt_can_still_fail(database: Database) -> None:
    conn = worker_session(database)
    database.enqueue(attempts=32767, max_attempts=32767)

    settled = queue.fail(conn, claim_one(conn), "X", "x")

    assert (settled.status, settled.attempts) == ("error", 32767)


@pytest.mark.parametrize("role", ["producer", "plain"])
def test_a_bare_insert_is_a_complete_enqueue(database: Database, role: str) -> None:
    conn: Any = database.connect(role)

    (job_id,) = conn.execute(
        "INSERT INTO job_queue (job_type, payload) VALUES ('test_job', '{\"a\": 1}') RETURNING id"
    ).fetchone()

    claim = claim_one(worker_session(database))
    assert (claim.id, claim.payload_text, claim.attempts, claim.max_attempts) == (job_id, '{"a": 1}', 0, 3)


def test_the_producer_sets_the_five_input_columns(database: Database) -> None:
    conn: Any = database.connect("producer")

    (job_id,) = conn.execute(
        "INSERT INTO job_queue (job_type, payload, priority, max_attempts, scheduled_for)"
        " VALUES ('test_job', '{}', -7, 9, '2030-01-01 00:00+00') RETURNING id"
    ).fetchone()

    job = database.job(job_id)
    assert (job["priority"], job["max_attempts"], job["scheduled_for"].year) == (-7, 9, 2030)


def test_a_bare_insert_of_a_type_that_nobody_works_waits(database: Database) -> None:
    conn: Any = database.connect("plain")

    conn.execute("INSERT INTO job_queue (job_type, payload) VALUES ('nobodys_job', '{}')")

    assert queue.claim(worker_session(database), "test_job", "w1", 10) == []
    assert database.value("select status from job_queue where job_type = 'nobodys_job'") == "pending"


def test_the_specifications_own_query_and_update_work_as_written(database: Database) -> None:
    """Section 4, in the role for foreign programs; a transition of the specification, statement by statement."""
    job_id = database.enqueue()
    conn: Any = database.connect("plain", autocommit=False)

    (found,) = conn.execute(
        "SELECT id FROM job_queue WHERE status IN ('pending','retry') AND job_type = 'test_job'"
        " AND scheduled_for <= now() ORDER BY priority DESC, scheduled_for LIMIT 1 FOR UPDATE SKIP LOCKED"
    ).fetchone()
    conn.execute("UPDATE job_queue SET status = 'running' WHERE id = %s", (found,))
    conn.commit()
    conn.execute("UPDATE job_queue SET status = 'completed', result = '{\"ok\": true}' WHERE id = %s", (found,))
    conn.commit()

    assert found == job_id
    assert database.job(job_id)["result"] == {"ok": True}
