"""The ledger of paid calls: who may write it, and what follows what."""

from decimal import Decimal
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from sidelinja_jobs import queue
from tests.databases import Database
from tests.queue.llm_caller import SETTLE, Caller, call_of, hash_of, new_caller, next_run
from tests.sessions import expire, refused, worker_session


@pytest.fixture
def caller(database: Database) -> Caller:
    return new_caller(database)


# The life of a call.


def test_a_call_is_in_the_ledger_before_and_after(database: Database, caller: Caller) -> None:
    call_id = caller.reserve("0.5")["call_id"]
    assert call_of(database, call_id)["state"] == "reserved"

    caller.conn.execute("select mark_llm_call_sent(%s)", (call_id,))
    caller.conn.execute("select note_llm_generation(%s, 'gen-1')", (call_id,))
    assert (call_of(database, call_id)["state"], call_of(database, call_id)["charged_usd"]) == ("sent", Decimal("0.5"))

    caller.settle(
        call_id, "received", "0.0123456789", "provider", response='{"a": "\\u0000"}', model_used="b",
        finish_reason="stop", provider="P", http_status=200, usage={"prompt_tokens": 5},
    )  # fmt: skip

    call = call_of(database, call_id)
    assert (call["state"], call["cost_usd"], call["charged_usd"]) == (
        "received",
        Decimal("0.0123456789"),
        call["cost_usd"],
    )
    assert (call["generation_id"], call["response"], call["usage"]) == (
        "gen-1",
        '{"a": "\\u0000"}',
        {"prompt_tokens": 5},
    )
    assert call["reserved_at"] < call["sent_at"] < call["settled_at"]


def test_each_write_may_be_repeated_when_its_answer_was_lost(database: Database, caller: Caller) -> None:
    first, second = caller.reserve(), caller.reserve()
    assert (first["call_id"], second["outcome"]) == (second["call_id"], "reserved")

    for _ in range(2):
        caller.conn.execute("select mark_llm_call_sent(%s)", (first["call_id"],))
    for _ in range(2):
        caller.settle(first["call_id"], "received", 1, "provider", response="{}")

    assert database.value("select count(*) from llm_call") == 1
    assert call_of(database, first["call_id"])["state"] == "received"


ALLOWED = {
    ("reserved", "failed"), ("sent", "received"), ("sent", "failed"), ("sent", "unknown"), ("received", "received"),
    ("failed", "failed"), ("unknown", "unknown"), ("unknown", "received"), ("unknown", "failed"),
}  # fmt: skip


@pytest.mark.parametrize("before", ["reserved", "sent", "received", "failed", "unknown"])
def test_no_other_state_follows(database: Database, caller: Caller, before: str) -> None:
    for number, after in enumerate(("reserved", "sent", "received", "failed", "unknown", "paid", None)):
        call_id = caller.reserve(question=str(number))["call_id"]
        database.rows("update llm_call set state = %s where id = %s", before, call_id)
        if (before, after) in ALLOWED:
            caller.settle(call_id, str(after), 0, "unbilled")
        else:
            with refused("JQ002", "cannot become"):
                caller.conn.execute(SETTLE, (call_id, after, 0, "unbilled", Jsonb({}), None))
        assert call_of(database, call_id)["state"] == (after if (before, after) in ALLOWED else before)


@pytest.mark.parametrize("cost", ["-1", "NaN", "100001", "Infinity"])
def test_money_that_is_no_money_is_refused(caller: Caller, cost: str) -> None:
    call_id = caller.send()

    with pytest.raises(psycopg.Error):
        caller.settle(call_id, "received", Decimal(cost), "provider")
    with pytest.raises(psycopg.Error):
        caller.reserve(Decimal(cost), question="another", job=None, day=None)
    with refused("JQ002", "must be numbers"):
        caller.reserve(1, question="another", day=Decimal("NaN"))


# Runs that die.


def test_an_answer_is_found_again_by_the_next_run(database: Database, caller: Caller) -> None:
    call_id = caller.send()
    caller.settle(call_id, "received", "0.1", "provider", response='{"answer": 1}')

    again = next_run(database, caller)

    (found,) = again.find()
    assert (found["id"], found["response"]) == (call_id, '{"answer": 1}')
    assert again.find("another question") == []


def test_a_run_that_died_before_it_sent_gives_its_money_back(database: Database, caller: Caller) -> None:
    call_id = caller.reserve("5", day=6)["call_id"]

    again = next_run(database, caller)

    assert again.find() == []
    call = call_of(database, call_id)
    assert (call["state"], call["cost_usd"], call["cost_source"]) == ("failed", 0, "unbilled")
    assert again.reserve("5", day=6)["outcome"] == "reserved"


def test_money_of_a_dead_run_comes_back_without_its_job(database: Database, caller: Caller) -> None:
    """Another job's reservation finds it, also when the dead one never runs again."""
    caller.reserve("5", day=6)
    expire(database, caller.claim.id)
    queue.sweep(caller.conn)

    other = new_caller(database, "w2")

    assert other.reserve("5", day=6)["outcome"] == "reserved"


def test_a_run_that_died_after_it_sent_may_have_paid(database: Database, caller: Caller) -> None:
    call_id = caller.send("5", day=6)
    caller.conn.execute("select note_llm_generation(%s, 'gen-7')", (call_id,))

    again = next_run(database, caller)

    (found,) = again.find()
    assert (found["state"], found["generation_id"], found["charged_usd"]) == ("unknown", "gen-7", 5)
    assert again.reserve("5", day=6)["outcome"] == "day"  # it counts with all that it could have cost
    second = again.reserve("1", day=6, duplicate=True)
    assert call_of(database, second["call_id"])["is_possible_duplicate"]


def test_a_lost_run_sends_nothing(database: Database, caller: Caller) -> None:
    call_id = caller.reserve()["call_id"]
    next_run(database, caller)

    with refused("JQ001"):
        caller.conn.execute("select mark_llm_call_sent(%s)", (call_id,))
    with refused("JQ001"):
        caller.reserve(question="another")
    with refused("JQ001"):
        caller.find()


def test_an_answer_that_was_paid_for_is_kept_although_its_run_is_lost(database: Database, caller: Caller) -> None:
    call_id = caller.send()
    again = next_run(database, caller)
    assert [call["state"] for call in again.find()] == ["unknown"]

    caller.settle(call_id, "received", "0.2", "provider", response='{"late": true}')

    (found,) = again.find()
    assert (found["id"], found["state"], found["charged_usd"]) == (call_id, "received", Decimal("0.2"))


def test_a_late_answer_beside_a_newer_call_is_for_the_books_alone(database: Database, caller: Caller) -> None:
    call_id = caller.send()
    again = next_run(database, caller)
    newer = again.send(duplicate=True)

    caller.settle(call_id, "received", "0.2", "provider", response='{"late": true}')
    again.settle(newer, "received", "0.3", "provider", response='{"newer": true}')

    assert [call["id"] for call in again.find()] == [newer]
    assert call_of(database, call_id)["charged_usd"] == Decimal("0.2")


def test_answers_of_no_use_are_not_found_again_but_stay_paid(database: Database, caller: Caller) -> None:
    call_id = caller.send()
    caller.settle(call_id, "received", "0.2", "provider", response="nonsense")

    parameters = (caller.claim.id, caller.claim.lease_token, "whole", [hash_of("q")])
    assert caller.conn.execute("select discard_llm_calls(%s, %s, %s, %s) as count", parameters).fetchone() == {
        "count": 1
    }

    assert caller.find() == []
    assert caller.reserve("1", job="1.1")["outcome"] == "job"
    assert caller.reserve("0.5", job="1.1")["outcome"] == "reserved"


# Rights.


@pytest.fixture
def foreign_call(database: Database) -> tuple[Any, Caller, UUID]:
    """Another worker's login, and a call that is none of its business although it knows all ids."""
    conn = worker_session(database, "worker_foreign", "foreign_job", "w9")
    mine = new_caller(database)
    return conn, mine, mine.send()


def test_another_workers_call_is_out_of_reach(database: Database, foreign_call: tuple[Any, Caller, UUID]) -> None:
    conn, mine, call_id = foreign_call
    before = call_of(database, call_id)
    thief = Caller(conn, mine.claim)

    with refused("JQ001"):
        thief.find()
    with refused("JQ001"):
        thief.reserve(question="another")
    with refused("JQ001"):
        conn.execute("select mark_llm_call_sent(%s)", (call_id,))
    with refused("JQ004"):
        conn.execute("select note_llm_generation(%s, 'gen-x')", (call_id,))
    with refused("JQ004"):
        thief.settle(call_id, "received", 0, "provider", response="{}")
    with refused("JQ001"):
        conn.execute("select discard_llm_calls(%s, %s, 'whole', %s)",
                     (mine.claim.id, mine.claim.lease_token, [hash_of("q")]))  # fmt: skip
    assert call_of(database, call_id) == before


def test_people_read_the_ledger_and_nobody_writes_it(database: Database, caller: Caller) -> None:
    caller.send()
    for role in ("operator", "reader"):
        assert len(database.connect(role).execute("select * from llm_call").fetchall()) == 1
    for role in ("operator", "reader", "worker_test", "producer", "plain"):
        with refused("42501"):
            database.connect(role).execute("update llm_call set cost_usd = 0")


def test_a_transcript_is_read_by_the_analysing_worker_alone(database: Database) -> None:
    database.add_job_type("openrouter_analyze", role="worker_openrouter")
    done = database.enqueue("whisper_transcribe", {"path": "a"}, status="completed", result=Jsonb({"text": "Hei"}))
    analyst = database.connect("worker_openrouter", row_factory=dict_row)

    def read(conn: Any, job_id: UUID) -> Any:
        return conn.execute("select read_transcript(%s) as result", (job_id,)).fetchone()["result"]

    assert read(analyst, done) == {"text": "Hei"}
    for role in ("worker_test", "worker_whisper"):
        with refused("42501"):
            read(database.connect(role), done)
    with refused("JQ004", "there is no job"):
        read(analyst, UUID(int=0))
    with refused("JQ002", 'of type "test_job", expected whisper_transcribe'):
        read(analyst, database.enqueue(status="completed", result=Jsonb({"secret": 1})))
    for status in ("pending", "running", "retry"):
        with refused("JQ005", f"not completed yet, it is {status}"):
            read(analyst, database.enqueue("whisper_transcribe", {"path": "b"}, status=status))
    for error_msg, told in (("no such file", "no such file"), ("x " * 245 + "sk-or-v1-0123", "x " * 245 + "…")):
        failed = database.enqueue("whisper_transcribe", {"path": "b"}, status="error", error_msg=error_msg)
        with refused("JQ002", f"ended in error: {told}\n"):
            read(analyst, failed)
