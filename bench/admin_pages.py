"""What each page of the admin view asks of the database, with a million jobs in it.

    make bench-admin ARGS="[--jobs 1000000] [--rounds 5] [--limit-ms 50]"

Fills an embedded PostgreSQL with jobs (nine in ten completed, one in ten in error, a waiting backlog), two and a half
events to each, and attempts of those that failed; starts the admin view on it and asks for every page several times.
The time is what pg_stat_statements counts for planning and executing all statements of a request; the table shows the
slowest round. The scans of whole tables that job_queue and job_event met meanwhile are counted, too. Then a view in a
process of its own sends all jobs as CSV, and its memory is watched. Ends with 1 when a page is over the limit, one of
the two tables was scanned or the view took 100 MB; the last line is JSON.
"""

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import httpx
import psutil
import psycopg

from bench.admin_streams import log_in, start_view
from demo.embedded_postgres import NOT_DURABLE, EmbeddedPostgres, free_port
from sidelinja_jobs.queries import load_queries
from tests.databases import Database, Server
from tests.services.admin_site import admin_site_with

SETTINGS = NOT_DURABLE | {
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track": "top",
    "pg_stat_statements.track_planning": "on",
    "shared_buffers": "1GB",
    "max_wal_size": "8GB",
    "jit": "off",
}
TABLES = ("job_queue", "job_event")
BATCH = 100_000
MOST_BYTES = 100 * 10**6

SQL = load_queries(Path(__file__).with_suffix(".sql"))
SCANS = "select relname, seq_scan from pg_stat_user_tables where relname = any (%s)"


def fill(database: Database, total: int) -> None:
    """The tables as they are after some weeks."""
    with psycopg.connect(database.dsn(), autocommit=True) as conn:
        conn.execute("set session_replication_role = replica")  # no triggers: the events are made below
        for first in range(1, total + 1, BATCH):
            conn.execute(SQL["jobs"], {"total": total, "first": first, "last": min(first + BATCH - 1, total)})
        conn.execute(SQL["events"])
        conn.execute(SQL["attempts"])
        conn.execute("create extension pg_stat_statements")
        while conn.execute("select count_job_hours(200000)").fetchone() == (200_000,):
            pass  # a view that runs for weeks has counted them
        conn.execute("vacuum analyze")


def pages(database: Database) -> Iterator[tuple[str, str]]:
    """Name and path of every page, and of the filters that have to be fast."""
    row = database.row("select id, error_fingerprint from job_queue where status = 'error' order by created_at limit 1")
    failed, group = row["id"], row["error_fingerprint"]
    middle = database.row("select created_at, id from job_queue where status = 'completed' order by id limit 1")
    place = f"{middle['created_at'].isoformat().replace('+', '%2B')}_{middle['id']}"
    yield from (
        ("overview", "/"),
        ("jobs", "/jobs"),
        ("jobs, deep", f"/jobs?before={place}"),
        ("jobs, error", "/jobs?status=error"),
        ("jobs, error deep", f"/jobs?status=error&before={place}"),
        ("jobs, error, class without jobs", "/jobs?status=error&class=nothing"),
        ("jobs, waiting", "/jobs?status=pending&status=retry"),
        ("jobs, retry", "/jobs?status=retry"),
        ("jobs, running", "/jobs?status=running"),
        ("jobs, completed of one type", "/jobs?status=completed&type=stats_parse"),
        ("jobs, type without jobs", "/jobs?type=nothing"),
        ("jobs, worker without jobs", "/jobs?worker=nobody"),
        ("jobs, text that is there", "/jobs?q=episode-9"),
        ("jobs, text that is not", "/jobs?q=not-there-at-all"),
        ("jobs, error text that is not", "/jobs?status=error&q=not-there-at-all"),
        ("jobs, a window of time", "/jobs?since=2026-01-01&until=2027-01-01&type=nothing"),
        ("jobs, one group", f"/jobs?status=error&group={group}"),
        ("jobs, id", f"/jobs?id={str(failed)[:6]}&status=error"),
        ("errors", "/errors"),
        ("errors of one type", "/errors?type=whisper_transcribe"),
        ("ask: retry a group", f"/jobs/all?action=retry&status=error&group={group}"),
        ("ask: retry all errors", "/jobs/all?action=retry&status=error"),
        ("ask: cancel all waiting", "/jobs/all?action=cancel&status=pending"),
        ("job, failed", f"/jobs/{failed}"),
        ("job, completed", f"/jobs/{middle['id']}"),
        ("job, waiting last", f"/jobs/{database.value(SQL['last_waiting'])}"),
        ("job, to edit", f"/jobs/{failed}/edit"),
        ("enqueue", "/enqueue"),
        ("enqueue form", "/enqueue/whisper_transcribe"),
        ("workers", "/workers"),
        ("schedules", "/schedules"),
        ("statistics", "/statistics"),
        ("spend", "/spend"),
        ("audit", "/audit"),
    )


def scans(database: Database) -> dict[str, int]:
    database.rows("select pg_stat_force_next_flush(), pg_stat_clear_snapshot()")
    return {row["relname"]: row["seq_scan"] for row in database.rows(SCANS, list(TABLES))}


def measure(database: Database, rounds: int) -> list[dict[str, Any]]:
    found = []
    with admin_site_with(database) as site:
        for name, path in pages(database):
            site.operator.get(path)  # caches of the server's and of the disk's
            before = scans(database)
            times = []
            for _ in range(rounds):
                database.rows("select pg_stat_statements_reset()")
                answer = site.operator.get(path)
                spent = database.row(SQL["spent"])
                times.append(float(spent["ms"]))
            time.sleep(1.1)  # the server tells its counters of scans once a second
            after = scans(database)
            found.append(
                {
                    "page": name,
                    "status": answer.status_code,
                    "ms": round(max(times), 1),
                    "least_ms": round(min(times), 1),
                    "statements": int(spent["calls"]),
                    "kilobytes": round(len(answer.content) / 1024, 1),
                    "whole_scans": {table: after[table] - before[table] for table in TABLES},
                }
            )
            click.echo(line(found[-1]), err=True)
    return found


def export(database: Database) -> dict[str, Any]:
    """All jobs as CSV, by a view in a process of its own: lines, and the most memory that it took."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="jobbko-export-") as folder:
        view = start_view(database, port, 1, Path(folder))
        process = psutil.Process(view.pid)
        try:
            url = f"http://127.0.0.1:{port}"
            cookies = {"jobbko_session": log_in(url)[0]}
            before = most = process.memory_info().rss
            lines, sent, began = 0, 0, time.monotonic()
            with httpx.stream("GET", f"{url}/jobs/export.csv", cookies=cookies, timeout=120) as answer:
                for piece in answer.iter_bytes():
                    lines, sent = lines + piece.count(b"\n"), sent + len(piece)
                    most = max(most, process.memory_info().rss)
            seconds = time.monotonic() - began
        finally:
            view.terminate()
            view.wait(20)
    return {
        "lines": lines,
        "megabytes": round(sent / 1e6),
        "seconds": round(seconds),
        "most_bytes": most,
        "before": before,
    }


def line(row: dict[str, Any]) -> str:
    scanned = sum(row["whole_scans"].values())
    return (
        f"{row['page']:<34} {row['status']} {row['ms']:>8.1f} ms (least {row['least_ms']:.1f}), "
        f"{row['statements']:>2} statements, {row['kilobytes']:>7.1f} kB{', WHOLE TABLE SCANNED' if scanned else ''}"
    )


@click.command()
@click.option("--jobs", default=1_000_000, show_default=True)
@click.option("--rounds", default=5, show_default=True)
@click.option("--limit-ms", default=50.0, show_default=True)
def main(jobs: int, rounds: int, limit_ms: float) -> None:
    """Measure every page."""
    folder = Path(tempfile.mkdtemp(prefix="jobbko-bench-"))
    folder.chmod(0o755)
    with EmbeddedPostgres(folder / "server", settings=SETTINGS) as postgres:
        server = Server(postgres.dsn())
        server.prepare()
        database = server.create_database()
        began = time.monotonic()
        fill(database, jobs)
        click.echo(f"filled with {jobs} jobs in {time.monotonic() - began:.0f} s", err=True)
        found = measure(database, rounds)
        sent = export(database)
        database.close()
    click.echo(f"CSV: {sent['lines']} lines, {sent['megabytes']} MB, {sent['seconds']} s, "
               f"at most {sent['most_bytes'] / 1e6:.0f} MB of memory", err=True)  # fmt: skip
    over = [row["page"] for row in found if row["ms"] > limit_ms or row["status"] not in (200, 303)]
    scanned = [row["page"] for row in found if any(row["whole_scans"].values())]
    is_large = sent["most_bytes"] > MOST_BYTES or sent["lines"] != jobs + 1
    click.echo(
        json.dumps({"jobs": jobs, "limit_ms": limit_ms, "over": over, "scanned": scanned, "csv": sent, "pages": found})
    )
    sys.exit(1 if over or scanned or is_large else 0)


if __name__ == "__main__":
    main()
