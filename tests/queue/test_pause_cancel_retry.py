"""What an operator, and within limits a worker, may do to types and jobs: pause, resume, cancel, retry."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sidelinja_jobs import queue
from sidelinja_jobs.errors import RefusedError
from tests.databases import Database
from tests.sessions import claim_one, make_due, refused, worker_session


def in_hours(hours: float) -> datetime:
    return datetime.now(UTC) + timedelta(hours=hours)


def pause_of(database: Database, job_type: str = "test_job") -> dict[str, Any]:
    return database.row(
        "select pause_origin, pause_reason, paused_until, paused_at from job_type where name = %s", job_type
    )


@pytest.fixture
def operator(database: Database) -> Any:
    return database.connect("operator")


# ---------------------------------------------------------------- pause and resume


def test_an_operators_pause_stands_until_an_operator_lifts_it(database: Database, operator: Any) -> None:
    conn = worker_session(database)
    assert operator.execute("select pause_job_type('test_job', null, 'new disk')").fetchone() == (True,)

    assert not queue.pause_job_type(conn, "test_job", in_hours(1), "quota", "worker")
    queue.sweep(conn)

    pause = pause_of(database)
    assert (pause["pause_origin"], pause["pause_reason"], pause["paused_until"]) == ("operator", "new disk", None)
    assert operator.execute("select resume_job_type('test_job')").fetchone() == (True,)
    assert set(pause_of(database).values()) == {None}
    assert operator.execute("select resume_job_type('test_job')").fetchone() == (False,)


def test_an_operators_pause_that_is_over_no_longer_stands_in_the_way(database: Database, operator: Any) -> None:
    conn = worker_session(database)
    operator.execute("select pause_job_type('test_job', now() + interval '1 h')")
    database.rows("update job_type set paused_until = now() - interval '1 s' where name = 'test_job'")

    assert queue.pause_job_type(conn, "test_job", in_hours(1), "quota", "budget")
    assert pause_of(database)["pause_origin"] == "budget"


def test_a_worker_pauses_its_own_type(database: Database) -> None:
    conn = worker_session(database)
    for origin in ("worker", "budget"):
        assert queue.pause_job_type(conn, "test_job", in_hours(1), "quota used up", origin)
        pause = pause_of(database)
        assert (pause["pause_origin"], pause["pause_reason"]) == (origin, "quota used up")
        assert pause["paused_at"] < pause["paused_until"]


def test_a_workers_pause_that_is_over_already_lasts_a_second(database: Database) -> None:
    """A handler whose clock is behind must not pause, claim and pause again in a spin."""
    conn = worker_session(database)
    database.enqueue()

    assert queue.pause_job_type(conn, "test_job", in_hours(-1), "quota", "worker")

    assert queue.claim(conn, "test_job", "w1", 1) == []
    pause = pause_of(database)
    assert timedelta(seconds=0.9) < pause["paused_until"] - pause["paused_at"] < timedelta(seconds=1.1)


def test_a_worker_must_say_until_when_and_may_not_pose_as_the_operator(database: Database) -> None:
    conn = worker_session(database)

    for until, origin in ((None, "worker"), (None, "budget"), (in_hours(1), "operator")):
        with pytest.raises(
            RefusedError, match="a worker pauses its type with origin worker or budget, and until a time"
        ):
            queue.pause_job_type(conn, "test_job", until, "x", origin)
    with pytest.raises(RefusedError):
        queue.pause_job_type(conn, "test_job", in_hours(1), "x", "nobody")
    with refused("JQ002"):
        conn.execute("select pause_job_type('test_job')")
    assert pause_of(database)["paused_at"] is None


def test_a_worker_leaves_other_types_alone(database: Database, operator: Any) -> None:
    conn = worker_session(database)
    operator.execute("select pause_job_type('foreign_job', now() + interval '1 h', 'x', 'worker')")

    with refused("JQ004"):
        conn.execute("select pause_job_type('foreign_job', now() + interval '2 h')")
    assert pause_of(database, "foreign_job")["pause_origin"] == "worker"


def test_an_operator_overrides_a_workers_pause(database: Database, operator: Any) -> None:
    queue.pause_job_type(worker_session(database), "test_job", in_hours(1), "quota", "worker")

    operator.execute("select pause_job_type('test_job', null, %s)", ("x" * 5000,))

    pause = pause_of(database)
    assert (pause["pause_origin"], pause["pause_reason"], pause["paused_until"]) == ("operator", "x" * 1000, None)


def test_a_type_that_does_not_exist_can_neither_be_paused_nor_resumed(operator: Any) -> None:
    with refused("JQ004", "there is no job type .*nobodys_job"):
        operator.execute("select pause_job_type('nobodys_job')")
    with refused("JQ004", "there is no job type .*nobodys_job"):
        operator.execute("select resume_job_type('nobodys_job')")


def test_a_pause_until_an_unreadable_time_is_refused(database: Database, operator: Any) -> None:
    worker = worker_session(database)
    for until in ("infinity", "-infinity", "0044-03-15 BC", "9999-12-31", "1999-12-31"):
        for conn in (operator, worker):
            with refused("JQ002", "out of range"):
                conn.execute("select pause_job_type('test_job', %s::timestamptz)", (until,))

    assert operator.execute("select count(*) from job_type where paused_at is null").fetchone()[0] > 2


def test_runs_go_on_while_their_type_is_paused(database: Database, operator: Any) -> None:
    conn = worker_session(database)
    job_id = database.enqueue()
    run = claim_one(conn)
    operator.execute("select pause_job_type('test_job')")

    assert queue.extend(conn, [run], [(0.5, None)]) == {job_id: False}
    queue.complete(conn, run, {})
    assert database.job(job_id)["status"] == "completed"


# ---------------------------------------------------------------- cancel


@pytest.mark.parametrize("status", ["pending", "retry"])
def test_a_waiting_job_is_cancelled_at_once(database: Database, operator: Any, status: str) -> None:
    job_id = database.enqueue(status=status, attempts=1, scheduled_for=in_hours(5), unique_key="k")

    answer = operator.execute("select cancel_job(%s, %s)", (job_id, "wrong file")).fetchone()

    job = database.job(job_id)
    assert answer == ("cancelled",)
    assert (job["status"], job["error_class"], job["error_msg"]) == (
        "error", "cancelled", "cancelled while waiting: wrong file",
    )  # fmt: skip
    assert job["completed_at"] is not None
    assert database.connect("operator").execute(
        "select outcome from enqueue_job('test_job', '{}', p_unique_key => 'k')"
    ).fetchone() == ("created",)


def test_a_running_job_is_asked_to_stop_and_its_heartbeat_hears_it(database: Database, operator: Any) -> None:
    conn = worker_session(database)
    job_id = database.enqueue()
    run = claim_one(conn)

    answers = [operator.execute("select cancel_job(%s)", (job_id,)).fetchone()[0] for _ in range(2)]

    assert answers == ["requested", "requested"]
    assert database.job(job_id)["status"] == "running"
    assert queue.extend(conn, [run], [(None, None)]) == {job_id: True}
    assert queue.release(conn, run, "cancelled").status == "error"
    assert database.job(job_id)["error_msg"] == "cancelled while running"


def test_a_job_that_has_ended_or_never_was_cannot_be_cancelled(database: Database, operator: Any) -> None:
    for status in ("completed", "error"):
        with refused("JQ002", f"has ended already: {status}"):
            operator.execute("select cancel_job(%s)", (database.enqueue(status=status),))
    with refused("JQ004", "there is no job"):
        operator.execute("select cancel_job(gen_random_uuid())")


def test_a_cancel_does_not_outlive_the_run_it_was_meant_for(database: Database, operator: Any) -> None:
    conn = worker_session(database)
    job_id = database.enqueue()
    run = claim_one(conn)
    operator.execute("select cancel_job(%s)", (job_id,))
    queue.release(conn, run, "cancelled")
    operator.execute("select retry_job(%s)", (job_id,))

    second = claim_one(conn)

    assert queue.extend(conn, [second], [(None, None)]) == {job_id: False}
    queue.release(conn, second, "SIGTERM")
    assert database.job(job_id)["status"] == "pending"


def test_the_reason_of_a_cancel_is_kept_when_the_job_was_running(database: Database, operator: Any) -> None:
    conn = worker_session(database)
    job_id = database.enqueue()
    run = claim_one(conn)
    operator.execute("select cancel_job(%s, 'wrong file')", (job_id,))

    queue.release(conn, run, "worker stopped: cancelled")

    assert database.job(job_id)["error_msg"] == "cancelled while running: wrong file"


# ---------------------------------------------------------------- retry


def test_a_job_in_error_starts_anew_and_keeps_its_checkpoints(database: Database, operator: Any) -> None:
    conn = worker_session(database)
    job_id = database.enqueue(max_attempts=2, priority=4)
    for turn in range(2):
        make_due(database, job_id)
        run = claim_one(conn)
        queue.extend(conn, [run], [(0.5, "half way")])
        queue.write_checkpoint(conn, run, {"part": turn}, turn + 1)
        queue.fail(conn, run, "X", "x")
    assert database.job(job_id)["status"] == "error"

    assert operator.execute("select retry_job(%s)", (job_id,)).fetchone() == ("retried",)

    job = database.job(job_id)
    assert (job["status"], job["attempts"], job["max_attempts"], job["priority"]) == ("pending", 0, 2, 4)
    left = ("error_class", "error_msg", "completed_at", "progress", "progress_note", "lease_token", "worker_id")
    assert {name: job[name] for name in left} == dict.fromkeys(left)
    run = claim_one(conn)
    assert [checkpoint.data for checkpoint in queue.read_checkpoints(conn, run)] == [{"part": 0}, {"part": 1}]
    assert database.value("select count(*) from job_attempt where forgiven") == 2


def test_postponements_are_forgiven_too(database: Database, operator: Any) -> None:
    conn = worker_session(database)
    job_id = database.enqueue()
    for _ in range(21):
        queue.postpone(conn, claim_one(conn), None, "away")
    database.rows("update job_attempt set ended_at = ended_at - interval '2 days'")
    operator.execute("select retry_job(%s)", (job_id,))

    assert [queue.postpone(conn, claim_one(conn), None, "away").status for _ in range(20)] == ["pending"] * 20


@pytest.mark.parametrize("status", ["pending", "retry"])
def test_a_job_that_waits_for_later_is_pulled_forward(database: Database, operator: Any, status: str) -> None:
    job_id = database.enqueue(status=status, attempts=1, scheduled_for=in_hours(5))

    answer = operator.execute("select retry_job(%s)", (job_id,)).fetchone()

    assert answer == ("pulled_forward",)
    assert (database.job(job_id)["status"], database.job(job_id)["attempts"]) == (status, 1)
    assert claim_one(worker_session(database)).id == job_id


def test_a_job_that_is_due_already_keeps_its_place(database: Database, operator: Any) -> None:
    due = datetime(2026, 1, 1, tzinfo=UTC)
    job_id = database.enqueue(scheduled_for=due)

    operator.execute("select retry_job(%s)", (job_id,))

    assert database.job(job_id)["scheduled_for"] == due


def test_a_job_that_runs_or_is_completed_or_never_was_cannot_be_retried(database: Database, operator: Any) -> None:
    for status in ("running", "completed"):
        with refused("JQ002", f"is {status}, expected error, retry or pending"):
            operator.execute("select retry_job(%s)", (database.enqueue(status=status),))
    with refused("JQ004", "there is no job"):
        operator.execute("select retry_job(gen_random_uuid())")


def test_a_job_whose_key_is_taken_meanwhile_cannot_be_retried(database: Database, operator: Any) -> None:
    job_id = database.enqueue(status="error", unique_key="k", error_msg="x")
    database.enqueue(unique_key="k")

    with refused("JQ002", "another job of type .*test_job.* with the unique key .*k.* waits or runs"):
        operator.execute("select retry_job(%s)", (job_id,))
    assert database.job(job_id)["error_msg"] == "x"


def test_two_retries_at_once_retry_once(database: Database, operator: Any) -> None:
    job_id = database.enqueue(status="error")
    other = database.connect("operator", autocommit=False)

    other.execute("select retry_job(%s)", (job_id,))
    operator.execute("set lock_timeout = '100ms'")
    with refused("55P03"):
        operator.execute("select retry_job(%s)", (job_id,))
    other.commit()

    assert operator.execute("select retry_job(%s)", (job_id,)).fetchone() == ("pulled_forward",)
    assert database.value("select count(*) from job_event where new_status = 'pending'") == 1
