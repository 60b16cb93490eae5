"""Rows that nobody should write, written all the same: refused, or unable to break a listing, a claim or a sweep."""

import contextlib
import random
import string
from typing import Any

import msgspec
import psycopg
import pytest
from psycopg.rows import dict_row

from sidelinja_jobs import enqueue, queue
from sidelinja_jobs.database import connect
from sidelinja_jobs.errors import RefusedError
from sidelinja_jobs.settings import DatabaseSettings
from tests.databases import Database
from tests.sessions import claim_one, refused, worker_session

TIMES = (
    "scheduled_for", "created_at", "started_at", "completed_at", "lease_until", "cancel_requested_at",
    "rerun_requested_at",
)  # fmt: skip
UNREADABLE = (
    "infinity",
    "-infinity",
    "9999-12-31",
    "294276-01-01",
    "0044-03-15 BC",
    "1999-12-31 23:59+00",
    "2200-01-01 00:00+00",
)
READABLE = ("2000-01-01 00:00+00", "2199-12-31 23:59:59.999999+00")
LISTING = "select * from job_queue order by created_at desc"


def read_everything(database: Database) -> int:
    """Reads every row of every table as the reader does, with psycopg's own loaders; returns how many jobs."""
    conn = database.connect("reader", row_factory=dict_row)
    for table in ("job_type", "job_attempt", "job_checkpoint", "job_schedule", "job_event", "worker"):
        conn.execute(f"select * from {table}").fetchall()
    return len(conn.execute(LISTING).fetchall())


def test_no_time_that_a_driver_cannot_read_gets_in(database: Database) -> None:
    """By INSERT or UPDATE of the role that may write every column."""
    plain = database.connect("plain")
    job_id = database.enqueue()
    accepted = []
    for column in TIMES:
        for time in UNREADABLE:
            for statement in (
                f"insert into job_queue (job_type, payload, {column}) values ('test_job', '{{}}', %s)",
                f"update job_queue set {column} = %s where id = '{job_id}'",
            ):
                try:
                    plain.execute(statement, (time,))
                    accepted.append((column, time))
                except psycopg.errors.CheckViolation:
                    continue

    assert accepted == []
    assert read_everything(database) == 1


def test_the_first_and_last_readable_times_get_in(database: Database) -> None:
    plain = database.connect("plain")
    for column in TIMES:
        for time in READABLE:
            plain.execute(
                f"insert into job_queue (job_type, payload, {column}) values ('other_job', '{{}}', %s)", (time,)
            )

    assert read_everything(database) == len(TIMES) * len(READABLE)


def test_enqueue_refuses_a_time_out_of_bounds(database: Database) -> None:
    for time in UNREADABLE:
        conn = database.connect("producer")
        with refused("JQ002", "outside the years 2000 to 2199"):
            conn.execute("select enqueue_job('test_job', '{}', p_scheduled_for => %s)", (time,))
        with refused("JQ002", "outside the years 2000 to 2199"):
            conn.execute("select enqueue_jobs('test_job', array['{}']::jsonb[], p_scheduled_for => %s)", (time,))
    assert database.value("select count(*) from job_queue") == 0


def test_the_database_refuses_text_that_json_cannot_hold(database: Database) -> None:
    for role in ("producer", "plain"):
        conn = database.connect(role)
        for payload in (
            '{"a": "\\u0000"}',
            '{"a": "\\ud800"}',
            '{"a": NaN}',
            '{"a": Infinity}',
            '{"a": 1e400000}',
            "{",
        ):
            with pytest.raises(psycopg.errors.DataError):
                conn.execute("insert into job_queue (job_type, payload) values ('test_job', %s)", (payload,))
        with refused("23502"):
            conn.execute("insert into job_queue (job_type, payload) values ('test_job', null)")
    assert database.value("select count(*) from job_queue") == 0


def test_an_enqueue_without_type_or_payload_is_refused_in_words(database: Database) -> None:
    conn = database.connect("producer")
    for arguments in ("null, '{}'", "'', '{}'", "'test_job', null"):
        with refused("JQ002", "a job needs a job_type and a payload"):
            conn.execute(f"select enqueue_job({arguments})")
    with refused("JQ002", "max_attempts is 0, expected 1 or more"):
        conn.execute("select enqueue_job('test_job', '{}', p_max_attempts => 0::smallint)")


def test_a_payload_over_the_limit_of_its_type_is_refused_with_the_remedy(database: Database) -> None:
    database.add_job_type("small_job", payload_limit_bytes=100)
    conn = database.connect("producer")

    with refused("JQ002", 'payload of 113 bytes is over the limit of 100 bytes for "small_job"'):
        conn.execute("select enqueue_job('small_job', jsonb_build_object('text', repeat('x', 101)))")
    with refused("JQ002", "over the limit of 1048576 bytes"):
        conn.execute("select enqueue_job('nobodys_job', to_jsonb(repeat('x', 1048575)))")
    with pytest.raises(RefusedError, match="store the data in a file and put its path into the payload"):
        enqueue(conn, "small_job", {"text": ". " * 60})
    assert database.value("select count(*) from job_queue") == 0


# What a bare INSERT may put into the payload, and what becomes of it at the claim.
ODD_PAYLOADS: dict[str, str] = {
    "null": "null",
    "number": "5",
    "text": '"x"',
    "array": "[1, 2]",
    "true": "true",
    "long number": '{"n": 1' + "0" * 5000 + "}",
    "number out of range": '{"n": 1e5000}',
    "small number": '{"n": 1e-5000}',
    "deep": '{"n": ' + "[" * 3000 + "]" * 3000 + "}",
    "wide": '{"n": [' + "0," * 100_000 + "0]}",
    "odd names": '{"": 1, "\\u0001": 2, "a b": 3, "\\ud83d\\ude00": 4}',
}


def test_payloads_of_odd_json_are_claimed_as_text_one_by_one(database: Database) -> None:
    """Through the worker's own connection, whose JSON loader is not the one of psycopg."""
    plain = database.connect("plain")
    for payload in ODD_PAYLOADS.values():
        plain.execute("insert into job_queue (job_type, payload) values ('test_job', %s::jsonb)", (payload,))
    conn = connect(DatabaseSettings(url=database.dsn("worker_test")), name="test")
    queue.register(conn, "w1", "test_job", "1.0", "host", 1, None)

    claims = queue.claim(conn, "test_job", "w1", 100)
    for claim in claims:
        queue.fail(conn, claim, "bad_payload", "no", permanent=True)
    conn.close()

    assert len(claims) == len(ODD_PAYLOADS)
    assert all(claim.payload_text is not None for claim in claims)
    assert database.value("select count(*) from job_queue where status = 'error'") == len(ODD_PAYLOADS)


def test_a_job_of_a_type_with_an_odd_name_neither_stops_a_sweep_nor_a_listing(database: Database) -> None:
    plain = database.connect("plain")
    names = ["", " ", "a'b\"c;--", "æøå", "x" * 200, "t\n\t\x01", "%s %(a)s {}"]
    for name in names:
        plain.execute("insert into job_queue (job_type, payload, status) values (%s, '{}', 'running')", (name,))
    database.rows("update job_event set at = at - interval '7 hours'")

    assert queue.sweep(worker_session(database))["rescued"] == len(names)
    assert read_everything(database) == len(names)


def test_no_name_that_would_stop_the_sweep_gets_in(database: Database) -> None:
    """Names that fit the index of the running jobs, but not that of the waiting ones, to which the sweep moves them."""
    plain, conn = database.connect("plain"), worker_session(database)
    queue.set_idle(conn, "w1")
    dice = random.Random(3)  # noqa: S311
    for length in (*range(2600, 2720, 8), 7900, 9000):
        name = "".join(dice.choices(string.ascii_letters + string.digits, k=length))
        with contextlib.suppress(psycopg.errors.CheckViolation, psycopg.errors.ProgramLimitExceeded):
            plain.execute("insert into job_queue (job_type, payload, status) values (%s, '{}', 'running')", (name,))
    database.rows("update job_event set at = at - interval '7 hours'")

    queue.sweep(conn)

    assert database.value("select count(*) from job_queue where status = 'running'") == 0


def test_huge_texts_by_plain_update_are_listed_and_settled(database: Database) -> None:
    conn = worker_session(database)
    job_id = database.enqueue()
    run = claim_one(conn)
    database.connect("plain").execute(
        "update job_queue set error_msg = repeat('x', 5000000), progress_note = repeat('æ', 1000000) where id = %s",
        (job_id,),
    )
    assert read_everything(database) == 1

    queue.fail(conn, run, "X", "x")

    assert database.job(job_id)["error_msg"] == "x"


def test_a_plain_update_cannot_store_what_is_no_share_or_no_value(database: Database) -> None:
    job_id = database.enqueue()
    plain = database.connect("plain")
    for values in (
        "progress = 'NaN'", "progress = 'Infinity'", "progress = 17", "progress = -0.1",
        "status = null", "priority = null", "attempts = null", "payload = null", "scheduled_for = null",
    ):  # fmt: skip
        with pytest.raises(psycopg.errors.IntegrityError):
            plain.execute(f"update job_queue set {values}")
    assert database.job(job_id)["status"] == "pending"


def test_progress_is_a_share_whatever_a_worker_sends(database: Database) -> None:
    conn = worker_session(database)
    job_id = database.enqueue()
    run = claim_one(conn)
    seen = []
    for fraction in (0.5, float("nan"), 17.0, float("inf"), -3.0, float("-inf"), None):
        assert queue.extend(conn, [run], [(fraction, None)]) == {job_id: False}
        seen.append(database.job(job_id)["progress"])

    assert seen == [0.5, 0.5, 1, 1, 0, 0, 0]


def test_texts_that_the_database_cannot_hold_are_cleaned_where_the_worker_records(database: Database) -> None:
    conn = worker_session(database)
    job_id = database.enqueue(max_attempts=9)
    bad = "a\x00b\ud800c\U0001f600"
    run = claim_one(conn)
    queue.extend(conn, [run], [(0.5, bad * 500)])
    queue.fail(conn, run, bad * 500, bad * 5000, traceback=bad * 20000, retry_after_seconds=0)
    queue.postpone(conn, claim_one(conn), None, bad * 5000)
    queue.release(conn, claim_one(conn), bad * 5000)

    job = database.job(job_id)
    assert job["error_msg"].startswith("a\ufffdb\ufffdc\U0001f600a")
    assert job["error_msg"].endswith("…")
    assert (len(job["error_msg"]), len(job["error_class"])) == (8000, 200)
    assert database.value("select max(length(traceback)) from job_attempt") == 32000
    assert read_everything(database) == 1


def test_results_and_checkpoints_of_any_json_come_back_as_they_were(database: Database) -> None:
    conn = worker_session(database)
    values: list[Any] = [None, 0, -1.5, "æ\U0001f600", [], [[[]]], {"": {"a": [1, None]}}, 2**63 - 1, True]
    for value in values:
        job_id = database.enqueue()
        run = claim_one(conn)
        queue.write_checkpoint(conn, run, value, 1)
        assert [checkpoint.data for checkpoint in queue.read_checkpoints(conn, run)] == [value]
        queue.complete(conn, run, value)
        assert msgspec.json.decode(database.value("select result::text from job_queue where id = %s", job_id)) == value


def test_a_listing_survives_all_of_it_at_once(database: Database) -> None:
    """What a careless program with UPDATE on job_queue may leave behind, read as the reader reads it."""
    plain = database.connect("plain")
    for payload in ('"x"', "null", "[]", '{"n": 1e400}', '{"n": [[[[[[]]]]]]}'):
        plain.execute(
            "insert into job_queue (job_type, payload, result) values ('other_job', %s::jsonb, '[]')", (payload,)
        )
    plain.execute("update job_queue set priority = -32768, attempts = -5, max_attempts = -7, worker_id = E'\\x01\\n'")
    plain.execute("update job_queue set status = 'error', error_msg = '', error_class = repeat('c', 10000)")

    assert read_everything(database) == 5
