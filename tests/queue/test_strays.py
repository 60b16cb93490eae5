"""Claims whose answer was lost: the worker puts back what stands under its name and is not among what it holds."""

from typing import Any
from uuid import UUID

from sidelinja_jobs import queue
from sidelinja_jobs.models import Claim
from tests.databases import Database
from tests.sessions import claim_one, worker_session


def began_ago(database: Database, *job_ids: UUID) -> None:
    database.rows("update job_queue set started_at = now() - interval '1 minute' where id = any(%s)", list(job_ids))


def release(conn: Any, held: list[Claim], worker_id: str = "w1", seconds: float = 30) -> int:
    return queue.release_strays(conn, worker_id, held, seconds)


def test_a_claim_that_nobody_heard_of_goes_back_to_its_place_at_no_cost(database: Database) -> None:
    conn = worker_session(database)
    held_id, stray_id = database.enqueue(priority=1), database.enqueue(max_attempts=1)
    held, stray = claim_one(conn), claim_one(conn)
    began_ago(database, held_id, stray_id)

    assert [release(conn, [held]), release(conn, [held])] == [1, 0]

    job = database.job(stray_id)
    assert (job["status"], job["attempts"], job["scheduled_for"]) == ("pending", 0, stray.scheduled_for)
    assert (job["lease_token"], job["lease_until"]) == (None, None)
    attempt = database.row("select * from job_attempt")
    assert (attempt["job_id"], attempt["outcome"], attempt["charged"]) == (stray_id, "released", False)
    queue.complete(conn, held, {})
    assert queue.run_outcome(conn, stray) == "released"


def test_a_claim_whose_answer_may_still_come_is_left_alone(database: Database) -> None:
    conn = worker_session(database)
    database.enqueue()
    claim_one(conn)

    assert release(conn, []) == 0


def test_runs_of_other_workers_other_roles_and_foreign_programs_are_left_alone(database: Database) -> None:
    conn = worker_session(database)
    database.enqueue()
    other = claim_one(worker_session(database, worker_id="w2"), worker_id="w2")
    database.enqueue("foreign_job")
    foreign = claim_one(worker_session(database, "worker_foreign", "foreign_job", "f1"), "foreign_job", "f1")
    plain = database.enqueue(status="running", worker_id="w1")
    database.rows("update job_queue set worker_id = 'w1' where id = %s", foreign.id)
    began_ago(database, other.id, foreign.id, plain)

    assert release(conn, []) == 0
    assert database.value("select count(*) from job_queue where status = 'running'") == 3


def test_a_stray_that_was_cancelled_meanwhile_ends(database: Database) -> None:
    conn = worker_session(database)
    job_id = database.enqueue()
    claim_one(conn)
    database.rows("select cancel_job(%s)", job_id)
    began_ago(database, job_id)

    assert release(conn, []) == 1
    assert database.job(job_id)["error_class"] == "cancelled"


def test_a_stray_that_someone_is_just_settling_is_passed_by(database: Database) -> None:
    conn, lease = worker_session(database), worker_session(database)
    lease.execute("set lock_timeout = '2s'")
    job_id = database.enqueue()
    run = claim_one(conn)
    began_ago(database, job_id)

    with conn.transaction():
        queue.complete(conn, run, {})
        assert release(lease, []) == 0
    assert database.job(job_id)["status"] == "completed"
