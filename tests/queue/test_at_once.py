"""Everything at once: enqueuers, workers, sweepers and an operator on the same few jobs. No deadlock, no step that the
specification does not allow, and the laws of the tables hold."""

import random
import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg.rows import dict_row

from sidelinja_jobs import enqueue, queue
from sidelinja_jobs.errors import LeaseLostError, NotFoundError, RefusedError
from tests.databases import Database
from tests.queue.queue_laws import broken_laws
from tests.sessions import run_in_threads, worker_session

SECONDS = 3.0
STEPS = {
    (None, "pending"),
    ("pending", "running"),
    ("retry", "running"),
    ("running", "completed"),
    ("running", "retry"),
    ("running", "error"),
    ("running", "pending"),
    ("pending", "error"),
    ("retry", "error"),
    ("error", "pending"),
}


class Chaos:
    """The actors; each runs in a thread of its own until time is up."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.end = time.monotonic() + SECONDS
        self.done = 0
        self._lock = threading.Lock()

    def repeat(self, act: Callable[[random.Random], object], seed: int) -> None:
        dice = random.Random(seed)  # noqa: S311
        while time.monotonic() < self.end:
            try:
                act(dice)
            except (LeaseLostError, RefusedError, NotFoundError):
                continue  # someone else was faster

    def enqueuer(self, number: int) -> None:
        conn = self.database.connect("producer")
        keys = [None, "a", "b", "c"]
        self.repeat(lambda dice: enqueue(conn, "test_job", {}, unique_key=dice.choice(keys), max_attempts=2), number)

    def worker(self, number: int) -> None:
        conn = worker_session(self.database, worker_id=f"w{number}")

        def act(dice: random.Random) -> None:
            for run in queue.claim(conn, "test_job", f"w{number}", dice.randrange(1, 6)):
                queue.extend(conn, [run], [(0.5, "x")])
                if dice.random() < 0.2:
                    continue  # dies without a word
                if dice.random() < 0.3:
                    queue.write_checkpoint(conn, run, {}, 1)
                self.settle(conn, run, dice)

        self.repeat(act, number)

    def settle(self, conn: Any, run: Any, dice: random.Random) -> None:
        end = dice.randrange(5)
        if end == 0:
            queue.fail(conn, run, "X", "x", retry_after_seconds=0, permanent=dice.random() < 0.3)
        elif end == 1:
            queue.release(conn, run, "x")
        elif end == 2:
            queue.postpone(conn, run, None, "x")
        else:
            queue.complete(conn, run, {})
            with self._lock:
                self.done += 1

    def sweeper(self, number: int) -> None:
        conn = worker_session(self.database, worker_id=f"w{number}")
        superuser = self.database.connect()

        def act(_: random.Random) -> None:
            superuser.execute(
                """update job_queue set scheduled_for = created_at,
                          lease_until = case when status = 'running' then now() - interval '1 s' end
                    where id in (select id from job_queue where status in ('running', 'retry')
                                  order by id limit 20 for update skip locked)"""
            )
            queue.sweep(conn)

        self.repeat(act, number)

    def operator(self, number: int) -> None:
        conn = self.database.connect("operator")

        def act(dice: random.Random) -> None:
            jobs = conn.execute(
                "select id from job_queue where status <> 'completed' order by random() limit 5"
            ).fetchall()
            for (job_id,) in jobs:
                function = dice.choice(["cancel_job", "retry_job"])
                try:
                    conn.execute(f"select {function}(%s)", (job_id,))
                except psycopg.Error as error:
                    if error.sqlstate not in ("JQ002", "JQ004"):
                        raise

        self.repeat(act, number)


def test_no_deadlock_and_no_step_that_is_not_allowed(database: Database) -> None:
    chaos = Chaos(database)
    actors = [chaos.enqueuer, chaos.enqueuer, chaos.worker, chaos.worker, chaos.worker]
    actors += [chaos.sweeper, chaos.sweeper, chaos.operator]

    run_in_threads(lambda number: actors[number](number), len(actors))

    steps = {
        (row["old_status"], row["new_status"])
        for row in database.rows("select distinct old_status, new_status from job_event")
    }
    assert steps <= STEPS
    assert broken_laws(database.connect(row_factory=dict_row)) == []
    completed = database.row(
        "select count(*), count(distinct job_id) as jobs from job_event where new_status = 'completed'"
    )
    assert completed == {"count": chaos.done, "jobs": chaos.done}
    assert database.value("select count(*) from job_queue where status = 'completed'") == chaos.done > 0
    assert database.value("select deadlocks from pg_stat_database where datname = current_database()") == 0
