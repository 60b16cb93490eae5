"""The ends of a run: complete, fail, postpone, release. Under the right token, the wrong one, the old one, twice."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest

from sidelinja_jobs import queue
from sidelinja_jobs.errors import LeaseLostError, RefusedError
from sidelinja_jobs.models import Claim, Settled
from tests.databases import Database
from tests.sessions import claim_one, expire, make_due, refused, worker_session

ENDS: dict[str, Callable[[Any, Claim], object]] = {
    "complete": lambda conn, run: queue.complete(conn, run, {"n": 1}),
    "fail": lambda conn, run: queue.fail(conn, run, "X", "x"),
    "postpone": lambda conn, run: queue.postpone(conn, run, None, "x"),
    "release": lambda conn, run: queue.release(conn, run, "x"),
}
OUTCOMES = {"complete": "completed", "fail": "failed", "postpone": "postponed", "release": "released"}


def attempts_of(database: Database, job_id: UUID) -> list[tuple[Any, ...]]:
    """Attempt, outcome and charged of each ended run."""
    rows = database.rows("select attempt, outcome, charged from job_attempt where job_id = %s order by id", job_id)
    return [tuple(row.values()) for row in rows]


def wait_seconds(database: Database, settled: Settled) -> float:
    """From now to when the job is due again."""
    return float(
        database.value("select extract(epoch from %s::timestamptz - clock_timestamp())", settled.scheduled_for)
    )


@pytest.mark.parametrize("end", list(ENDS))
def test_a_run_ends_once_and_only_under_its_own_token_and_role(database: Database, end: str) -> None:
    conn = worker_session(database)
    stranger = worker_session(database, "worker_foreign", "foreign_job", "f1")
    job_id = database.enqueue()
    run = claim_one(conn)
    forged = msgspec.structs.replace(run, lease_token=uuid4())

    for session, claim in ((conn, forged), (stranger, run), (stranger, forged)):
        with pytest.raises(LeaseLostError, match=str(job_id)):
            ENDS[end](session, claim)
    assert database.job(job_id)["status"] == "running"
    ENDS[end](conn, run)
    after = database.job(job_id)
    for second in ENDS.values():
        with pytest.raises(LeaseLostError):
            second(conn, run)

    assert database.job(job_id) == after
    assert queue.run_outcome(conn, run) == OUTCOMES[end]
    assert queue.run_outcome(stranger, run) == "lost"


def test_a_null_token_ends_nothing(database: Database) -> None:
    """A program without leases runs the job: its token is null, and null equals nothing."""
    conn = worker_session(database)
    job_id = database.enqueue(status="running")

    for call in ("complete_job(%s, null, '{}')", "fail_job(%s, null, 'X', 'x')", "release_job(%s, null, 'x')"):
        with refused("JQ001"):
            conn.execute(f"select {call}", (job_id,))
    assert database.job(job_id)["status"] == "running"


def test_completion_stores_the_result_and_clears_what_failed_before(database: Database) -> None:
    conn = worker_session(database)
    job_id = database.enqueue()
    queue.fail(conn, claim_one(conn), "ValueError", "once")
    make_due(database, job_id)
    run = claim_one(conn)
    queue.write_checkpoint(conn, run, {"part": 1}, 1)

    queue.complete(conn, run, {"text": "Hei på deg"})

    job = database.job(job_id)
    assert (job["status"], job["result"], job["attempts"]) == ("completed", {"text": "Hei på deg"}, 1)
    assert (job["error_class"], job["error_msg"], job["lease_until"]) == (None, None, None)
    assert job["progress"] == 1
    assert job["started_at"] <= job["completed_at"]
    assert database.rows("select * from job_checkpoint") == []
    assert attempts_of(database, job_id) == [(1, "failed", True)]


def test_a_result_may_be_any_json(database: Database) -> None:
    conn = worker_session(database)
    for result in (None, 5, "text", [1, 2], True, {}):
        job_id = database.enqueue()
        queue.complete(conn, claim_one(conn), result)
        assert database.job(job_id)["result"] == result


def test_a_result_over_16_mb_is_refused_and_the_run_stays_held(database: Database) -> None:
    conn = worker_session(database)
    job_id = database.enqueue()
    run = claim_one(conn)

    with pytest.raises(RefusedError, match="over the limit of 16777216 bytes") as caught:
        queue.complete(conn, run, "x" * 16_777_215)  # and two quotes
    queue.complete(conn, run, "x" * 16_777_214)

    assert "write the data to a file" in str(caught.value)
    assert database.value("select octet_length(result::text) from job_queue where id = %s", job_id) == 16_777_216


def test_completion_commits_with_the_handlers_rows_or_not_at_all(database: Database) -> None:
    database.rows("create table note (job_id uuid primary key)")
    database.rows("grant insert on note to worker_test")
    conn = worker_session(database)
    kept, lost = database.enqueue(), database.enqueue()
    runs = {run.id: run for run in queue.claim(conn, "test_job", "w1", 2)}
    database.rows("update job_queue set lease_token = gen_random_uuid() where id = %s", lost)

    for job_id in (kept, lost):
        try:
            with conn.transaction():
                conn.execute("insert into note values (%s)", (job_id,))
                queue.complete(conn, runs[job_id], {})
        except LeaseLostError:
            assert job_id == lost

    assert database.rows("select job_id from note") == [{"job_id": kept}]
    assert [database.job(job_id)["status"] for job_id in (kept, lost)] == ["completed", "running"]


def test_a_failure_is_recorded_in_full_but_not_without_bound(database: Database) -> None:
    conn = worker_session(database)
    job_id = database.enqueue(max_attempts=1)
    run = claim_one(conn)
    queue.write_checkpoint(conn, run, {"part": 1}, 1)
    queue.extend(conn, [run], [(0.5, "half way")])

    conn.execute(
        "select fail_job(%s, %s, 'ValueError', repeat('æ', 5000000), repeat('t', 100000))", (run.id, run.lease_token)
    )

    job, attempt = database.job(job_id), database.row("select * from job_attempt")
    assert (job["status"], job["error_class"], job["error_msg"]) == ("error", "ValueError", "æ" * 8000)
    assert (attempt["error_msg"], attempt["traceback"]) == ("æ" * 8000, "t" * 32000)
    assert (attempt["checkpoint"], attempt["progress"], attempt["worker_id"]) == (1, 0.5, "w1")
    assert (attempt["started_at"], attempt["lease_token"]) == (run.started_at, run.lease_token)
    assert database.value("select count(*) from job_checkpoint") == 1  # a retry by hand goes on from there


def test_a_permanent_failure_ends_the_job_at_its_first_attempt(database: Database) -> None:
    conn = worker_session(database)
    job_id = database.enqueue(max_attempts=10)

    settled = queue.fail(conn, claim_one(conn), "bad_payload", "no", permanent=True, retry_after_seconds=5)

    assert (settled.status, settled.attempts) == ("error", 1)
    assert database.job(job_id)["completed_at"] is not None


def test_a_retry_after_wins_over_the_backoff_within_30_days_unless_it_is_no_number(database: Database) -> None:
    conn = worker_session(database)
    month = 2_592_000
    infinite = float("inf")
    for after, expected in (
        (0, 0), (-5, 0), (0.25, 0.25), (90, 90), (1e300, month), (infinite, month), (-infinite, 0), (float("nan"), 30),
    ):  # fmt: skip
        job_id = database.enqueue()
        settled = queue.fail(conn, claim_one(conn), "X", "x", retry_after_seconds=after)
        assert settled.status == "retry"
        assert wait_seconds(database, settled) == pytest.approx(expected, abs=1), after
        database.rows("delete from job_queue where id = %s", job_id)


def test_only_failures_count_as_attempts(database: Database) -> None:
    conn = worker_session(database)
    job_id = database.enqueue(max_attempts=2)
    queue.release(conn, claim_one(conn), "SIGTERM")
    assert database.job(job_id)["status"] == "pending"
    queue.postpone(conn, claim_one(conn), datetime.now(UTC), "not yet")
    assert (database.job(job_id)["status"], database.job(job_id)["postponements"]) == ("pending", 1)
    queue.fail(conn, claim_one(conn), "X", "x")
    make_due(database, job_id)
    settled = queue.release(conn, claim_one(conn), "SIGTERM")

    assert (settled.status, settled.attempts) == ("retry", 1)
    assert attempts_of(database, job_id) == [
        (1, "released", False),
        (1, "postponed", False),
        (1, "failed", True),
        (2, "released", False),
    ]
    job = database.job(job_id)
    assert (job["error_class"], job["error_msg"]) == ("X", "x")  # of the failure, not of the release


def test_a_released_job_keeps_its_place(database: Database) -> None:
    conn = worker_session(database)
    first, second = (database.enqueue(scheduled_for=datetime(2026, 1, day, tzinfo=UTC), priority=3) for day in (1, 2))
    run = claim_one(conn)
    before = run.scheduled_for

    settled = queue.release(conn, run, "SIGTERM")

    assert (settled.status, settled.scheduled_for) == ("pending", before)
    assert [claim.id for claim in queue.claim(conn, "test_job", "w1", 2)] == [first, second]


def test_a_postponed_job_waits_until_the_time_within_24_hours(database: Database) -> None:
    conn = worker_session(database)
    waits = []
    for until in (
        "now() + interval '1 hour'",
        "now() + interval '9 days'",
        "'infinity'",
        "now() - interval '1 day'",
        "null",
    ):
        job_id = database.enqueue()
        run = claim_one(conn)
        row = conn.execute(f"select * from postpone_job(%s, %s, {until}, 'busy')", (run.id, run.lease_token)).fetchone()
        waits.append(round(wait_seconds(database, Settled(**row)) / 3600, 2))
        database.rows("delete from job_queue where id = %s", job_id)

    assert waits == [1, 24, 24, 0, 0]


def test_the_21st_postponement_is_a_permanent_error(database: Database) -> None:
    conn = worker_session(database)
    job_id = database.enqueue(max_attempts=5)

    seen = [queue.postpone(conn, claim_one(conn), None, "the provider is away") for _ in range(21)]

    assert [settled.status for settled in seen] == ["pending"] * 20 + ["error"]
    job = database.job(job_id)
    assert (job["error_class"], job["attempts"], job["postponements"]) == ("postponed_too_often", 1, 20)
    assert "the provider is away" in job["error_msg"]
    assert database.value("select pg_column_size(q) < 8192 from job_queue as q")


def test_a_postponement_a_day_after_the_first_is_a_permanent_error(database: Database) -> None:
    conn = worker_session(database)
    database.enqueue()
    queue.postpone(conn, claim_one(conn), None, "away")
    database.rows("update job_attempt set ended_at = ended_at - interval '23 h 59 min'")
    assert queue.postpone(conn, claim_one(conn), None, "away").status == "pending"
    database.rows("update job_attempt set ended_at = ended_at - interval '2 min'")

    assert queue.postpone(conn, claim_one(conn), None, "away").status == "error"


@pytest.mark.parametrize("end", ["fail", "postpone", "release"])
def test_a_cancel_that_was_asked_for_ends_the_job_however_the_run_ends(database: Database, end: str) -> None:
    conn = worker_session(database)
    job_id = database.enqueue(max_attempts=9)
    run = claim_one(conn)
    database.rows("select cancel_job(%s)", job_id)

    ENDS[end](conn, run)

    job = database.job(job_id)
    assert (job["status"], job["error_class"], job["attempts"]) == ("error", "cancelled", 0)
    assert (job["postponements"], job["completed_at"] is not None) == (0, True)
    assert attempts_of(database, job_id) == [(1, "cancelled", False)]


def test_work_that_was_finished_before_the_cancel_arrived_is_kept(database: Database) -> None:
    conn = worker_session(database)
    job_id = database.enqueue()
    run = claim_one(conn)
    database.rows("select cancel_job(%s)", job_id)

    queue.complete(conn, run, {"n": 1})

    assert database.job(job_id)["status"] == "completed"


def test_a_settled_run_is_recognised_whatever_happened_since(database: Database) -> None:
    """`run_outcome` after the job was retried, swept, deleted: what a worker asks after a broken commit."""
    conn = worker_session(database)
    job_id = database.enqueue(max_attempts=1)
    first = claim_one(conn)
    assert queue.run_outcome(conn, first) == "running"
    queue.fail(conn, first, "X", "x")
    database.rows("select retry_job(%s)", job_id)
    second = claim_one(conn)
    expire(database, job_id)
    queue.sweep(conn)

    assert [queue.run_outcome(conn, run) for run in (first, second)] == ["failed", "lost"]
    database.rows("delete from job_queue")
    assert queue.run_outcome(conn, first) == "lost"
