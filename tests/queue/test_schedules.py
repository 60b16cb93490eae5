"""Recurring jobs: exactly one waiting or running run of each, on its grid, also when the clocks change."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import pytest

from sidelinja_jobs import queue
from tests.databases import Database
from tests.sessions import claim_one, expire, refused, run_in_threads, worker_session

OSLO = ZoneInfo("Europe/Oslo")
ACTIVE = "select * from job_queue where unique_key = 'schedule:daily' and status in ('pending', 'retry', 'running')"


def schedule(database: Database, name: str = "daily", every: str = "1 day", **columns: object) -> None:
    """A schedule, written by the operator's login."""
    values = {"name": name, "job_type": "test_job", "every": every, **columns}
    names, marks = ", ".join(values), ", ".join(["%s"] * len(values))
    database.connect("operator").execute(f"insert into job_schedule ({names}) values ({marks})", list(values.values()))


def next_slot(database: Database, every: str, anchor: str, zone: str, after: datetime) -> datetime:
    found: datetime = database.value(
        "select next_slot(%s::interval, %s::timestamp, %s, %s::timestamptz)", every, anchor, zone, after
    )
    return found


def test_a_schedule_queues_its_next_run_once(database: Database) -> None:
    schedule(database, every="15 minutes", payload='{"source": "log"}', priority=-2, max_attempts=5)
    conn = worker_session(database)

    assert [queue.sweep(conn)["scheduled"] for _ in range(3)] == [1, 0, 0]

    run = database.row("select *, clock_timestamp() as now from job_queue")
    assert (run["job_type"], run["payload"]) == ("test_job", {"source": "log"})
    assert (run["priority"], run["max_attempts"], run["unique_key"]) == (-2, 5, "schedule:daily")
    assert run["scheduled_for"].timestamp() % 900 == 0
    assert timedelta(0) < run["scheduled_for"] - run["now"] <= timedelta(minutes=15)


ENDS: dict[str, Callable[[Database, Any], object]] = {
    "completed": lambda database, conn: queue.complete(conn, claim_one(conn), {}),
    "in error": lambda database, conn: queue.fail(conn, claim_one(conn), "X", "x", permanent=True),
    "cancelled": lambda database, conn: database.rows("select cancel_job(id) from job_queue"),
    "deleted by hand": lambda database, conn: database.rows("delete from job_queue"),
    "completed by hand": lambda database, conn: database.rows("update job_queue set status = 'completed'"),
}


@pytest.mark.parametrize("end", list(ENDS))
def test_a_run_that_ended_is_followed_by_exactly_one(database: Database, end: str) -> None:
    schedule(database)
    conn = worker_session(database)
    queue.sweep(conn)
    database.rows("update job_queue set scheduled_for = now()")

    ENDS[end](database, conn)
    for _ in range(3):
        queue.sweep(conn)

    (active,) = database.rows(ACTIVE)
    assert active["status"] == "pending"
    assert active["scheduled_for"] > datetime.now(UTC)


def test_a_run_that_is_under_way_or_being_retried_is_the_one(database: Database) -> None:
    schedule(database, max_attempts=1)
    conn = worker_session(database)
    queue.sweep(conn)
    database.rows("update job_queue set scheduled_for = now()")
    run = claim_one(conn)
    queue.sweep(conn)
    assert [job["id"] for job in database.rows(ACTIVE)] == [run.id]
    database.rows("update job_queue set max_attempts = 3")
    expire(database, run.id)
    queue.sweep(conn)
    queue.sweep(conn)
    assert [(job["id"], job["status"]) for job in database.rows(ACTIVE)] == [(run.id, "retry")]
    database.rows("update job_queue set scheduled_for = now(), max_attempts = 2")
    claim_one(conn)
    expire(database, run.id)  # the last death

    queue.sweep(conn)

    (active,) = database.rows(ACTIVE)
    assert active["id"] != run.id
    assert database.job(run.id)["status"] == "error"


def test_five_sweepers_at_once_queue_one_run_of_each(database: Database) -> None:
    for number in range(20):
        schedule(database, f"s{number}", "1 hour")
    start = threading.Barrier(5)

    def sweep(number: int) -> None:
        conn = worker_session(database, worker_id=f"w{number}")
        for _ in range(10):
            start.wait(30)
            queue.sweep(conn)
            start.wait(30)
            if number == 0:
                database.rows("delete from job_queue where random() < 0.5")
        start.wait(30)
        queue.sweep(conn)

    run_in_threads(sweep, 5)

    found = database.rows("select unique_key, count(*) from job_queue group by 1")
    assert sorted(row["unique_key"] for row in found) == sorted(f"schedule:s{number}" for number in range(20))
    assert {row["count"] for row in found} == {1}


def test_a_schedule_that_is_switched_off_queues_nothing_more(database: Database) -> None:
    schedule(database)
    conn = worker_session(database)
    database.rows("update job_schedule set enabled = false")
    assert queue.sweep(conn)["scheduled"] == 0
    database.rows("update job_schedule set enabled = true")

    assert queue.sweep(conn)["scheduled"] == 1


def test_two_schedules_of_one_name_in_two_types_are_not_possible_and_two_names_are_apart(database: Database) -> None:
    schedule(database, "a")
    schedule(database, "b")
    with refused("23505"):
        schedule(database, "a", job_type="other_job")

    assert queue.sweep(worker_session(database))["scheduled"] == 2


def test_a_failed_run_that_the_next_one_has_replaced_is_not_retried_beside_it(database: Database) -> None:
    schedule(database)
    conn = worker_session(database)
    queue.sweep(conn)
    database.rows("update job_queue set scheduled_for = now()")
    run = claim_one(conn)
    queue.fail(conn, run, "X", "x", permanent=True)
    queue.sweep(conn)

    with refused("JQ002", "another job of type .* with the unique key"):
        database.connect("operator").execute("select retry_job(%s)", (run.id,))
    assert len(database.rows(ACTIVE)) == 1


ODD: list[tuple[str, str]] = [
    *[("every", every) for every in ("0 seconds", "-1 day", "0.5 seconds", "1 month", "1 year", "1 month -29 days")],
    *[("every", every) for every in ("3661 days", "infinity", "-infinity")],
    *[("anchor", anchor) for anchor in ("infinity", "-infinity", "0044-03-15 BC", "9999-12-31")],
    *[("time_zone", zone) for zone in ("Europe/Atlantis", "", "' or true")],
    *[("name", name) for name in ("", "n" * 201)],
    *[("job_type", job_type) for job_type in ("", "t" * 201)],
    *[("payload", payload) for payload in ("{", '"\\u0000"', "NaN")],
    ("priority", "40000"),
]


def test_no_schedule_that_would_stop_the_sweep_gets_in(database: Database) -> None:
    conn = database.connect("operator")
    accepted = []
    for column, value in ODD:
        columns = {"name": "odd", "job_type": "test_job", "every": "1 day", column: value}
        try:
            conn.execute(
                f"insert into job_schedule ({', '.join(columns)}) values ({', '.join(['%s'] * len(columns))})",
                list(columns.values()),
            )
            accepted.append((column, value))
        except (psycopg.errors.IntegrityError, psycopg.errors.DataError):
            continue

    assert accepted == []
    assert queue.sweep(worker_session(database))["scheduled"] == 0


def test_the_widest_and_narrowest_schedules_are_swept(database: Database) -> None:
    every = ["1 second", "3660 days", "1 day 1 second", "2 days -1 hour", "86399.999999 seconds"]
    for number, interval in enumerate(every):
        for anchor in ("2000-01-01", "2199-12-31 23:59:59.999999"):
            name = f"{number} {anchor} ".ljust(200, "n")
            schedule(database, name, interval, anchor=anchor, time_zone="Pacific/Apia", job_type="t" * 200)

    assert queue.sweep(worker_session(database))["scheduled"] == 10
    assert database.value("select bool_and(scheduled_for > created_at) from job_queue")


GRIDS = {
    "1 day": "2024-01-01 02:30",
    "24 hours": "2024-01-01 06:00",
    "6 hours": "2024-01-01 00:00",
    "1 hour": "2024-01-01 00:00",
    "15 minutes": "2024-01-01 00:05",
    "7 minutes": "2024-01-01 00:00",
    "25 hours": "2024-01-01 00:00",
    "7 days": "2024-01-07 02:00",
}


@pytest.mark.parametrize("night", [datetime(2026, 3, 29, tzinfo=UTC), datetime(2026, 10, 25, tzinfo=UTC)])
def test_the_grid_follows_the_wall_clock_through_both_nights(database: Database, night: datetime) -> None:
    """Against every point of each grid, written down one by one. A time that comes twice counts the second time; one
    that does not exist counts with the offset from before."""
    afters = [night + timedelta(minutes=minutes) for minutes in range(-1500, 1500, 11)]
    for every, anchor in GRIDS.items():
        step: timedelta = database.value("select %s::interval", every)
        first = datetime.fromisoformat(anchor)
        first += (night.replace(tzinfo=None) - timedelta(days=9) - first) // step * step
        grid = [instant(first + number * step) for number in range(int(timedelta(days=20) / step) + 2)]

        found = database.rows(
            "select next_slot(%s::interval, %s::timestamp, 'Europe/Oslo', at) as slot"
            " from unnest(%s::timestamptz[]) as at",
            every, anchor, afters,
        )  # fmt: skip

        expected = [min(slot for slot in grid if slot > after) for after in afters]
        assert [row["slot"] for row in found] == expected, every


def test_a_daily_run_stays_at_its_hour_when_the_clocks_change(database: Database) -> None:
    after = datetime(2026, 3, 28, 0, 0, tzinfo=UTC)
    hours = []
    for _ in range(3):
        after = next_slot(database, "1 day", "2024-01-01 06:00", "Europe/Oslo", after)
        hours.append(after.astimezone(OSLO).strftime("%d. %H:%M %Z"))

    assert hours == ["28. 06:00 CET", "29. 06:00 CEST", "30. 06:00 CEST"]


def instant(wall: datetime) -> datetime:
    """The instant of a wall-clock time in Oslo, as PostgreSQL reads it."""
    ambiguous_or_missing = (
        wall.replace(tzinfo=OSLO, fold=0).utcoffset() != wall.replace(tzinfo=OSLO, fold=1).utcoffset()
    )
    twice = ambiguous_or_missing and wall.month == 10
    return wall.replace(tzinfo=OSLO, fold=int(twice)).astimezone(UTC)
