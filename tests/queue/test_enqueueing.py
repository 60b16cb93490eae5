"""Enqueue from Python: in the caller's transaction, whole or not at all; a refusal says what, where and what to do."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any
from uuid import RFC_4122, UUID, uuid4

import msgspec
import psycopg
import pytest
from psycopg.rows import dict_row, namedtuple_row

from sidelinja_jobs import Enqueued, NotAllowedError, RefusedError, enqueue, enqueue_many, queue
from tests.databases import Database
from tests.sessions import worker_session


class Track(msgspec.Struct):
    speaker: str
    start: float


class Payload(msgspec.Struct, forbid_unknown_fields=True):
    path: str
    tracks: list[Track]
    at: datetime
    hint: str | None = None


@pytest.fixture
def producer(database: Database) -> Any:
    """A connection in a transaction of its own, as the caller's is."""
    return database.connect("producer", autocommit=False)


def test_a_job_is_there_when_the_callers_transaction_commits(database: Database, producer: Any) -> None:
    made = enqueue(producer, "test_job", {"path": "a.mp3"})
    assert made.outcome == "created"
    assert database.rows("select * from job_queue") == []

    producer.commit()

    job = database.job(made.id)
    assert (job["job_type"], job["payload"], job["status"]) == ("test_job", {"path": "a.mp3"}, "pending")
    assert (job["priority"], job["max_attempts"], job["parent_id"], job["unique_key"]) == (0, 3, None, None)


def test_a_rollback_takes_the_job_back(database: Database, producer: Any) -> None:
    enqueue(producer, "test_job", {})
    enqueue_many(producer, "test_job", [{}, {}])

    producer.rollback()

    assert database.rows("select * from job_queue") == []
    assert database.rows("select * from job_event") == []


def test_every_argument_reaches_its_column(database: Database, producer: Any) -> None:
    at, parent = datetime(2030, 5, 17, 12, 30, tzinfo=timezone(timedelta(hours=2))), uuid4()
    arguments: dict[str, Any] = {"priority": -32768, "scheduled_for": at, "max_attempts": 32767, "parent_id": parent}

    one = enqueue(producer, "test_job", {"n": 1}, unique_key="k", **arguments).id
    many = enqueue_many(producer, "test_job", [{"n": 2}], **arguments)
    producer.commit()

    for job in map(database.job, [one, *many]):
        assert {name: job[name] for name in arguments} == arguments
    assert [database.job(job_id)["unique_key"] for job_id in [one, *many]] == ["k", None]


def test_a_struct_becomes_its_json(database: Database, producer: Any) -> None:
    payload = Payload("intervju/æ.mp3", [Track("Kari", 0.1)], datetime(2026, 1, 2, tzinfo=UTC))

    made = enqueue(producer, "test_job", payload)
    producer.commit()

    stored = database.job(made.id)["payload"]
    assert (stored["path"], stored["tracks"]) == ("intervju/æ.mp3", [{"speaker": "Kari", "start": 0.1}])
    assert (stored["at"], stored["hint"]) == ("2026-01-02T00:00:00Z", None)
    assert msgspec.convert(stored, Payload) == payload


def test_values_arrive_as_they_were(database: Database, producer: Any) -> None:
    payload = {
        "whole": 2**63 - 1,
        "long": 10**30,
        "part": 0.1,
        "text": "æ\U0001f600 \u2028\x1b",
        "deep": {"": [None, True]},
    }

    made = enqueue(producer, "test_job", payload)
    converted = enqueue(producer, "test_job", {"price": Decimal("1.10"), "pair": (1, 2), "id": UUID(int=1), 5: "five"})
    producer.commit()

    assert database.job(made.id)["payload"] == payload
    assert database.job(converted.id)["payload"] == {
        "price": "1.10",
        "pair": [1, 2],
        "id": str(UUID(int=1)),
        "5": "five",
    }


def test_many_jobs_come_back_in_the_order_of_their_payloads(database: Database, producer: Any) -> None:
    payloads = [{"number": number} for number in range(500)]

    ids = enqueue_many(producer, "test_job", payloads)
    producer.commit()

    assert len(set(ids)) == 500
    assert [database.job(job_id)["payload"] for job_id in ids[::50]] == payloads[::50]
    numbers = database.rows(
        "select payload from unnest(%s::uuid[]) with ordinality as u (id, n) join job_queue using (id) order by n",
        ids,
    )
    assert [row["payload"] for row in numbers] == payloads
    claims = [claim for _ in range(5) for claim in queue.claim(worker_session(database), "test_job", "w1", 100)]
    assert [claim.id for claim in claims] == ids, "that are due at the same moment are claimed in this order, too"
    assert enqueue_many(producer, "test_job", []) == []


def test_the_ids_of_one_call_are_neighbours_and_those_of_two_calls_are_not(producer: Any) -> None:
    one, other = (enqueue_many(producer, "test_job", [{}] * 300) for _ in range(2))

    for ids in (one, other):
        assert [each.time_low for each in ids] == list(range(ids[0].time_low, ids[0].time_low + 300))
        assert len({each.bytes[4:] for each in ids}) == 1
        assert {(each.version, each.variant) for each in ids} == {(4, RFC_4122)}
    assert one[0].bytes[4:] != other[0].bytes[4:]


def test_one_bad_payload_among_many_leaves_none_and_is_named(database: Database, producer: Any) -> None:
    payloads = [{"n": 1}, {"n": float("nan")}, {"n": 3}]

    with pytest.raises(RefusedError, match=r"^payload 1 of 3: payload\.n is nan, which JSON cannot hold$"):
        enqueue_many(producer, "test_job", payloads)
    producer.commit()

    assert database.rows("select * from job_queue") == []


def test_one_payload_over_the_limit_among_many_leaves_none(database: Database, producer: Any) -> None:
    database.add_job_type("small_job", payload_limit_bytes=100)

    with pytest.raises(RefusedError, match="over the limit of 100 bytes"):
        enqueue_many(producer, "small_job", [{}, {"text": ". " * 60}])
    producer.rollback()

    assert database.rows("select * from job_queue") == []


@pytest.mark.parametrize("factory", [dict_row, namedtuple_row, None])
def test_any_row_factory_of_the_caller_will_do(database: Database, factory: Any) -> None:
    options = {} if factory is None else {"row_factory": factory}
    with psycopg.connect(database.dsn("producer"), **options) as conn:
        made = enqueue(conn, "test_job", {}, unique_key="k")
        ids = enqueue_many(conn, "test_job", [{}])

    assert isinstance(made, Enqueued)
    assert {made.id, *ids} == {row["id"] for row in database.rows("select id from job_queue")}


def test_a_caller_in_pipeline_mode_may_enqueue(database: Database, producer: Any) -> None:
    with producer.pipeline():
        made = [enqueue(producer, "test_job", {"n": n}).id for n in range(3)]
    producer.commit()

    assert database.value("select count(*) from job_queue where id = any(%s)", made) == 3


def test_a_refusal_leaves_the_callers_transaction_as_it_was(database: Database, producer: Any) -> None:
    """What Python refuses never reaches the database, so what the caller did before is not lost."""
    kept = enqueue(producer, "test_job", {})

    with pytest.raises(RefusedError):
        enqueue(producer, "test_job", {"a": "\x00"})
    producer.commit()

    assert database.job(kept.id)["status"] == "pending"


NAIVE, EARLY, LATE = datetime(2030, 1, 1), datetime(1999, 12, 31, tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
PATH, DATA = "a b/" * 300, "data:audio/mpeg;base64,AAAA"
# Job type, payload, further arguments: what the refusal says.
REFUSALS: list[tuple[str, Any, dict[str, Any], str]] = [
    ("", {}, {}, r"job_type must have 1 to 200 characters"),
    ("t" * 201, {}, {}, r"job_type must have 1 to 200 characters"),
    ("a\x00b", {}, {}, r"job_type .* without NUL"),
    ("a\ud800b", {}, {}, r"job_type .* lone surrogates"),
    ("test_job", [1], {}, r"payload is a list, expected an object with named fields"),
    ("test_job", None, {}, r"payload is a NoneType, expected an object"),
    ("test_job", "x", {}, r"payload is a str, expected an object"),
    ("test_job", {"a": object()}, {}, r"payload cannot become JSON: .*object"),
    ("test_job", {"a": {(1, 2): 3}}, {}, r"payload"),
    ("test_job", {"a": [{"b": float("inf")}]}, {}, r"payload\.a\[0\]\.b is inf, which JSON cannot hold"),
    ("test_job", {"a": 10**400}, {}, r"payload\.a is a whole number of more than 300 digits; put it into a string"),
    ("test_job", {"a": "x\x00"}, {}, r"payload\.a holds a NUL character at character 1; .*remove it"),
    ("test_job", {"a": ["\ud83d"]}, {}, r"payload\.a\[0\] holds a lone surrogate at character 0; .*remove it"),
    ("test_job", {"a\x00": 1}, {}, r"a key in payload holds a NUL character"),
    ("test_job", {"a": DATA}, {}, r"payload\.a is a data: URL; put the data into a file and give its path"),
    ("test_job", {"a": "QUJD" * 300}, {}, r"payload\.a looks like 1200 characters of base64; put the data into a"),
    ("test_job", {"path": PATH}, {}, r"payload\.path has 1200 characters, a path may have 1024"),
    ("test_job", {}, {"priority": 32768}, r"priority is 32768, expected a whole number from -32768 to 32767"),
    ("test_job", {}, {"priority": -32769}, r"priority is -32769"),
    ("test_job", {}, {"max_attempts": 0}, r"max_attempts is 0, expected a whole number from 1 to 32767"),
    ("test_job", {}, {"max_attempts": 32768}, r"max_attempts is 32768"),
    ("test_job", {}, {"scheduled_for": NAIVE}, r"scheduled_for 2030-01-01T00:00:00 has no time zone"),
    ("test_job", {}, {"scheduled_for": EARLY}, r"scheduled_for 1999-12-31.* outside the years 2000 to 2199"),
    ("test_job", {}, {"scheduled_for": LATE}, r"scheduled_for 9999-12-31.* outside the years 2000 to 2199"),
]


def test_every_refusal_says_what_where_and_what_to_do(database: Database, producer: Any) -> None:
    for job_type, payload, arguments, message in REFUSALS:
        with pytest.raises(RefusedError, match=message):
            enqueue(producer, job_type, payload, **arguments)
        with pytest.raises(RefusedError, match=message):
            enqueue_many(producer, job_type, [{}, payload], **arguments)
    assert producer.info.transaction_status is psycopg.pq.TransactionStatus.IDLE
    assert database.rows("select * from job_queue") == []


def test_numbers_of_another_type_are_refused(database: Database, producer: Any) -> None:
    values: list[Any] = [1.0, 1.5, "1", None, True, float("nan")]
    for name in ("priority", "max_attempts"):
        for value in values:
            with pytest.raises(RefusedError, match=f"{name} is .*, expected a whole number"):
                enqueue(producer, "test_job", {}, **{name: value})
    assert database.rows("select * from job_queue") == []


def test_a_time_whose_utc_lies_outside_is_refused_by_the_database(database: Database) -> None:
    edge = datetime(2000, 1, 1, 5, tzinfo=timezone(timedelta(hours=14)))

    with pytest.raises(RefusedError, match="outside the years 2000 to 2199"):
        enqueue(database.connect("producer"), "test_job", {}, scheduled_for=edge)


def test_a_worker_may_not_enqueue_what_its_type_does_not_name(database: Database) -> None:
    with pytest.raises(
        NotAllowedError, match=r"role worker_test may not enqueue jobs of type .*foreign_job.*follow_ups"
    ):
        enqueue(database.connect("worker_test"), "foreign_job", {})
    with pytest.raises(NotAllowedError):
        enqueue(database.connect("plain"), "test_job", {})


def test_a_path_object_is_no_json(database: Database) -> None:
    with pytest.raises(RefusedError, match="payload cannot become JSON"):
        enqueue(database.connect("producer"), "test_job", {"path": PurePosixPath("a.mp3")})
