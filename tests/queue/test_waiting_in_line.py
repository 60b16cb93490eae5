"""Jobs that stand in line, since what all of their type need is away: whose turn it is, what it costs, how it ends."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from sidelinja_jobs import queue
from sidelinja_jobs.models import Claim
from tests.databases import Database
from tests.sessions import claim_one, make_due, refused, run_in_threads, worker_session

TAKE_TURN = "select take_turn(%s, %s, %s, %s) as turn"
END_LINE = "select end_line(%s, %s) as count"


def take_turn(conn: Any, claim: Claim, *, seconds: float = 30, opens: bool = True) -> datetime | None:
    turn: datetime | None = conn.execute(TAKE_TURN, [claim.id, claim.lease_token, seconds, opens]).fetchone()["turn"]
    return turn


def stand_in_line(conn: Any, claim: Claim, *, seconds: float = 30) -> datetime:
    """As a worker does that got no answer; returns when the job tries again."""
    turn = take_turn(conn, claim, seconds=seconds)
    assert turn is not None
    settled = queue.postpone(conn, claim, turn, "the provider is away")
    assert (settled.status, settled.attempts, settled.scheduled_for) == ("pending", 0, turn)
    return turn


def line_of(conn: Any, database: Database, count: int) -> tuple[list[UUID], list[datetime]]:
    """So many jobs in line, and their turns."""
    jobs = [database.enqueue() for _ in range(count)]
    return jobs, [stand_in_line(conn, claim_one(conn)) for _ in jobs]


def end_line(conn: Any, claim: Claim) -> int:
    count: int = conn.execute(END_LINE, [claim.id, claim.lease_token]).fetchone()["count"]
    return count


def seconds_to(database: Database, turn: datetime) -> float:
    seconds: float = (turn - database.value("select clock_timestamp()")).total_seconds()
    return seconds


def test_turns_are_one_behind_another_and_who_has_tried_goes_to_the_end(database: Database) -> None:
    conn = worker_session(database)
    jobs, turns = line_of(conn, database, 3)
    assert [round((turn - turns[0]).total_seconds()) for turn in turns] == [0, 30, 60]
    assert 29 < seconds_to(database, turns[0]) <= 30

    make_due(database, jobs[0])
    again = stand_in_line(conn, claim_one(conn))

    assert again == turns[2] + timedelta(seconds=30)


def test_a_line_is_not_opened_by_who_does_not_ask_and_then_joined_by_all(database: Database) -> None:
    conn, other = worker_session(database), worker_session(database, worker_id="w2")
    first, second = (database.enqueue(), database.enqueue()) and (claim_one(conn), claim_one(conn))
    assert take_turn(conn, first, opens=False) is None
    assert database.rows("select * from job_line") == []

    turn = take_turn(conn, first)

    assert turn is not None
    queue.postpone(conn, first, turn, "x")
    assert take_turn(other, second, opens=False) == turn + timedelta(seconds=30)


def test_somebody_tries_soon_though_those_who_were_to_try_are_gone(database: Database) -> None:
    conn = worker_session(database)
    jobs, turns = line_of(conn, database, 6)
    for job in jobs[1:4]:
        database.connect("operator").execute("select cancel_job(%s, 'x')", [job])

    make_due(database, jobs[0])
    again = stand_in_line(conn, claim_one(conn))

    assert 29 < seconds_to(database, again) <= 30
    make_due(database, jobs[0])
    assert 29 < seconds_to(database, stand_in_line(conn, claim_one(conn))) <= 30  # until the others' turns are near
    assert again < turns[4]


def test_no_turn_is_later_than_in_an_hour(database: Database) -> None:
    conn = worker_session(database)
    _, turns = line_of(conn, database, 8)
    for seconds in (600.0, 3000.0, 1e9, float("nan")):
        database.enqueue()
        turns.append(stand_in_line(conn, claim_one(conn), seconds=seconds))

    assert 3590 < seconds_to(database, max(turns)) <= 3600


def test_turns_are_not_counted_whatever_their_number_and_no_time_is_too_long(database: Database) -> None:
    conn = worker_session(database)
    job = database.enqueue(max_attempts=1)
    queue.postpone(conn, claim_one(conn), database.value("select now()"), "on its own")
    for _ in range(25):
        make_due(database, job)
        stand_in_line(conn, claim_one(conn))
    database.rows("update job_attempt set ended_at = ended_at - interval '2 days' where error_class = 'in_line'")
    make_due(database, job)
    claim = claim_one(conn)

    settled = queue.postpone(conn, claim, database.value("select now() + interval '1 minute'"), "on its own again")

    row = database.job(job)
    assert (settled.status, row["attempts"], row["postponements"]) == ("pending", 0, 2)
    why = database.value("select detail from explain_job(%s) where reason = 'postponed'", job)
    assert why["why"] == "on its own again"


def test_an_answer_makes_those_in_line_due_and_nobody_else(database: Database) -> None:
    conn = worker_session(database)
    jobs, _ = line_of(conn, database, 3)
    moved, planned = jobs[1], database.enqueue(scheduled_for=database.value("select now() + interval '1 day'"))
    day = database.value(
        "update job_queue set scheduled_for = now() + interval '1 day' where id = %s returning 1", moved
    )
    assert day == 1
    other = worker_session(database, job_type="other_job", worker_id="o1")
    database.enqueue("other_job")
    turn = stand_in_line(other, claim_one(other, "other_job", "o1"))
    database.enqueue()
    claim = claim_one(conn)

    assert [end_line(conn, claim), end_line(conn, claim)] == [2, 0]

    due = database.rows("select id from job_queue where status = 'pending' and scheduled_for <= clock_timestamp()")
    assert {row["id"] for row in due} == {jobs[0], jobs[2]}
    assert database.job(planned)["scheduled_for"] > turn
    assert [row["job_type"] for row in database.rows("select job_type from job_line")] == ["other_job"]


def test_a_line_that_ends_before_a_job_is_put_back_makes_it_due_then(database: Database) -> None:
    conn, other = worker_session(database), worker_session(database, worker_id="w2")
    line_of(conn, database, 2)
    late, answered = database.enqueue(), database.enqueue()
    claim = claim_one(conn)
    turn = take_turn(conn, claim)

    end_line(other, claim_one(other, worker_id="w2"))
    queue.postpone(conn, claim, turn, "the provider was away")

    row = database.job(late)
    assert (row["status"], row["postponements"]) == ("pending", 0)
    assert seconds_to(database, row["scheduled_for"]) <= 0
    assert database.job(answered)["status"] == "running"
    assert take_turn(conn, claim_one(conn), opens=False) is None  # the line is over


def test_the_end_of_a_line_wakes_workers_that_sleep(database: Database) -> None:
    conn = worker_session(database)
    line_of(conn, database, 1)
    database.enqueue()
    claim = claim_one(conn)
    listener = database.connect("worker_test")
    listener.execute("listen job_ready")

    end_line(conn, claim)

    assert [told.payload for told in listener.notifies(timeout=5, stop_after=1)] == ["test_job"]


def test_only_who_holds_a_run_of_the_type_stands_in_line_or_ends_one(database: Database) -> None:
    conn, foreign = worker_session(database), worker_session(database, "worker_foreign", "foreign_job", "f1")
    line_of(conn, database, 1)
    database.enqueue()
    claim = claim_one(conn)

    for call, arguments in ((TAKE_TURN, [30, True]), (END_LINE, [])):
        with refused("JQ001"):
            foreign.execute(call, [claim.id, claim.lease_token, *arguments])
    queue.release(conn, claim, "the run is over")
    for call, arguments in ((TAKE_TURN, [30, True]), (END_LINE, [])):
        with refused("JQ001"):
            conn.execute(call, [claim.id, claim.lease_token, *arguments])
    assert database.value("select count(*) from job_line") == 1
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        conn.execute("delete from job_line")


def test_many_stand_in_line_and_end_it_at_once(database: Database) -> None:
    """No deadlock, and nobody is forgotten: at the end all are due, or were never in line."""
    for _ in range(8):
        database.enqueue()

    def work(number: int) -> None:
        conn = worker_session(database, worker_id=f"w{number}")
        for turn in range(25):
            claims = queue.claim(conn, "test_job", f"w{number}", 1)
            for claim in claims:
                if (turn + number) % 3:
                    queue.postpone(conn, claim, take_turn(conn, claim), "away")
                else:
                    end_line(conn, claim)
                    queue.release(conn, claim, "answered")

    run_in_threads(work, 4)
    conn = worker_session(database, worker_id="last")
    database.enqueue(priority=9)
    end_line(conn, claim_one(conn, worker_id="last"))

    assert database.value("select count(*) from job_line") == 0
    assert database.value("select count(*) from job_queue where scheduled_for > clock_timestamp()") == 0
