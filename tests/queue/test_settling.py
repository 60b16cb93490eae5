"""settle and settle_together themselves, on a database that is in the way of what they write, or away."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import psycopg
import pytest
from psycopg.rows import dict_row

from sidelinja_jobs import queue, settling
from sidelinja_jobs.database import Link, QueueConnection, connect
from sidelinja_jobs.errors import RefusedError
from sidelinja_jobs.models import Rules
from sidelinja_jobs.outcomes import Completed, Writes
from sidelinja_jobs.run import Phase, Run
from sidelinja_jobs.settings import DatabaseSettings
from sidelinja_jobs.settling import COMPLETED
from sidelinja_jobs.settling_together import Finished, settle_together
from tests.databases import Database
from tests.fault_tools import attempts_of
from tests.sessions import worker_session
from tests.waiting import wait_until

RESULT = msgspec.Raw(b'{"n":1}')


def held(database: Database, count: int, *, lease_seconds: int = 60) -> list[Run]:
    """Claimed runs, in the order in which their rows are locked."""
    for _ in range(count):
        database.enqueue()
    claims = queue.claim(worker_session(database), "test_job", "w1", count)
    rules = Rules(lease_seconds, 600, 0, 20, 1000)
    runs = [Run(claim, "test_job", rules, time.monotonic()) for claim in claims]
    return sorted(runs, key=lambda run: run.id.int)


@contextlib.contextmanager
def link_of(database: Database, *, failures: int = 0) -> Iterator[Link]:
    """A worker's link, of which the first attempts find nobody."""
    left = iter(range(failures))

    def open_anew() -> QueueConnection:
        if next(left, None) is not None:
            raise psycopg.OperationalError("nobody there")
        return connect(DatabaseSettings(url=database.dsn("worker_test")), name="test")

    link = Link(open_anew, lambda: None)
    yield link
    link.close()


def at_once(_run: Run, _phase: Phase, function: Callable[[], Any]) -> None:
    """In place of an Interrupter: nobody interrupts."""
    function()


def test_a_result_over_the_limit_is_refused_with_all_that_come_with_it(database: Database) -> None:
    runs = held(database, 3)
    conn = database.connect("worker_test", row_factory=dict_row)
    huge = msgspec.Raw(msgspec.json.encode([1e300] * 60_000))

    with pytest.raises(RefusedError, match="one of 3 results is over the limit"):
        queue.complete_many(conn, runs, [RESULT, huge, RESULT])

    assert database.value("select count(*) from job_queue where status = 'running'") == 3
    large = msgspec.Raw(msgspec.json.encode("x" * 10_000_000))
    assert queue.complete_many(conn, runs, [RESULT, large, RESULT]) == set()


def test_a_deadlock_among_the_writes_of_a_batch_costs_no_job_an_attempt(database: Database) -> None:
    """Alone, none of its jobs would have been in anybody's way."""
    database.rows("create table shelf (id integer primary key, taken integer default 0)")
    database.rows("insert into shelf values (1), (2)")
    database.rows("grant select, update on shelf to worker_test")
    database.rows(f"alter database {database.name} set deadlock_timeout = '20ms'")
    runs = held(database, 2)
    rival = database.connect(autocommit=False)
    rival.execute("set deadlock_timeout = '1h'")  # the batch is the one that is broken off
    take = "update shelf set taken = taken + 1 where id = %s"
    rival.execute(take, (2,))

    def go_on() -> None:
        rival.execute(take, (1,))
        rival.commit()

    thread = threading.Thread(target=go_on)
    waiting = f"select 1 from pg_locks where not granted and pid = {rival.info.backend_pid}"

    def take_second(conn: psycopg.Connection[Any]) -> None:
        if thread.ident is None:
            thread.start()
            wait_until(lambda: database.rows(waiting), what="the rival to wait for the first one")
        conn.execute(take, (2,))

    writes: list[Writes] = [lambda conn: conn.execute(take, (1,)) and None, take_second]
    finished = [Finished(run, Completed(RESULT, [write]), 0.0) for run, write in zip(runs, writes, strict=True)]

    with link_of(database) as link:
        assert settle_together(link, finished, at_once) == [COMPLETED] * 2

    thread.join(10)
    assert database.rows("select taken from shelf") == [{"taken": 2}] * 2
    assert [attempts_of(database, run.id) for run in runs] == [[], []]


def test_rows_of_a_batch_with_writes_are_locked_in_the_order_of_all_who_lock_many(database: Database) -> None:
    """Whoever waits for one of them in the other order waits for this batch, and it for them."""
    database.rows(f"alter database {database.name} set deadlock_timeout = '20ms'")
    low, high = held(database, 2)
    rival = database.connect(autocommit=False)
    rival.execute("set deadlock_timeout = '1h'")
    lock = "select from job_queue where id = %s for update"
    rival.execute(lock, (low.id,))

    def go_on() -> None:
        wait_until(lambda: database.rows("select 1 from pg_locks where not granted"), what="the batch to wait")
        rival.execute(lock, (high.id,))
        rival.commit()

    called: list[str] = []
    finished = [
        Finished(high, Completed(RESULT, [lambda _: called.append("high")]), 0.0),
        Finished(low, Completed(RESULT, [lambda _: called.append("low")]), 0.0),
    ]
    thread = threading.Thread(target=go_on)
    thread.start()

    with link_of(database) as link:
        assert settle_together(link, finished, at_once) == [COMPLETED] * 2

    thread.join(10)
    assert called == ["low", "high"]


def test_a_database_that_is_away_has_refused_nothing(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settling, "REFUSED_SECONDS", 0.0)
    (run,) = held(database, 1, lease_seconds=4)

    with link_of(database, failures=3) as link:
        assert settling.settle(link, run, Completed(RESULT), at_once) is COMPLETED
    assert attempts_of(database, run.id) == []
