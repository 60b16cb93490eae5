"""What many workers cost one PostgreSQL: memory, statements and CPU while they idle, how soon and fast they work.

    make bench-workers ARGS="[--workers 10 --workers 100] [--seconds 30]"

Real worker processes, two connections each, on an embedded PostgreSQL with the settings of compose.yaml and
DB_CONNECTIONS raised to hold them. Memory of the server's processes is private memory, and for all of them together
their share of what they have in common. The last line is JSON.
"""

import json
import math
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import click
import psutil
import yaml

from demo.embedded_postgres import EmbeddedPostgres
from sidelinja_jobs import enqueue_many
from tests.databases import Database, Server
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcess, WorkerProcesses

ROOT = Path(__file__).resolve().parent.parent
SPARE = 20  # connections that are no worker's
SETTLE_SECONDS = 10
PICKUPS, PICKUP_GAP_SECONDS = 200, 0.1
JOBS = 5_000
START_SECONDS = 300
HANDLER = """
import time

def handle(job, ctx):
    return {"began": time.time()}
"""
STATEMENTS = "select xact_commit + xact_rollback from pg_stat_database where datname = current_database()"
BACKENDS = "select pid from pg_stat_activity where application_name like 'jobbko %'"
ONE = """
insert into job_queue (job_type, payload) values ('many', '{}') returning id, extract(epoch from clock_timestamp())
"""
BEGAN = "select id, (result->>'began')::float as began from job_queue where id = any(%s) and status = 'completed'"
LEFT = "select count(*) from job_queue where status <> 'completed'"


def settings(workers: int) -> dict[str, str]:
    """The database's settings in compose.yaml, with enough connections."""
    command = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["db"]["command"]
    found = dict(option.split("=", 1) for option in command if "=" in option)
    return found | {"max_connections": str(2 * workers + SPARE)}


@contextmanager
def crew(workers: int) -> Iterator[tuple[EmbeddedPostgres, Database, list[WorkerProcess]]]:
    """A server, a database and that many idle workers of one type."""
    folder = Path(tempfile.mkdtemp(prefix="jobbko-bench-"))
    folder.chmod(0o755)  # root's server runs as another user
    processes = WorkerProcesses(folder)
    try:
        with EmbeddedPostgres(folder / "server", settings=settings(workers)) as postgres:
            server = Server(postgres.dsn())
            server.prepare()
            database = server.create_database()
            database.add_job_type("many", lease_seconds=120)
            environ = {"LOG_LEVEL": "warning", "POLL_SECONDS": "1"}
            started = [
                processes.start(database, HANDLER, job_type="many", environ=environ, ready=False)
                for _ in range(workers)
            ]
            all_idle = "select count(*) from worker where idle"
            wait_until(lambda: database.value(all_idle) == workers, START_SECONDS, every=0.5, what="idle workers")
            yield postgres, database, started
            database.close()
            for worker in started:
                worker.end()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measure(workers: int, seconds: float) -> dict[str, Any]:
    """One row of the figures."""
    with crew(workers) as (postgres, database, started):
        time.sleep(SETTLE_SECONDS)
        return {
            "workers": workers,
            "connections": len(database.rows(BACKENDS)),
            **idle(postgres, database, started, seconds),
            **pickups(database),
            **memory(postgres, database, started),
            "jobs_per_s": round(throughput(database)),
        }


def idle(
    postgres: EmbeddedPostgres, database: Database, started: list[WorkerProcess], seconds: float
) -> dict[str, float]:
    """Statements a second of all workers, and the share of a core that the server and one worker take."""
    server, workers = [psutil.Process(postgres.pid)], [psutil.Process(worker.pid) for worker in started]
    server += server[0].children(recursive=True)
    before, server_before, workers_before = database.value(STATEMENTS), cpu(server), cpu(workers)
    time.sleep(seconds)
    return {
        "statements_per_s": round((database.value(STATEMENTS) - before) / seconds, 1),
        "server_core_percent": round(100 * (cpu(server) - server_before) / seconds, 1),
        "worker_core_percent": round(100 * (cpu(workers) - workers_before) / seconds / len(started), 2),
    }


def pickups(database: Database) -> dict[str, float]:
    """From the insert to the handler's first line, one job at a time."""
    before, asked = database.value(STATEMENTS), {}
    conn = database.connect("superuser")
    for _ in range(PICKUPS):
        job_id, at = conn.execute(ONE).fetchone()
        asked[job_id] = float(at)
        time.sleep(PICKUP_GAP_SECONDS)
    wait_until(lambda: database.value(LEFT) == 0, 60, what="all to be picked up")
    rows = database.rows(BEGAN, list(asked))
    delays = sorted(1000 * (row["began"] - asked[row["id"]]) for row in rows)
    return {
        "pickup_p50_ms": round(median(delays), 1),
        "pickup_p95_ms": round(delays[math.ceil(0.95 * len(delays)) - 1], 1),
        "statements_per_pickup": round((database.value(STATEMENTS) - before) / PICKUPS, 1),
    }


def throughput(database: Database) -> float:
    """Empty jobs a second, one at a time in each worker."""
    begun = time.monotonic()
    with database.connect("superuser", autocommit=False) as conn:
        enqueue_many(conn, "many", [{}] * JOBS)
    wait_until(lambda: database.value(LEFT) == 0, 300, every=0.05, what="all jobs")
    return JOBS / (time.monotonic() - begun)


def memory(postgres: EmbeddedPostgres, database: Database, started: list[WorkerProcess]) -> dict[str, float]:
    """Megabytes: private ones of a worker's connection, shares of all the server's processes, one worker's own."""
    backends = [psutil.Process(row["pid"]).memory_full_info() for row in database.rows(BACKENDS)]
    first = psutil.Process(postgres.pid)
    shares = sum(process.memory_full_info().pss for process in [first, *first.children(recursive=True)])
    return {
        "mb_per_connection": round(median(each.uss for each in backends) / 2**20, 2),
        "server_mb": round(shares / 2**20),
        "worker_mb": round(median(psutil.Process(each.pid).memory_full_info().pss for each in started) / 2**20, 1),
    }


def cpu(processes: list[psutil.Process]) -> float:
    """Seconds of all of them."""
    return sum(sum(process.cpu_times()[:2]) for process in processes)


@click.command()
@click.option("--workers", multiple=True, default=(10, 50, 100), show_default=True, help="How many; may be repeated.")
@click.option("--seconds", default=30.0, show_default=True, help="Of idleness that are measured.")
def main(workers: tuple[int, ...], seconds: float) -> None:
    """Measure."""
    rows = [measure(count, seconds) for count in workers]
    for name in rows[0]:
        print(f"{name:<22}", *(f"{row[name]:>10}" for row in rows))
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
