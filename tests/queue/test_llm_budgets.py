"""Budgets of paid calls: of a job, of a day, of a type's day; they hold whoever races for them."""

import threading
from decimal import Decimal

import psycopg
import pytest

from tests.databases import Database
from tests.queue.llm_caller import Caller, new_caller
from tests.sessions import claim_one, refused, run_in_threads, worker_session


@pytest.fixture
def caller(database: Database) -> Caller:
    return new_caller(database)


def test_a_budget_says_what_is_left_of_it(database: Database, caller: Caller) -> None:
    first = caller.send("2", question="a", day=3)
    caller.settle(first, "received", "0.75", "provider", response="{}")

    told = caller.reserve("2", question="b", day="2.5")

    assert (told["call_id"], told["outcome"]) == (None, "day")
    assert (told["spent_usd"], told["budget_usd"]) == (Decimal("0.75"), Decimal("2.5"))
    assert caller.reserve("1.75", question="b", day="2.5")["outcome"] == "reserved"


def test_each_budget_is_held_and_the_worst_is_named(caller: Caller) -> None:
    caller.settle(caller.send("1", question="a"), "received", 1, "provider", response="{}")

    assert caller.reserve(1, question="b", job="1.5", day=1, type_day=1)["outcome"] == "job"
    assert caller.reserve(1, question="b", day="1.5")["outcome"] == "day"
    assert caller.reserve(1, question="b", type_day="1.5")["outcome"] == "type_day"
    assert caller.reserve(2, question="b", day="1.5", type_day=5)["outcome"] == "never"
    assert caller.reserve(2, question="b", day=5, type_day="1.5")["outcome"] == "never"
    assert caller.reserve(1, question="b", job=None, day=None, type_day=None)["outcome"] == "reserved"


def test_money_that_may_come_back_is_worth_waiting_for(database: Database, caller: Caller) -> None:
    flying = caller.send("2")
    other = new_caller(database, "w2")

    told = other.reserve("2", day=3)
    assert (told["outcome"], told["spent_usd"], told["in_flight_usd"]) == ("in_flight", 0, 2)

    caller.settle(flying, "received", "0.01", "provider", response="{}")
    assert other.reserve("2", day=3)["outcome"] == "reserved"


def test_another_type_spends_of_the_day_but_not_of_the_types_day(database: Database, caller: Caller) -> None:
    caller.settle(caller.send("1"), "received", 1, "provider", response="{}")
    conn = worker_session(database, job_type="other_job", worker_id="w2")
    database.enqueue("other_job")
    other = Caller(conn, claim_one(conn, "other_job", "w2"))

    assert other.reserve(1, day="1.5")["outcome"] == "day"
    assert other.reserve(1, day=2, type_day=1)["outcome"] == "reserved"


def test_the_day_turns_at_midnight_utc_and_the_jobs_money_does_not(database: Database, caller: Caller) -> None:
    call_id = caller.send("1", question="a")
    caller.settle(call_id, "received", 1, "provider", response="{}")
    assert caller.reserve(1, question="b", day="1.5")["outcome"] == "day"

    database.rows("update llm_call set day = day - 1")

    assert caller.reserve(1, question="b", day="1.5", job="1.5")["outcome"] == "job"
    assert caller.reserve(1, question="b", day="1.5", job=3)["outcome"] == "reserved"
    today = database.value("select (now() at time zone 'UTC')::date")
    assert database.value("select max(day) from llm_call") == today


def test_a_sessions_time_zone_moves_no_midnight(database: Database, caller: Caller) -> None:
    caller.conn.execute("set time zone 'Pacific/Kiritimati'")  # 14 hours ahead: tomorrow, for most of the day

    caller.reserve()

    assert database.value("select day = (now() at time zone 'UTC')::date from llm_call")


def test_a_budget_is_not_reserved_from_an_old_view_of_the_table(caller: Caller) -> None:
    caller.conn.execute("begin isolation level repeatable read")

    with refused("JQ002", "read committed"):
        caller.reserve()


def test_ten_at_once_never_spend_more_than_the_day_has(database: Database) -> None:
    """Ten connections, each with its job, reserve, send and settle as fast as they can: 0.3 each of 2 there are."""
    callers = [new_caller(database, f"w{number}") for number in range(10)]
    barrier = threading.Barrier(10)
    over: list[Decimal] = []
    total = "select coalesce(sum(charged_usd), 0) from llm_call where day = (now() at time zone 'UTC')::date"

    def spend(number: int) -> None:
        caller = callers[number]
        with psycopg.connect(database.dsn(), autocommit=True) as watching:
            barrier.wait(10)
            for turn in range(400):
                told = caller.reserve("0.3", question=str(turn), day=2)
                (spent,) = watching.execute(total).fetchone() or (None,)
                over.extend([spent] if spent > 2 else [])
                if told["outcome"] == "day":
                    return
                if told["outcome"] == "in_flight":  # until others have settled
                    continue
                caller.conn.execute("select mark_llm_call_sent(%s)", (told["call_id"],))
                caller.settle(told["call_id"], "received", "0.1", "provider", response="{}")

    run_in_threads(spend, 10)

    assert over == []
    spent = database.value(total)
    assert Decimal("1.7") < spent <= 2  # used up all the same: the last 0.3 cannot be reserved
    assert database.value("select count(*) from llm_call where state = 'received'") * Decimal("0.1") == spent
