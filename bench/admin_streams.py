"""What open pages of the admin view cost: 50 event streams, 50 changes of jobs a second, for 30 seconds.

    make bench-admin-live ARGS="[--streams 50] [--changes 50] [--seconds 30]"

Starts the admin view as a process of its own on an embedded PostgreSQL, logs in, opens the streams as browsers do, and
changes jobs: half of them status, half of them progress. Measured are the view's memory and CPU time, and how long a
change of status takes from its commit to each stream. Ends with 1 when the view takes 150 MB or half a core, or a
stream missed a change; the last line is JSON.
"""

import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click
import httpx
import psutil
import psycopg

from demo.embedded_postgres import NOT_DURABLE, EmbeddedPostgres
from tests.databases import Database, Server
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parent.parent
MOST_BYTES, MOST_CORES = 150 * 10**6, 0.5
PASSWORD = "measured"
RUNNING = 25  # jobs whose progress changes


def start_view(database: Database, port: int, streams: int, folder: Path) -> subprocess.Popen[bytes]:
    """The admin view, listening."""
    environ = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{ROOT / 'shared'}:{ROOT}",
        "DATABASE_URL": database.dsn("admin"),
        "ADMIN_PORT": str(port),
        "ADMIN_PASSWORD": PASSWORD,
        "ADMIN_LIVE_STREAMS": str(streams),
        "HEALTH_FILE": str(folder / "healthy"),
        "LOG_FORMAT": "json",
        "LOG_LEVEL": "warning",
        "MALLOC_MMAP_THRESHOLD_": "131072",  # as in the image: what a login took is given back
    }
    process = subprocess.Popen([sys.executable, "-m", "services.admin"], env=environ, cwd=ROOT)
    wait_until((folder / "healthy").exists, 30, what="the admin view")
    return process


def log_in(url: str) -> tuple[str, str]:
    """The cookie, and the cursor of a page."""
    with httpx.Client(base_url=url, headers={"Sec-Fetch-Site": "same-origin"}) as client:
        client.post("/login", data={"name": "admin", "password": PASSWORD})
        page = client.get("/").text
        return client.cookies["jobbko_session"], page.partition('data-cursor="')[2].partition('"')[0]


async def listen(port: int, cookie: str, cursor: str, heard: dict[str, float]) -> None:
    """One stream: when each job was first told to be pending."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    request = f"GET /live?after={cursor} HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: jobbko_session={cookie}\r\n\r\n"
    writer.write(request.encode())
    kind = b""
    try:
        while line := await reader.readline():
            if line.startswith(b"event: "):
                kind = line[7:].strip()
            elif line.startswith(b"data: ") and kind == b"job":
                now = time.monotonic()
                for job in json.loads(line[6:]):
                    heard.setdefault(job["id"], now)
    finally:
        writer.close()


async def change(dsn: str, seconds: float, changes: int) -> dict[str, float]:
    """Enqueues and progresses at a steady pace; when each new job was committed."""
    made: dict[str, float] = {}
    started = time.monotonic()
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        for number in range(int(seconds * changes)):
            await asyncio.sleep(max(0.0, started + number / changes - time.monotonic()))
            if number % 2:
                await connection.execute(
                    "update job_queue set progress = %s where id = (select id from job_queue where status = 'running'"
                    " order by id offset %s limit 1)",
                    (number % 100 / 100, number // 2 % RUNNING),
                )
            else:
                cursor = await connection.execute(
                    "insert into job_queue (job_type, payload) values ('test_job', '{}') returning id"
                )
                row = await cursor.fetchone()
                assert row is not None
                made[str(row[0])] = time.monotonic()
    return made


async def run(port: int, cookie: str, cursor: str, dsn: str, streams: int, changes: int, seconds: float) -> Any:
    """What was made, and what each stream heard."""
    heard: list[dict[str, float]] = [{} for _ in range(streams)]
    tasks = [asyncio.create_task(listen(port, cookie, cursor, each)) for each in heard]
    await asyncio.sleep(1)
    made = await change(dsn, seconds, changes)
    for _ in range(50):
        if all(made.keys() <= each.keys() for each in heard):
            break
        await asyncio.sleep(0.1)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return made, heard


@click.command()
@click.option("--streams", default=50, show_default=True)
@click.option("--changes", default=50, show_default=True, help="Changes a second.")
@click.option("--seconds", default=30.0, show_default=True)
def main(streams: int, changes: int, seconds: float) -> None:
    """Measure the event streams."""
    with tempfile.TemporaryDirectory(prefix="jobbko-streams-") as name, socket.socket() as probe:
        folder = Path(name)
        folder.chmod(0o755)
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        with EmbeddedPostgres(folder / "server", settings=NOT_DURABLE) as postgres:
            server = Server(postgres.dsn())
            server.prepare()
            database = server.create_database()
            for _ in range(RUNNING):
                database.enqueue(status="running", progress=0)
            view = start_view(database, port, streams, folder)
            try:
                cookie, cursor = log_in(f"http://127.0.0.1:{port}")
                process = psutil.Process(view.pid)
                idle, before, started = process.memory_info().rss, sum(process.cpu_times()[:2]), time.monotonic()
                made, heard = asyncio.run(run(port, cookie, cursor, database.dsn(), streams, changes, seconds))
                cores = (sum(process.cpu_times()[:2]) - before) / (time.monotonic() - started)
                resident = process.memory_info().rss
            finally:
                view.terminate()
                view.wait(20)
                database.close()
    delays = sorted(each[job] - at for each in heard for job, at in made.items() if job in each)
    figures = {
        "streams": streams,
        "changes_per_second": changes,
        "seconds": seconds,
        "idle_mb": round(idle / 1e6, 1),
        "resident_mb": round(resident / 1e6, 1),
        "cores": round(cores, 3),
        "missed": streams * len(made) - len(delays),
        "delay_p50_ms": round(statistics.median(delays) * 1000),
        "delay_p95_ms": round(delays[int(len(delays) * 0.95)] * 1000),
        "delay_max_ms": round(delays[-1] * 1000),
    }
    for key, value in figures.items():
        click.echo(f"{key:>20}  {value}")
    click.echo(json.dumps(figures))
    if resident >= MOST_BYTES or cores >= MOST_CORES or figures["missed"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
