"""The chain of runs: exactly one future run waits, however the present one ends; and what a result says of the next."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sidelinja_jobs import queue
from tests.queue.stats_support import Stats
from tests.sessions import refused, worker_session
from tests.unit.stats_support import line

ACTIVE = (
    "select * from job_queue where unique_key = 'schedule:podcast statistics'"
    " and status in ('pending', 'retry', 'running')"
)
ENDS = {
    "completed": lambda stats: stats.run_next(),
    "failed for good": lambda stats: failure_of_next(stats),
    "swept, its worker gone for the last time": lambda stats: lose_the_last_attempt(stats),
    "cancelled while it runs": lambda stats: cancel_running(stats),
    "cancelled": lambda stats: stats.database.rows("select cancel_job(id) from job_queue"),
    "payload broken by hand": lambda stats: stats.database.rows("update job_queue set payload = '[]', status='error'"),
    "row deleted": lambda stats: stats.database.rows("delete from job_queue"),
    "set to completed by hand": lambda stats: stats.database.rows("update job_queue set status = 'completed'"),
}


def failure_of_next(stats: Stats) -> None:
    session, claim = claim_next(stats)
    queue.fail(session, claim, "format_error", "x", permanent=True)


def lose_the_last_attempt(stats: Stats) -> None:
    claim_next(stats)
    stats.database.rows("update job_queue set attempts = max_attempts - 1, lease_until = now() - interval '1 second'")


def cancel_running(stats: Stats) -> None:
    session, claim = claim_next(stats)
    stats.database.rows("select cancel_job(id) from job_queue")
    queue.release(session, claim, "cancelled")


def claim_next(stats: Stats) -> tuple[Any, Any]:
    session = worker_session(stats.database, "worker_stats", "stats_parse")
    (claim,) = queue.claim(session, "stats_parse", "w1", 1)
    return session, claim


@pytest.mark.parametrize("end", list(ENDS))
def test_exactly_one_future_run_waits_however_the_present_one_ends(stats: Stats, end: str) -> None:
    conn: Any = worker_session(stats.database, "worker_stats", "stats_parse")
    for _ in range(2):
        conn.execute("select stats.set_up(interval '15 minutes')")
    queue.sweep(conn)
    (run,) = stats.database.rows(ACTIVE)
    assert run["scheduled_for"].timestamp() % 900 == 0
    stats.database.rows("update job_queue set scheduled_for = now()")

    ENDS[end](stats)
    for _ in range(3):
        queue.sweep(conn)

    (following,) = stats.database.rows(ACTIVE)
    assert following["id"] != run["id"]
    assert (following["status"], following["payload"]) == ("pending", {})


def test_only_the_stats_worker_sets_up_and_an_operators_changes_stay(stats: Stats) -> None:
    with refused("42501"):
        stats.database.connect("worker_test").execute("select stats.set_up(interval '1 minute')")
    conn = stats.database.connect("worker_stats")
    conn.execute("select stats.set_up(interval '15 minutes')")
    stats.database.connect("operator").execute("update job_schedule set every = '1 hour', enabled = false")
    conn.execute("select stats.set_up(interval '15 minutes')")

    row = stats.database.row("select every, enabled from job_schedule")
    assert (row["every"], row["enabled"]) == (timedelta(hours=1), False)
    with refused("42501"):
        conn.execute("select * from job_queue")


def test_a_result_says_when_the_next_run_is_due(stats: Stats) -> None:
    assert stats.run()["next_run"] is None
    stats.database.connect("worker_stats").execute("select stats.set_up(interval '15 minutes')")
    stats.write(line())

    due = datetime.fromisoformat(stats.run()["next_run"])

    assert due.timestamp() % 900 == 0
    assert timedelta() < due - datetime.now(UTC) <= timedelta(minutes=15)
