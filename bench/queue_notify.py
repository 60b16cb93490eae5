"""What NOTIFY costs those who enqueue: eight clients that each commit one row at a time, three ways in turn.

«busy»: as it is, while no worker of the type is idle; «idle»: as it is, while one is; «without»: with the notification
taken out of the trigger. The rows are bare inserts by pgbench, so that no Python is in the way. The last line is JSON.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import psycopg

from demo.embedded_postgres import EmbeddedPostgres, installation
from sidelinja_jobs.migrate import migrate

ROOT = Path(__file__).resolve().parents[1]
INSERT = "insert into job_queue (job_type, payload) values ('b', '{\"i\": 0}');\n"
WORKER = "insert into worker (worker_id, job_type, version, host, pid, idle) values ('w', 'b', '1', 'host', 1, %s)"
NO_NOTIFY = """create or replace function wake_idle_workers(p_job_types text[]) returns void
               language sql set search_path = pg_catalog, public, pg_temp as 'select'"""
WAYS: dict[str, tuple[bool, list[str]]] = {  # whether a worker is idle, and what is changed
    "without": (False, [NO_NOTIFY]),
    "busy": (False, []),
    "idle": (True, []),
}
TARGET = 0.85


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--clients", type=int, default=8)
    options = parser.parse_args()
    rates: dict[str, list[float]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory(prefix="jobbko-bench-") as folder:
        Path(folder).chmod(0o755)  # root's server runs as another user
        with EmbeddedPostgres(Path(folder) / "server", settings={"shared_buffers": "512MB"}) as postgres:
            script = Path(folder) / "insert.sql"
            script.write_text(INSERT)
            for way, (is_idle, changes) in WAYS.items():
                prepare(postgres.dsn(way), is_idle, changes)
            for _ in range(options.rounds):
                for way in WAYS:
                    rates[way].append(rate_of(postgres.dsn(way), script, options))
    report(rates, options)


def prepare(dsn: str, is_idle: bool, changes: list[str]) -> None:
    migrate(dsn, ROOT / "db" / "init")
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(WORKER, (is_idle,))
        for statement in changes:
            conn.execute(statement.encode())


def rate_of(dsn: str, script: Path, options: argparse.Namespace) -> float:
    """Rows a second."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("truncate job_queue, job_event cascade")
        conn.execute("checkpoint")
    command = [str(installation() / "bin" / "pgbench"), "--no-vacuum", "--client", str(options.clients), "--jobs", "2",
               "--time", str(options.seconds), "--protocol", "prepared", "--file", str(script), dsn]  # fmt: skip
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"tps = ([\d.]+)", said)
    if found is None:
        raise SystemExit(f"pgbench named no rate: {said}")
    return float(found[1])


def report(rates: dict[str, list[float]], options: argparse.Namespace) -> None:
    shares: dict[str, Any] = {
        way: statistics.median(mine / bare for mine, bare in zip(rates[way], rates["without"], strict=True))
        for way in WAYS
    }
    print("\n| way | rows/s | share of the same round without NOTIFY |\n|---|---|---|")
    for way, each in rates.items():
        print(f"| {way} | {statistics.median(each):,.0f} ({min(each):,.0f}-{max(each):,.0f}) | {shares[way]:.2f} |")
    print(f"Goal while workers are busy: {TARGET}. Load average: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(json.dumps({"rounds": options.rounds, "clients": options.clients, "rates": rates, "shares": shares}))


if __name__ == "__main__":
    main()
