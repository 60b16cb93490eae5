"""A worker written from the specification alone: its SQL, its role, no leases. It lives beside ours."""

import threading
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb

from sidelinja_jobs import queue
from sidelinja_jobs.errors import LeaseLostError
from sidelinja_jobs.models import Claim
from tests.databases import Database
from tests.sessions import claim_one, make_due, run_in_threads, worker_session


class ForeignWorker:
    """Section 4 of the specification, statement by statement. Knows no column that the specification does not."""

    def __init__(self, database: Database, job_type: str = "test_job") -> None:
        self.conn = database.connect("plain", autocommit=False)
        self.job_type = job_type

    def claim(self) -> tuple[UUID, Any] | None:
        found: tuple[UUID, Any] | None = self.conn.execute(
            """SELECT id, payload FROM job_queue
                WHERE status IN ('pending','retry') AND job_type = %s AND scheduled_for <= now()
                ORDER BY priority DESC, scheduled_for
                LIMIT 1
                  FOR UPDATE SKIP LOCKED""",
            (self.job_type,),
        ).fetchone()
        if found:
            self.conn.execute("UPDATE job_queue SET status = 'running', started_at = now() WHERE id = %s", (found[0],))
        self.conn.commit()
        return found

    def complete(self, job_id: UUID, result: Any) -> None:
        self.conn.execute(
            "UPDATE job_queue SET status = 'completed', result = %s, completed_at = now() WHERE id = %s",
            (Jsonb(result), job_id),
        )
        self.conn.commit()

    def fail(self, job_id: UUID, message: str) -> None:
        self.conn.execute(
            """UPDATE job_queue
                  SET attempts = attempts + 1, error_msg = %s,
                      status = (CASE WHEN attempts + 1 < max_attempts THEN 'retry' ELSE 'error' END)::job_status,
                      scheduled_for = now() + interval '30 seconds' * power(2, attempts)
                WHERE id = %s""",
            (message, job_id),
        )
        self.conn.commit()


def began_ago(database: Database, job_id: UUID, interval: str) -> None:
    """Moves the moment at which the present run began."""
    database.rows(
        """update job_event set at = at - %s::interval
            where id = (select max(id) from job_event where job_id = %s and new_status = 'running')""",
        interval,
        job_id,
    )


def test_both_drain_one_queue_and_no_job_runs_twice(database: Database) -> None:
    total = 300
    database.rows(
        """insert into job_queue (job_type, payload, priority)
           select 'test_job', jsonb_build_object('number', n), n %% 4 from generate_series(1, %s) as n""",
        total,
    )
    done: dict[str, list[UUID]] = {"ours": [], "foreign": []}
    start = threading.Barrier(4)

    def ours(number: int) -> None:
        conn = worker_session(database, worker_id=f"w{number}")
        start.wait(30)
        while claims := queue.claim(conn, "test_job", f"w{number}", 3):
            for run in claims:
                queue.complete(conn, run, {"by": "ours"})
                done["ours"].append(run.id)

    def foreign() -> None:
        worker = ForeignWorker(database)
        start.wait(30)
        while found := worker.claim():
            worker.complete(found[0], {"by": "foreign"})
            done["foreign"].append(found[0])

    run_in_threads(lambda number: foreign() if number % 2 else ours(number), 4)

    assert min(map(len, done.values())) > 0
    assert len(done["ours"] + done["foreign"]) == len({*done["ours"], *done["foreign"]}) == total
    claims = database.rows(
        "select count(*), count(distinct job_id) as jobs from job_event where new_status = 'running'"
    )
    assert claims == [{"count": total, "jobs": total}]
    by = {job["id"]: job["by"] for job in database.rows("select id, result ->> 'by' as by from job_queue")}
    assert by == dict.fromkeys(done["ours"], "ours") | dict.fromkeys(done["foreign"], "foreign")


def test_a_foreign_failure_is_retried_by_ours_and_the_other_way_round(database: Database) -> None:
    foreign, conn = ForeignWorker(database), worker_session(database)
    job_id = database.enqueue(max_attempts=3)
    assert foreign.claim() == (job_id, {})
    foreign.fail(job_id, "foreign trouble")
    make_due(database, job_id)
    run = claim_one(conn)
    assert run.attempts == 1
    queue.fail(conn, run, "X", "our trouble")
    assert foreign.claim() is None
    make_due(database, job_id)

    foreign.claim()
    foreign.fail(job_id, "for the last time")

    job = database.job(job_id)
    assert (job["status"], job["attempts"], job["error_msg"]) == ("error", 3, "for the last time")


def test_a_foreign_run_is_left_alone_until_the_longest_run_of_its_type(database: Database) -> None:
    database.add_job_type("long_job", longest_run_seconds=600)
    conn = worker_session(database)
    job_id = database.enqueue("long_job")
    ForeignWorker(database, "long_job").claim()
    began_ago(database, job_id, "598 seconds")
    assert queue.sweep(conn)["rescued"] == 0
    began_ago(database, job_id, "3 seconds")

    assert queue.sweep(conn)["rescued"] == 1

    job = database.job(job_id)
    assert (job["status"], job["attempts"], job["error_class"]) == ("retry", 1, "timeout")
    assert "600 s" in job["error_msg"]


def test_a_type_without_rules_has_six_hours(database: Database) -> None:
    conn = worker_session(database)
    job_id = database.enqueue("nobodys_job")
    ForeignWorker(database, "nobodys_job").claim()
    began_ago(database, job_id, "5 hours 59 minutes 50 seconds")
    assert queue.sweep(conn)["rescued"] == 0
    began_ago(database, job_id, "11 seconds")

    assert queue.sweep(conn)["rescued"] == 1
    assert "21600 s" in database.job(job_id)["error_msg"]


def test_a_foreign_run_counts_from_its_own_start_whatever_started_at_says(database: Database) -> None:
    """The specification's step 2 sets the status alone: `started_at` may be that of an earlier run, or nothing."""
    conn = worker_session(database)
    job_id = database.enqueue(created_at="2020-01-01", started_at="2020-01-02")
    database.connect("plain").execute("UPDATE job_queue SET status = 'running' WHERE id = %s", (job_id,))
    assert queue.sweep(conn)["rescued"] == 0

    began_ago(database, job_id, "61 seconds")
    assert queue.sweep(conn)["rescued"] == 1


def test_a_row_inserted_as_running_counts_from_its_creation(database: Database) -> None:
    conn = worker_session(database)
    fresh, old = database.enqueue(status="running"), database.enqueue(status="running", created_at="2020-01-01")
    database.rows("delete from job_event")

    assert queue.sweep(conn)["rescued"] == 1
    assert [database.job(job_id)["status"] for job_id in (fresh, old)] == ["running", "retry"]


def test_a_run_taken_over_by_a_foreign_worker_is_lost_for_ours(database: Database) -> None:
    """Someone puts a running job back by hand, and a program without tokens takes it."""
    conn, foreign = worker_session(database), ForeignWorker(database)
    job_id = database.enqueue()
    run = claim_one(conn)
    database.connect("plain").execute("UPDATE job_queue SET status = 'pending' WHERE id = %s", (job_id,))
    with pytest.raises(LeaseLostError):
        queue.confirm(conn, run)
    foreign.claim()

    assert queue.extend(conn, [run], [(0.5, None)]) == {}
    with pytest.raises(LeaseLostError):
        queue.complete(conn, run, {"by": "ours"})
    foreign.complete(job_id, {"by": "foreign"})
    assert database.job(job_id)["result"] == {"by": "foreign"}


def test_a_foreign_run_is_not_swept_by_the_lease_of_the_run_before(database: Database) -> None:
    conn, foreign = worker_session(database), ForeignWorker(database)
    job_id = database.enqueue()
    claim_one(conn)
    database.rows("update job_queue set status = 'pending', lease_until = now() - interval '1 h'")

    foreign.claim()

    assert queue.sweep(conn)["rescued"] == 0
    assert (database.job(job_id)["lease_token"], database.job(job_id)["lease_until"]) == (None, None)


def test_a_run_whose_status_was_changed_by_hand_is_lost(database: Database) -> None:
    conn, plain = worker_session(database), database.connect("plain")
    for status in ("completed", "error", "retry", "pending"):
        job_id = database.enqueue(priority=9)
        run = claim_one(conn)
        plain.execute("UPDATE job_queue SET status = %s, priority = -9 WHERE id = %s", (status, job_id))

        with pytest.raises(LeaseLostError):
            queue.complete(conn, run, {})
        with pytest.raises(LeaseLostError):
            queue.fail(conn, run, "X", "x")
        assert database.job(job_id)["status"] == status


def test_a_deleted_job_is_lost_for_its_worker(database: Database) -> None:
    conn = worker_session(database)
    database.enqueue()
    run: Claim = claim_one(conn)
    queue.write_checkpoint(conn, run, {}, 1)
    database.rows("delete from job_queue")

    with pytest.raises(LeaseLostError):
        queue.complete(conn, run, {})
    assert queue.extend(conn, [run], [(None, None)]) == {}
    assert database.rows("select * from job_checkpoint") == []


def test_a_foreign_program_that_holds_its_claim_in_a_transaction_blocks_nobody(database: Database) -> None:
    """Some programs work inside the transaction of the SELECT; ours pass the row by."""
    conn = worker_session(database)
    conn.execute("set lock_timeout = '2s'")
    held, free = database.enqueue(priority=9), database.enqueue()
    with psycopg.connect(database.dsn("plain")) as plain:
        plain.execute("SELECT id FROM job_queue WHERE id = %s FOR UPDATE SKIP LOCKED", (held,))

        assert [run.id for run in queue.claim(conn, "test_job", "w1", 5)] == [free]
        assert queue.sweep(conn)["rescued"] == 0
        plain.execute("UPDATE job_queue SET status = 'completed' WHERE id = %s", (held,))
    assert queue.claim(conn, "test_job", "w1", 5) == []


def test_checkpoints_of_earlier_runs_go_when_a_program_without_leases_completes_the_job(database: Database) -> None:
    conn, plain = worker_session(database), database.connect("plain")
    job_id, other_id = database.enqueue(priority=9), database.enqueue()
    for run in (claim_one(conn), claim_one(conn)):
        queue.write_checkpoint(conn, run, {}, 1)
        queue.release(conn, run, "stopped")

    plain.execute("UPDATE job_queue SET status = 'running', started_at = now() WHERE id = %s", (job_id,))
    plain.execute("UPDATE job_queue SET status = 'completed', result = '{}' WHERE id = %s", (job_id,))

    assert database.rows("select job_id from job_checkpoint") == [{"job_id": other_id}]
