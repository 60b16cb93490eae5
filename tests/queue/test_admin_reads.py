"""What the admin view's job pages ask of the database beyond the queue's own functions."""

import threading
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.databases import Database

ALIKE = [
    ("cannot open 'ep 12.mp3': No such file", "cannot open 'ep 13.mp3': No such file"),
    ("cannot open /media/2026/a.mp3", "cannot open /srv/b.wav"),
    ("cannot open kaffe.mp3", "cannot open te.mp3"),
    ("read 12,5 of 300 bytes at 0x7ffde9a1b2c3", "read 7 of 9 bytes at 0x11"),
    ("job 5f0c1f6e-5b1e-4c53-a2d8-111111111111 is gone", "job aaaaaaaa-5b1e-4c53-a2d8-222222222222 is gone"),
    ("GET https://api.example.no/v1?x=1 gave 503", "GET http://localhost gave 429"),
    ("  \n\nthe first line\nTraceback: line 3", "the first line"),
    ("«kaffe» og “te”", "«brød» og “vann”"),
    ("a   b", "a b"),
    ("", None),
]
DIFFERENT = [
    ("cannot open 'a'", "cannot read 'a'"),
    ("can't say", "can't see"),
    ("timeout", "no answer"),
    ("a\nb", "b\na"),
]


def fingerprint(database: Database, message: str | None) -> str:
    job = database.enqueue(status="error", error_class="bad", error_msg=message)
    return str(database.job(job)["error_fingerprint"])


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_messages_that_differ_in_names_and_numbers_are_of_one_kind(database: Database, one: str, other: str) -> None:
    assert fingerprint(database, one) == fingerprint(database, other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_messages_that_say_something_else_are_of_another_kind(database: Database, one: str, other: str) -> None:
    assert fingerprint(database, one) != fingerprint(database, other)


def test_only_failures_have_a_fingerprint(database: Database) -> None:
    one, same, other_class, cancelled, waiting = (
        database.enqueue(status=status, error_class=kind, error_msg=message)
        for status, kind, message in [
            ("error", "bad", "no file 'a'"),
            ("error", "bad", "no file 'b'"),
            ("error", "worse", "no file 'a'"),
            ("error", "cancelled", "cancelled"),
            ("retry", "bad", "no file 'a'"),
        ]
    )
    prints = {
        row["id"]: row["error_fingerprint"] for row in database.rows("select id, error_fingerprint from job_queue")
    }

    assert prints[one] == prints[same] != prints[other_class]
    assert prints[cancelled] is prints[waiting] is None
    with database.connect("operator") as conn:
        conn.execute("select retry_job(%s)", [one])
    assert database.job(one)["error_fingerprint"] is None


def test_a_program_that_follows_the_specification_alone_can_end_a_job_in_error(database: Database) -> None:
    job = database.enqueue()
    with database.connect("plain") as conn:
        conn.execute("update job_queue set status = 'error', error_msg = 'no file 7' where id = %s", [job])

    assert database.job(job)["error_fingerprint"]


def test_a_message_that_comes_after_the_status_counts(database: Database) -> None:
    jobs = [database.enqueue() for _ in range(3)]
    with database.connect("plain") as conn:
        conn.execute("update job_queue set status = 'error'")
        nameless = {database.job(job)["error_fingerprint"] for job in jobs}
        conn.execute("update job_queue set error_msg = 'no file 7' where id = %s", jobs[:1])
        conn.execute("update job_queue set error_msg = 'no file 8', worker_id = 'w' where id = %s", jobs[1:2])

    first, second, third = (database.job(job)["error_fingerprint"] for job in jobs)
    assert first == second != third
    assert nameless == {third}
    assert database.rows("select count(*) from job_event where new_status = 'error'") == [{"count": 3}]


def enqueue_once(conn: psycopg.Connection[Any], request: UUID, **given: object) -> tuple[UUID, str]:
    row = conn.execute(
        "select id, outcome from enqueue_once(%s, 'test_job', '{}', p_origin_id => %s)",
        [request, given.get("origin")],
    ).fetchone()
    assert row is not None
    return row[0], row[1]


def test_a_form_that_is_sent_twice_at_once_makes_one_job(database: Database) -> None:
    request, origin = uuid4(), database.enqueue(status="error")
    begun = threading.Barrier(2)
    found: list[tuple[UUID, str]] = []

    def send() -> None:
        with database.connect("operator") as conn:
            begun.wait()
            found.append(enqueue_once(conn, request, origin=origin))

    threads = [threading.Thread(target=send) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(outcome for _, outcome in found) == ["created", "repeated"]
    assert len({job for job, _ in found}) == 1
    assert database.value("select origin_id from job_origin where job_id = %s", found[0][0]) == origin


def test_the_priority_changes_while_a_job_waits_and_not_after(database: Database) -> None:
    waiting, ended = database.enqueue(), database.enqueue(status="completed")
    with database.connect("operator") as conn:
        assert conn.execute("select change_priority(%s, 7::smallint)", [waiting]).fetchone() == (0,)
        with pytest.raises(psycopg.Error, match="is completed, expected pending or retry"):
            conn.execute("select change_priority(%s, 7::smallint)", [ended])
        with pytest.raises(psycopg.Error, match="there is no job"):
            conn.execute("select change_priority(%s, 7::smallint)", [uuid4()])

    assert [database.job(job)["priority"] for job in (waiting, ended)] == [7, 0]
    assert database.value("select count(*) from audit_entry where action = 'job.priority'") == 1


def test_many_jobs_are_acted_on_by_the_rule_for_one(database: Database) -> None:
    failed = [database.enqueue(status="error", error_class="bad") for _ in range(3)]
    meanwhile = database.enqueue(status="completed")
    twin = database.enqueue(status="error", unique_key="k")
    database.enqueue(unique_key="k")
    with database.connect("operator") as conn:
        ids = [*failed, failed[0], meanwhile, twin, uuid4()]
        row = conn.execute("select done, refused from act_on_jobs('retry', %s, '{error}')", [ids]).fetchone()

    assert row == (3, 3)
    assert [database.job(job)["status"] for job in [*failed, meanwhile, twin]] == [
        *["pending"] * 3,
        "completed",
        "error",
    ]


def save(database: Database, job: UUID, version: int, text: str, actor: str = "kari") -> int:
    with database.connect("operator", autocommit=False) as conn:
        conn.execute("select set_config('jobbko.actor', %s, true)", [actor])
        segments = Jsonb([{"id": 0, "start": 0, "end": 1, "text": text}])
        row = conn.execute("select correct_transcript(%s, %s, %s)", [job, version, segments]).fetchone()
        conn.commit()
    return int(row[0])


def test_a_correction_leaves_the_result_alone_and_the_second_of_two_people_is_told(database: Database) -> None:
    result = {"segments": [{"id": 0, "start": 0, "end": 1, "text": "hei"}]}
    job = database.enqueue("whisper_transcribe", status="completed", result=Jsonb(result))

    assert save(database, job, 0, "Hei.") == 1
    assert save(database, job, 0, "Hei.") == 1, "the same, sent twice"
    assert save(database, job, 1, "Hei!") == 2
    with pytest.raises(psycopg.Error, match="kari has saved version 2"):
        save(database, job, 1, "Hallo", actor="ola")

    assert database.job(job)["result"] == result
    rows = database.rows("select version, actor, segments from transcript_correction order by version")
    assert [(row["version"], row["actor"], row["segments"][0]["text"]) for row in rows] == [
        (1, "kari", "Hei."),
        (2, "kari", "Hei!"),
    ]


def test_what_is_no_transcript_cannot_be_corrected(database: Database) -> None:
    for job in (database.enqueue(status="completed", result=Jsonb({"title": "x"})), database.enqueue()):
        with pytest.raises(psycopg.Error, match="has no transcript"):
            save(database, job, 0, "x")


@pytest.mark.parametrize("role", ["reader", "producer", "plain", "worker_test"])
def test_only_the_operator_may_act(database: Database, role: str) -> None:
    calls = (
        "select enqueue_once(gen_random_uuid(), 'test_job', '{}')",
        "select change_priority(gen_random_uuid(), 1::smallint)",
        "select act_on_jobs('cancel', '{}', '{pending}')",
        "select correct_transcript(gen_random_uuid(), 0, '[]')",
    )
    with database.connect(role) as conn:
        for call in calls:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                conn.execute(call)


def test_a_heartbeat_without_progress_does_not_look_like_progress(database: Database) -> None:
    job = database.enqueue()
    with database.connect("worker_test") as conn:
        token = conn.execute("select lease_token from claim_jobs('test_job', 'w', 1)").fetchone()[0]

        def beat(progress: float | None, note: str | None) -> Any:
            conn.execute("select * from extend_leases(%s, %s, %s::real[], %s)", [[job], [token], [progress], [note]])
            return database.job(job)["progress_at"]

        assert beat(None, None) is None
        first = beat(0.5, "half")
        assert first is not None
        assert beat(0.5, "half") == beat(None, None) == first
        assert beat(0.5, "another note") > first
