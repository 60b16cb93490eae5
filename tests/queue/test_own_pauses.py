"""A worker takes back the pause that it made itself, and no other."""

from datetime import UTC, datetime, timedelta

import pytest

from sidelinja_jobs import queue
from sidelinja_jobs.errors import NotAllowedError
from tests.databases import Database
from tests.sessions import worker_session

IN_AN_HOUR = datetime.now(UTC) + timedelta(hours=1)


def pause_of(database: Database) -> tuple[str, str | None] | None:
    row = database.row("select paused_at, pause_origin, pause_class from job_type where name = 'test_job'")
    return (row["pause_origin"], row["pause_class"]) if row["paused_at"] else None


def test_a_worker_takes_back_its_own_pause_for_one_cause_alone(database: Database) -> None:
    conn = worker_session(database)
    for origin, pause_class, is_lifted in (
        ("worker", "no_api_key", True),
        ("worker", "credits", False),
        ("worker", None, False),
        ("budget", "no_api_key", False),
    ):
        queue.pause_job_type(conn, "test_job", IN_AN_HOUR, "x", origin, pause_class)

        assert queue.resume_own_pause(conn, "test_job", ["no_api_key", "auth"]) is is_lifted
        assert (pause_of(database) is None) is is_lifted
    database.connect("operator").execute("select pause_job_type('test_job', null, 'x', 'operator', 'no_api_key')")

    assert not queue.resume_own_pause(conn, "test_job", ["no_api_key"])
    assert pause_of(database) == ("operator", "no_api_key")
    with pytest.raises(NotAllowedError):
        queue.resume_own_pause(conn, "foreign_job", ["no_api_key"])


def test_the_cause_of_a_pause_goes_with_it(database: Database) -> None:
    conn = worker_session(database)
    queue.pause_job_type(conn, "test_job", IN_AN_HOUR, "x", "worker", "auth")

    database.connect("operator").execute("select resume_job_type('test_job')")
    queue.pause_job_type(conn, "test_job", IN_AN_HOUR, "x", "worker")

    assert pause_of(database) == ("worker", None)
    assert not queue.resume_own_pause(conn, "test_job", ["auth"])
