"""job_hour: what ended in each hour, each event counted once, however the readers and writers of events interleave."""

from typing import Any

from tests.databases import Database


def ended(database: Database, count: int = 1, *, job_type: str = "test_job", status: str = "completed") -> None:
    """Jobs that ran for a minute and ended."""
    ids = [database.enqueue(job_type) for _ in range(count)]
    database.rows("update job_queue set status = 'running', started_at = now() where id = any (%s)", ids)
    database.rows(
        """update job_queue set status = %s::job_status, completed_at = started_at + interval '1 minute',
                  error_class = case when %s <> 'completed' then 'crash' end where id = any (%s)""",
        status, status, ids,
    )  # fmt: skip


def count(database: Database, limit: int = 20000) -> Any:
    conn = database.connect("admin")
    try:
        return conn.execute("select count_job_hours(%s)", (limit,)).fetchone()[0]
    finally:
        conn.close()


def hours(database: Database) -> list[tuple[Any, ...]]:
    return [
        tuple(row.values())
        for row in database.rows(
            """select job_type, sum(completed)::int as completed, sum(failed)::int as failed,
                      sum(retried)::int as retried, sum(run_seconds)::int as run_seconds
                 from job_hour group by job_type order by job_type"""
        )
    ]


def test_what_ended_is_counted_by_type_and_outcome(database: Database) -> None:
    ended(database, 3)
    ended(database, 2, status="error")
    ended(database, 1, status="retry")
    ended(database, 1, job_type="other_job")

    assert count(database) == 21, "three events for each of seven jobs"
    assert hours(database) == [("other_job", 1, 0, 0, 60), ("test_job", 3, 2, 1, 180)]


def test_cancelled_jobs_are_no_failures(database: Database) -> None:
    database.rows("select cancel_job(%s)", database.enqueue())
    count(database)

    assert hours(database) == [("test_job", 0, 0, 0, 0)]


def test_an_event_counts_once_however_often_and_in_what_pieces_it_is_asked(database: Database) -> None:
    ended(database, 5)
    pieces = [count(database, 4) for _ in range(5)]
    ended(database, 1)
    rest = [count(database, 4) for _ in range(2)]

    assert (pieces, rest) == ([4, 4, 4, 3, 0], [3, 0])
    assert hours(database) == [("test_job", 6, 0, 0, 360)]


def test_an_event_of_a_slow_transaction_is_waited_for(database: Database) -> None:
    """Its id and transaction are lower than those of events that can be seen already."""
    slow = database.connect(autocommit=False)
    slow.execute("insert into job_queue (job_type, payload, status) values ('test_job', '{}', 'completed')")
    ended(database, 2, job_type="other_job")
    assert count(database) == 0, "nothing above the oldest transaction"
    slow.commit()

    assert count(database) == 7
    assert hours(database) == [("other_job", 2, 0, 0, 120), ("test_job", 1, 0, 0, 0)]


def test_two_at_once_leave_it_to_one(database: Database) -> None:
    ended(database, 1)
    other = database.connect("admin", autocommit=False)
    assert other.execute("select count_job_hours()").fetchone()[0] == 3
    assert count(database) is None
    other.commit()

    assert count(database) == 0
    assert hours(database) == [("test_job", 1, 0, 0, 60)]


def test_a_restored_database_goes_on_where_the_backup_was(database: Database) -> None:
    """There transactions count anew: every event that came with it has the transaction 0."""
    ended(database, 2)
    count(database)
    ended(database, 1)
    database.rows("update job_event set xid = '0'")
    database.rows("update job_hour_position set cursor_xid = '999999999999'")
    count(database)
    ended(database, 1)
    count(database)

    assert hours(database) == [("test_job", 4, 0, 0, 240)]
