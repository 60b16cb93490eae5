"""The sweep: lost runs, their price, races with the living, pauses that ended, workers that vanished."""

import threading
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from sidelinja_jobs import queue
from sidelinja_jobs.errors import LeaseLostError
from tests.databases import Database
from tests.sessions import claim_one, expire, make_due, run_in_threads, worker_session


def die(database: Database, conn: Any, job_id: UUID, checkpoint: int | None = None) -> dict[str, Any]:
    """One run of the job that ends without a word, after writing that checkpoint; the row after the sweep."""
    make_due(database, job_id)
    run = claim_one(conn)
    assert run.id == job_id
    if checkpoint is not None:
        queue.write_checkpoint(conn, run, {"part": checkpoint}, checkpoint)
    expire(database, job_id)
    assert queue.sweep(conn)["rescued"] == 1
    return database.job(job_id)


def running_expired(database: Database, count: int) -> None:
    """Many jobs whose worker is gone."""
    database.rows(
        """insert into job_queue (job_type, payload, status, started_at, worker_id, lease_token, lease_until)
           select 'test_job', '{}', 'running', now() - interval '1 h', 'gone', gen_random_uuid(), now() - interval '1 s'
             from generate_series(1, %s)""",
        count,
    )


def test_a_run_whose_lease_is_over_is_retried_after_its_backoff(database: Database) -> None:
    conn = worker_session(database, worker_id="host-7")
    job_id = database.enqueue(max_attempts=3)
    run = claim_one(conn, worker_id="host-7")
    queue.extend(conn, [run], [(0.41, "unit 3 of 7")])
    assert queue.sweep(conn)["rescued"] == 0
    expire(database, job_id)

    assert queue.sweep(conn)["rescued"] == 1

    job = database.row("select *, extract(epoch from scheduled_for - clock_timestamp()) as wait from job_queue")
    assert (job["status"], job["attempts"], job["error_class"]) == ("retry", 1, "crash")
    assert 29 < job["wait"] <= 30
    assert (job["lease_token"], job["lease_until"]) == (None, None)
    for known in ("host-7", "attempt 1 of 3", "41 %", "unit 3 of 7", "no checkpoint"):
        assert known in job["error_msg"]
    attempt = database.row("select * from job_attempt")
    assert (attempt["outcome"], attempt["charged"], attempt["worker_id"]) == ("lost", True, "host-7")
    assert (attempt["lease_token"], attempt["started_at"]) == (run.lease_token, run.started_at)
    assert queue.sweep(conn)["rescued"] == 0


def test_deaths_end_the_job_when_the_attempts_are_used_up(database: Database) -> None:
    conn = worker_session(database)
    last = database.enqueue(max_attempts=1)
    job = die(database, conn, last)

    assert (job["status"], job["attempts"], job["error_class"]) == ("error", 1, "crash")
    assert job["completed_at"] is not None


def test_a_death_costs_no_attempt_when_the_run_wrote_a_checkpoint(database: Database) -> None:
    conn = worker_session(database)
    job_id = database.enqueue(max_attempts=2)

    seen = [die(database, conn, job_id, checkpoint) for checkpoint in (1, 2, 3, None)]

    assert [(job["status"], job["attempts"]) for job in seen] == [
        ("pending", 0),
        ("pending", 0),
        ("pending", 0),
        ("retry", 1),
    ]
    assert [row["checkpoint"] for row in database.rows("select checkpoint from job_attempt order by id")] == [
        1,
        2,
        3,
        3,
    ]


def test_a_rescued_job_waits_even_when_the_death_was_free(database: Database) -> None:
    conn = worker_session(database)
    job_id = database.enqueue()

    die(database, conn, job_id, checkpoint=1)

    assert 25 < database.value("select extract(epoch from scheduled_for - clock_timestamp()) from job_queue") <= 30


@pytest.mark.parametrize("checkpoint", [None, 1])
def test_the_third_death_at_one_checkpoint_ends_the_job_whatever_max_attempts_says(
    database: Database, checkpoint: int | None
) -> None:
    conn = worker_session(database)
    job_id = database.enqueue(max_attempts=100)
    first = die(database, conn, job_id, checkpoint)
    later = [die(database, conn, job_id) for _ in range(2)]

    assert [job["status"] for job in (first, *later)] == ["pending" if checkpoint else "retry", "retry", "error"]
    assert "death 3 here" in later[-1]["error_msg"]
    assert later[-1]["error_class"] == "crash"


def test_a_retry_by_hand_forgives_the_deaths(database: Database) -> None:
    conn = worker_session(database)
    job_id = database.enqueue(max_attempts=100)
    for _ in range(3):
        die(database, conn, job_id)
    database.rows("select retry_job(%s)", job_id)

    assert [die(database, conn, job_id)["status"] for _ in range(3)] == ["retry", "retry", "error"]
    assert database.value("select count(*) from job_attempt where outcome = 'lost'") == 6


def test_a_job_that_was_asked_to_end_and_whose_worker_died_is_cancelled(database: Database) -> None:
    conn = worker_session(database)
    job_id = database.enqueue()
    claim_one(conn)
    database.rows("select cancel_job(%s)", job_id)
    expire(database, job_id)

    queue.sweep(conn)

    assert (database.job(job_id)["status"], database.job(job_id)["error_class"]) == ("error", "cancelled")


def test_any_worker_sweeps_all_types(database: Database) -> None:
    job_id = database.enqueue("foreign_job")
    claim_one(worker_session(database, "worker_foreign", "foreign_job", "f1"), "foreign_job", "f1")
    expire(database, job_id)

    assert queue.sweep(worker_session(database))["rescued"] == 1
    assert database.job(job_id)["status"] == "retry"


def test_many_dead_runs_are_rescued_a_hundred_at_a_time_and_none_is_left(database: Database) -> None:
    running_expired(database, 450)
    conn = worker_session(database)

    counts = [queue.sweep(conn)["rescued"] for _ in range(6)]

    assert counts == [100, 100, 100, 100, 50, 0]
    assert database.rows("select status, count(*) from job_queue group by 1") == [{"status": "retry", "count": 450}]
    assert database.value("select count(distinct job_id) from job_attempt") == 450


def test_four_sweepers_at_once_rescue_each_run_once(database: Database) -> None:
    running_expired(database, 400)
    rescued = [0] * 4
    start = threading.Barrier(4)

    def sweep(number: int) -> None:
        conn = worker_session(database, worker_id=f"w{number}")
        start.wait(30)
        for _ in range(20):
            rescued[number] += queue.sweep(conn)["rescued"]

    run_in_threads(sweep, 4)

    assert sum(rescued) == 400
    assert database.value("select count(*) from job_attempt") == 400
    assert database.value("select max(attempts) from job_queue") == 1


def test_an_expired_lease_that_nobody_took_is_still_good(database: Database) -> None:
    """Its token proves that there is no successor; two hours of work are not thrown away."""
    conn = worker_session(database)
    job_id = database.enqueue()
    run = claim_one(conn)
    expire(database, job_id)

    queue.complete(conn, run, {})

    assert database.job(job_id)["status"] == "completed"


def test_a_sweep_does_not_wait_for_a_run_that_is_just_being_settled(database: Database) -> None:
    first = worker_session(database)
    second = worker_session(database, worker_id="w2")
    second.execute("set lock_timeout = '2s'")
    job_id = database.enqueue()
    run = claim_one(first)
    expire(database, job_id)

    with first.transaction():
        queue.complete(first, run, {})
        assert queue.sweep(second)["rescued"] == 0
    assert queue.sweep(second)["rescued"] == 0
    assert database.job(job_id)["status"] == "completed"


def test_completion_and_sweep_race_and_exactly_one_of_them_wins(database: Database) -> None:
    """A completed job never becomes a retry, and a run that was told it completed did."""
    rounds = 150
    database.rows(
        "insert into job_queue (job_type, payload) select 'test_job', '{}' from generate_series(1, %s)", rounds
    )
    completer, sweeper = worker_session(database), worker_session(database, worker_id="w2")
    runs = queue.claim(completer, "test_job", "w1", rounds)
    told: set[UUID] = set()
    turn = threading.Barrier(2)

    def work(number: int) -> None:
        for run in runs:
            if number == 0:
                expire(database, run.id)
            turn.wait(30)
            if number == 1:
                queue.sweep(sweeper)
                continue
            try:
                queue.complete(completer, run, {})
                told.add(run.id)
            except LeaseLostError:
                pass

    run_in_threads(work, 2)

    jobs = {job["id"]: job["status"] for job in database.rows("select id, status from job_queue")}
    assert {job_id for job_id, status in jobs.items() if status == "completed"} == told
    assert {status for job_id, status in jobs.items() if job_id not in told} <= {"retry"}
    assert database.rows("select job_id from job_event where old_status = 'completed'") == []


def test_a_pause_that_is_over_is_lifted_and_another_is_not(database: Database) -> None:
    database.rows("select pause_job_type('test_job', now() + interval '1 h', 'short')")
    database.rows("select pause_job_type('other_job', now() + interval '1 h', 'long')")
    database.rows("select pause_job_type('foreign_job', null, 'for ever')")
    database.rows("update job_type set paused_until = now() - interval '1 s' where name = 'test_job'")

    assert queue.sweep(worker_session(database))["resumed"] == 1

    paused = database.rows("select name from job_type where paused_at is not null order by name")
    assert paused == [{"name": "foreign_job"}, {"name": "other_job"}]
    lifted = database.row("select paused_until, pause_origin, pause_reason from job_type where name = 'test_job'")
    assert set(lifted.values()) == {None}


def test_a_worker_that_vanished_is_forgotten_and_may_come_back(database: Database) -> None:
    conn = worker_session(database, worker_id="gone")
    worker_session(database, worker_id="here")
    database.rows("update worker set seen_at = now() - interval '61 seconds' where worker_id = 'gone'")

    assert queue.sweep(conn)["workers_gone"] == 1

    assert database.rows("select worker_id from worker") == [{"worker_id": "here"}]
    assert not queue.beat_worker(conn, "gone")
    queue.register(conn, "gone", "test_job", "1.0", "host", 1, None)
    assert queue.beat_worker(conn, "gone")


def test_rows_that_no_worker_of_ours_would_write_do_not_stop_the_sweep(database: Database) -> None:
    """Whatever a program with UPDATE on job_queue may leave behind in a running row."""
    plain = database.connect("plain")
    odd = [
        "worker_id = repeat('w', 1000000), progress_note = repeat('æ', 1000000)",
        "attempts = -32768",
        "attempts = 32767, max_attempts = 32767",
        "attempts = 32767, max_attempts = -32768",
        "progress = null, progress_note = E'100 %% \\\\ %s'",
        "started_at = null, worker_id = null, lease_token = null",
        "error_msg = repeat('x', 5000000), error_class = repeat('c', 100000)",
        "postponements = 32767, rerun_requested_at = now(), rerun_payload = 'null', unique_key = 'k'",
        "rerun_requested_at = now(), priority = -32768, parent_id = gen_random_uuid(), attempts = 32767",
        "created_at = '2199-12-31', scheduled_for = '2199-12-31', job_type = ''",
    ]
    for columns in odd:
        job_id = database.enqueue(status="running", lease_until=datetime(2026, 1, 1, tzinfo=UTC), worker_id="w1")
        plain.execute(f"update job_queue set {columns.replace('%%', '%')} where id = '{job_id}'")

    rescued = queue.sweep(worker_session(database))["rescued"]

    assert rescued == len(odd)
    assert database.value("select count(*) from job_queue where status = 'running'") == 0


def test_a_note_that_is_too_long_to_tell_with_a_death_ends_with_a_whole_word(database: Database) -> None:
    """Half a secret would be recognized by nobody who shows the message."""
    note = "x " * 95 + "sk-or-v1-0123456789abcdef"
    job_id = database.enqueue(status="running", lease_token=UUID(int=1), progress=0.5, progress_note=note)
    expire(database, job_id)

    database.rows("select sweep_jobs()")

    assert f'last progress 50 % "{"x " * 95}…"' in database.job(job_id)["error_msg"]
