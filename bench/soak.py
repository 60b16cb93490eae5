"""A soak: workers of several kinds, producers, and a chaos that kills, stops and cuts all of them and the server.

    make soak ARGS="[--minutes 10] [--seed N]"

On an embedded PostgreSQL of its own. Every job leaves one row in the transaction that completes it; when the chaos is
over and the queue is empty, each job has to be accounted for (soak_accounts.py). Ends with 1 when an account does not
balance, when the queue does not become empty, or when a job of a dead worker is due again later than after lease, sweep
and backoff together. How long it then stands in line is told apart: that is a matter of load. The last line is JSON.
"""

import contextlib
import json
import random
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import click
import psycopg

from bench.soak_accounts import TABLES, balance, figures, recoveries, share
from bench.soak_chaos import CREW, Chaos, Crew
from demo.embedded_postgres import EmbeddedPostgres
from tests.databases import Database, Server, embedded_server
from tests.tcp_proxy import Proxy
from tests.waiting import wait_until

LEASE_SECONDS = 4
SWEEP_SECONDS = LEASE_SECONDS / 4 * 1.2  # lease.py: a quarter of the lease, spread by a fifth
BACKOFF_SECONDS = 2  # the cap, so that the bound does not depend on the attempt
BOUND_SECONDS = LEASE_SECONDS + SWEEP_SECONDS + BACKOFF_SECONDS  # from the death until the job is due again
EMPTY_SECONDS = 120  # how long the rest may take once the chaos is over
SHARES = {"quick": 12, "slow": 0.2, "failing": 1.2, "follow": 2}  # jobs per round of a producer, on average
ROUND_SECONDS = 0.5
BACKLOG = 60  # beyond which a producer waits

ASK = """
with asked as (
    insert into job_queue (id, job_type, payload)
    select id, %s, jsonb_build_object('n', (random() * 1000000)::integer) from unnest(%s::uuid[]) as wanted (id)
    on conflict (id) do nothing
)
insert into soak_asked select unnest(%s::uuid[]) on conflict do nothing
"""
ASK_BY_KEY = "select enqueue_job('soak_unique', '{}', p_unique_key => 'k' || (random() * 3)::integer)"
WAITING = """
select job_type, count(*) as count from job_queue where status in ('pending', 'retry') group by 1
"""
UNFINISHED = """
select count(*) from job_queue
 where status in ('pending', 'retry', 'running') and coalesce(unique_key, '') not like 'schedule:%'
"""


class Producer(threading.Thread):
    """Enqueues at a steady rate. A commit whose answer was lost is sent again with the same ids."""

    def __init__(self, database: Database) -> None:
        super().__init__(daemon=True)
        self._database = database
        self.is_over = threading.Event()

    def run(self) -> None:
        while not self.is_over.wait(ROUND_SECONDS):
            waiting: dict[str, int] = {}
            with contextlib.suppress(psycopg.Error):
                waiting = {row["job_type"]: row["count"] for row in self._database.rows(WAITING)}
                self._database.rows(ASK_BY_KEY)
            for name, mean in SHARES.items():
                count = int(mean + random.random())  # noqa: S311
                if count and waiting.get(f"soak_{name}", 0) < BACKLOG:
                    self._ask(f"soak_{name}", count)

    def _ask(self, job_type: str, count: int) -> None:
        ids = [uuid4() for _ in range(count)]
        while True:
            with contextlib.suppress(psycopg.Error):
                self._database.rows(ASK, job_type, ids, ids)
                return
            time.sleep(0.2)


def prepare(server: Server) -> Database:
    """A database with the soak's types, tables and schedules."""
    database = server.create_database()
    for name in sorted(set(CREW)):
        database.add_job_type(
            f"soak_{name}",
            lease_seconds=LEASE_SECONDS,
            longest_run_seconds=60,
            batch_size=50 if name == "quick" else 1,
            backoff_base_seconds=1,
            backoff_cap_seconds=BACKOFF_SECONDS,
            keep_completed_days=1,
            keep_error_days=1,
        )
    database.rows("update job_type set follow_ups = '{soak_quick}' where name = 'soak_follow'")
    database.rows(TABLES)
    database.rows(
        "insert into job_schedule (name, job_type, every) values"
        " ('often', 'soak_quick', '2 seconds'), ('seldom', 'soak_slow', '15 seconds')"
    )
    return database


def wreck(postgres: EmbeddedPostgres, database: Database, folder: Path, seconds: float) -> tuple[Chaos, Crew, bool]:
    """Lets everything run and go wrong for so long, then waits until the queue is empty; whether it became so."""
    other = Database(database.server, database.name)  # connections are not shared between threads
    with Proxy(postgres.host, postgres.port) as proxy:
        crew = Crew(other, proxy, folder)
        chaos, producer = Chaos(other, postgres, proxy, crew, LEASE_SECONDS), Producer(database)
        try:
            crew.fill()
            producer.start()
            end = time.monotonic() + seconds
            # However short the soak is, the server has been stopped once and killed once.
            fixed = [(end - seconds * 0.6, chaos.restart_server), (end - seconds * 0.3, chaos.kill_server)]
            while time.monotonic() < end:
                time.sleep(random.uniform(0.5, 2.5))  # noqa: S311
                chaos.step(fixed.pop(0)[1] if fixed and time.monotonic() >= fixed[0][0] else None)
                crew.fill()
            producer.is_over.set()
            producer.join(30)
            chaos.end()

            def is_empty() -> bool:
                crew.fill()  # a handler may still end its process
                return other.value(UNFINISHED) == 0

            emptied = True
            try:
                wait_until(is_empty, EMPTY_SECONDS, every=0.5, what="the queue to become empty")
            except TimeoutError as error:
                emptied = False
                print(error, file=sys.stderr)
            codes = crew.end()
            if any(codes):
                print(f"workers ended with {codes}", file=sys.stderr)
            return chaos, crew, emptied
        finally:
            chaos.end()
            crew.end_hard()
            other.close()


def report(database: Database, chaos: Chaos, crew: Crew, emptied: bool, seconds: float) -> dict[str, Any]:
    """The figures, and what does not balance."""
    found = recoveries(database, chaos.deaths, chaos.outages)
    calm = [recovery for recovery in found if not recovery.is_disturbed]
    times = {
        "swept": [each.swept for each in calm],
        "recovery": [each.due for each in calm],
        "in_line": [each.in_line for each in calm if each.in_line is not None],
        "recovery_across_outages": [each.due for each in found if each.is_disturbed],
    }
    return {
        "seconds": round(seconds),
        **figures(database),
        "chaos": dict(sorted(chaos.counts.items())),
        "workers_started": len(crew.started),
        "writes_refused": crew.lost_in_logs(),
        "runs_killed": sum(len(victims) for _, victims in chaos.deaths),
        "recoveries": len(calm),
        "recovery_bound": round(BOUND_SECONDS, 2),
        **{
            f"{name}_{label}": round(share(seconds, part), 2)
            for name, seconds in times.items()
            for label, part in (("p50", 0.5), ("p99", 0.99), ("max", 1))
        },
        "emptied": emptied,
        "unbalanced": balance(database),
    }


def show(found: dict[str, Any]) -> None:
    for name, value in found.items():
        if isinstance(value, dict):
            print(f"{name:<28}", ", ".join(f"{key}: {each}" for key, each in value.items()) or "none")
        else:
            print(f"{name:<28}", value)
    print(json.dumps(found, default=str))


@click.command()
@click.option("--minutes", default=10.0, show_default=True, help="How long everything goes wrong.")
@click.option("--seed", default=None, type=int, help="Of the order of events; their times still vary.")
def main(minutes: float, seed: int | None) -> None:
    """Soak the queue."""
    random.seed(seed)
    started = time.monotonic()
    with embedded_server() as postgres, tempfile.TemporaryDirectory(prefix="jobbko-soak-") as folder:
        server = Server(postgres.dsn())
        server.prepare()
        database = prepare(server)
        chaos, crew, emptied = wreck(postgres, database, Path(folder), minutes * 60)
        found = report(database, chaos, crew, emptied, time.monotonic() - started)
        database.close()
    show(found)
    is_late = found["recovery_p99"] > BOUND_SECONDS
    sys.exit(1 if found["unbalanced"] or not emptied or is_late else 0)


if __name__ == "__main__":
    main()
