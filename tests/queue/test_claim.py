"""Claims: which jobs, in which order, how many, by whom; and the token that every later write must name."""

import random
import threading
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from psycopg.rows import dict_row

from sidelinja_jobs import queue
from sidelinja_jobs.errors import LeaseLostError, NotAllowedError
from sidelinja_jobs.models import Claim
from tests.databases import Database
from tests.sessions import claim_one, expire, make_due, refused, run_in_threads, worker_session

LOST_WRITES: list[Callable[[Any, Claim], object]] = [
    lambda conn, run: queue.confirm(conn, run),
    lambda conn, run: queue.write_checkpoint(conn, run, {"part": 1}, 1),
    lambda conn, run: queue.read_checkpoints(conn, run),
    lambda conn, run: queue.drop_checkpoints(conn, run),
    lambda conn, run: queue.complete(conn, run, {}),
    lambda conn, run: queue.fail(conn, run, "X", "x"),
    lambda conn, run: queue.postpone(conn, run, None, "x"),
    lambda conn, run: queue.release(conn, run, "x"),
]


def test_the_most_important_job_goes_first_then_the_longest_due_then_the_lower_id(database: Database) -> None:
    """Against a sort in Python, over priorities from end to end of a smallint."""
    dice = random.Random(7)  # noqa: S311
    priorities = [-32768, -32767, -3, -1, 0, 0, 1, 2, 9, 32766, 32767]
    database.rows(
        """insert into job_queue (job_type, payload, priority, scheduled_for)
           select 'test_job', '{}', p, '2025-01-01'::timestamptz + s * interval '1 s'
             from unnest(%s::smallint[], %s::int[]) as given (p, s)""",
        [dice.choice(priorities) for _ in range(300)],
        [dice.randrange(10) for _ in range(300)],
    )
    expected = sorted(
        database.rows("select id, priority, scheduled_for from job_queue"),
        key=lambda job: (-job["priority"], job["scheduled_for"], job["id"]),
    )
    conn = worker_session(database)

    claimed = []
    for limit in [1, 2, 7, 40] * 6:
        claimed += queue.claim(conn, "test_job", "w1", limit)

    assert [claim.id for claim in claimed] == [job["id"] for job in expected]


def test_a_future_job_of_any_priority_waits_for_its_time(database: Database) -> None:
    conn = worker_session(database)
    future = database.enqueue(priority=32767)
    database.rows("update job_queue set scheduled_for = now() + interval '2 seconds'")
    due = database.enqueue(priority=-5)

    assert [claim.id for claim in queue.claim(conn, "test_job", "w1", 10)] == [due]
    make_due(database, future)
    assert [claim.id for claim in queue.claim(conn, "test_job", "w1", 10)] == [future]


def test_only_waiting_jobs_of_the_type_are_claimed(database: Database) -> None:
    retry = database.enqueue(status="retry", attempts=1)
    for status in ("running", "completed", "error"):
        database.enqueue(status=status)
    database.enqueue("other_job")
    database.enqueue("TEST_JOB")

    claims = queue.claim(worker_session(database), "test_job", "w1", 10)

    assert [(claim.id, claim.attempts) for claim in claims] == [(retry, 1)]


def test_a_claim_says_in_the_row_who_runs_it_and_until_when(database: Database) -> None:
    parent_id = UUID(int=1)
    job_id = database.enqueue(
        progress=0.7, progress_note="before", cancel_requested_at="2026-01-01", parent_id=parent_id
    )

    claim = claim_one(worker_session(database, worker_id="host-7"), worker_id="host-7")

    job = database.job(job_id)
    assert (job["status"], job["worker_id"], job["lease_token"]) == ("running", "host-7", claim.lease_token)
    assert 1.9 < (job["lease_until"] - job["started_at"]).total_seconds() < 2.1
    assert (job["progress"], job["progress_note"], job["cancel_requested_at"], job["attempts"]) == (None, None, None, 0)
    assert (claim.started_at, claim.parent_id) == (job["started_at"], parent_id)
    worker = database.row("select * from worker where worker_id = 'host-7'")
    assert (worker["current_job_id"], worker["idle"]) == (job_id, False)


def test_an_unregistered_process_may_claim_too(database: Database) -> None:
    """The row in `worker` is for people; a sweep that removed it must not stop the work."""
    database.enqueue()

    claims = queue.claim(database.connect("worker_test", row_factory=dict_row), "test_job", "unknown", 1)

    assert len(claims) == 1


def test_a_paused_type_is_not_claimed_until_its_pause_ends(database: Database) -> None:
    conn = worker_session(database)
    database.enqueue()
    database.enqueue("other_job")
    database.rows("select pause_job_type('test_job', now() + interval '1 hour')")

    assert queue.claim(conn, "test_job", "w1", 1) == []
    assert len(queue.claim(conn, "other_job", "w1", 1)) == 1
    database.rows("update job_type set paused_until = now() - interval '1 s' where name = 'test_job'")
    assert len(queue.claim(conn, "test_job", "w1", 1)) == 1


def test_a_pause_without_an_end_holds(database: Database) -> None:
    conn = worker_session(database)
    database.enqueue()
    database.rows("select pause_job_type('test_job')")

    assert queue.claim(conn, "test_job", "w1", 1) == []


def test_a_claim_without_a_limit_takes_one(database: Database) -> None:
    """`limit null` means no limit in SQL, and would take the whole queue."""
    for _ in range(3):
        database.enqueue()
    conn = database.connect("worker_test")

    assert len(conn.execute("select * from claim_jobs('test_job', 'w1', null)").fetchall()) == 1
    assert len(conn.execute("select * from claim_jobs('test_job', 'w1')").fetchall()) == 1


def test_a_claim_of_nothing_takes_nothing(database: Database) -> None:
    database.enqueue()

    assert queue.claim(worker_session(database), "test_job", "w1", 0) == []
    assert database.value("select status from job_queue") == "pending"


def test_a_batch_locks_exactly_the_batch(database: Database) -> None:
    """While one claim is open, another session gets the very next jobs at once."""
    database.rows(
        """insert into job_queue (job_type, payload, priority)
           select 'test_job', '{}', n % 3 from generate_series(1, 30) as n"""
    )
    first = database.connect("worker_test", autocommit=False, row_factory=dict_row)
    second = worker_session(database)
    second.execute("set lock_timeout = '2s'")

    held = queue.claim(first, "test_job", "w1", 7)
    rest = queue.claim(second, "test_job", "w2", 100)

    assert (len(held), len(rest)) == (7, 23)
    assert {claim.id for claim in held} & {claim.id for claim in rest} == set()
    first.rollback()
    assert len(queue.claim(second, "test_job", "w2", 100)) == 7


def test_eight_claimers_at_once_never_get_the_same_job(database: Database) -> None:
    database.rows(
        """insert into job_queue (job_type, payload, priority)
           select 'test_job', '{}', n % 5 from generate_series(1, 2000) as n"""
    )
    claimed: list[list[Claim]] = [[] for _ in range(8)]
    start = threading.Barrier(8)

    def work(number: int) -> None:
        conn = worker_session(database, worker_id=f"w{number}")
        start.wait(30)
        while claims := queue.claim(conn, "test_job", f"w{number}", 10 + number):
            claimed[number] += claims

    run_in_threads(work, 8)
    everything = [claim for claims in claimed for claim in claims]

    assert len(everything) == 2000
    assert len({claim.id for claim in everything}) == 2000
    assert len({(claim.lease_token, owner) for owner, claims in enumerate(claimed) for claim in claims}) == len(
        {claim.lease_token for claim in everything}
    )  # no two claims share a token
    assert database.value("select count(*) from job_event where new_status = 'running'") == 2000
    assert sum(1 for claims in claimed if claims) > 1


def test_only_the_role_of_the_type_may_claim_it(database: Database) -> None:
    database.enqueue("foreign_job")
    conn = worker_session(database)

    with pytest.raises(NotAllowedError, match="role worker_test may not work jobs of type"):
        queue.claim(conn, "foreign_job", "w1", 1)
    with pytest.raises(NotAllowedError, match="nobodys_job"):
        queue.claim(conn, "nobodys_job", "w1", 1)
    with refused("42501"):  # not even the superuser is the role
        database.connect().execute("select * from claim_jobs('test_job', 'w1', 1)")


def test_a_payload_over_the_types_limit_comes_back_as_nothing_with_its_size(database: Database) -> None:
    database.add_job_type("small_job", payload_limit_bytes=100)
    job_id = database.enqueue("small_job", {"text": "x" * 200})
    fitting = database.enqueue("small_job", {"text": "æ" * 44}, priority=-1)  # 100 bytes

    claims = queue.claim(worker_session(database, job_type="small_job"), "small_job", "w1", 2)

    assert [(claim.id, claim.payload_text is None, claim.payload_bytes) for claim in claims] == [
        (job_id, True, 212),
        (fitting, False, 100),
    ]


def test_a_job_claimed_again_by_the_same_worker_refuses_its_first_token_everywhere(database: Database) -> None:
    conn = worker_session(database)
    job_id = database.enqueue()
    first = claim_one(conn)
    expire(database, job_id)
    queue.sweep(conn)
    make_due(database, job_id)
    second = claim_one(conn)

    assert second.lease_token != first.lease_token
    for write in LOST_WRITES:
        with pytest.raises(LeaseLostError):
            write(conn, first)
    assert queue.extend(conn, [first], [(0.9, "mine")]) == {}
    assert queue.run_outcome(conn, first) == "lost"
    job = database.job(job_id)
    assert (job["status"], job["lease_token"], job["progress"]) == ("running", second.lease_token, None)
    queue.complete(conn, second, {})
    assert database.job(job_id)["status"] == "completed"


def test_a_heartbeat_renews_the_leases_that_are_held_and_names_them(database: Database) -> None:
    conn = worker_session(database)
    held, lost, cancelled = (database.enqueue() for _ in range(3))
    runs = {claim.id: claim for claim in queue.claim(conn, "test_job", "w1", 3)}
    database.rows("update job_queue set lease_token = gen_random_uuid() where id = %s", lost)
    database.rows("update job_queue set cancel_requested_at = now() where id = %s", cancelled)
    database.rows("update job_queue set lease_until = now() - interval '1 h'")

    kept = queue.extend(conn, [runs[held], runs[lost], runs[cancelled]], [(0.25, "a"), (0.5, "b"), (None, None)])

    assert kept == {held: False, cancelled: True}
    jobs = {job["id"]: job for job in database.rows("select *, lease_until > now() as alive from job_queue")}
    assert [jobs[job_id]["alive"] for job_id in (held, lost, cancelled)] == [True, False, True]
    assert (jobs[held]["progress"], jobs[held]["progress_note"]) == (0.25, "a")
    assert jobs[lost]["progress"] is None
    queue.extend(conn, [runs[held]], [(None, None)])
    assert database.job(held)["progress_note"] == "a"


def test_claims_and_heartbeats_do_not_wait_for_the_disk_and_ends_of_runs_do(database: Database) -> None:
    """A claim lost in a crash of the server is a job that still waits; a result that was reported is never lost."""
    conn = worker_session(database)
    database.enqueue()

    def commits_with(work: Callable[[], object]) -> str:
        with conn.transaction():
            work()
            return str(conn.execute("show synchronous_commit").fetchone()["synchronous_commit"])

    runs: list[Claim] = []
    waits = [
        commits_with(lambda: runs.append(claim_one(conn))),
        commits_with(lambda: queue.extend(conn, runs, [(0.5, None)])),
        commits_with(lambda: queue.beat_worker(conn, "w1")),
        commits_with(lambda: queue.write_checkpoint(conn, runs[0], {}, 1)),
        commits_with(lambda: queue.complete(conn, runs[0], {})),
    ]

    assert waits == ["off", "off", "off", "on", "on"]
    assert commits_with(lambda: None) == "on"


def test_checkpoints_are_appended_once_and_read_in_order(database: Database) -> None:
    conn = worker_session(database)
    database.enqueue()
    run = claim_one(conn)

    for number in (1, 2, 2, 3):  # the second is sent twice, as after a broken connection
        queue.write_checkpoint(conn, run, {"part": number}, number)

    found = queue.read_checkpoints(conn, run)
    assert [(checkpoint.seq, checkpoint.data) for checkpoint in found] == [
        (1, {"part": 1}),
        (2, {"part": 2}),
        (3, {"part": 3}),
    ]
    queue.drop_checkpoints(conn, run)
    assert queue.read_checkpoints(conn, run) == []
