"""What enqueueing by the JSON API costs: requests a second and memory, with 8 connections.

    make bench-api ARGS="[--seconds 10] [--connections 8]"

Starts the admin view as a process of its own on an embedded PostgreSQL (fsync off, as everywhere here), and sends jobs
over HTTP/1.1: one per request, then a hundred. The client is a raw loop over sockets, since an HTTP library
would cost more than the service. The last line is JSON.
"""

import asyncio
import json
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import click
import psutil

from bench.admin_streams import start_view
from demo.embedded_postgres import NOT_DURABLE, EmbeddedPostgres, free_port
from services.admin.access.digests import digest
from services.admin.api.tokens import new_token
from tests.databases import Server

ROOT = Path(__file__).resolve().parent.parent
JOB = {"job_type": "test_job", "payload": {"path": "podcast/episode-17.mp3", "language": "no"}}
BATCH = 100


async def send(port: int, request: bytes, until: float, times: list[float]) -> None:
    """One connection: a request after the other."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while (began := time.perf_counter()) < until:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 201"), head
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(int(length.partition(b":")[2]))
        times.append(time.perf_counter() - began)
    writer.close()


async def measure(port: int, path: str, token: str, document: object, connections: int, seconds: float) -> list[float]:
    """Seconds of each request."""
    body = json.dumps(document).encode()
    request = (
        f"POST /api/v1{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode() + body
    times: list[float] = []
    until = time.perf_counter() + seconds
    await asyncio.gather(*(send(port, request, until, times) for _ in range(connections)))
    return times


@click.command()
@click.option("--seconds", default=10.0, show_default=True)
@click.option("--connections", default=8, show_default=True)
def main(seconds: float, connections: int) -> None:
    """Measures and prints."""
    found: dict[str, object] = {}
    folder = Path(tempfile.mkdtemp(prefix="jobbko-bench-"))
    folder.chmod(0o755)  # root's server runs as another user, who has to get in
    with EmbeddedPostgres(folder / "server", settings=NOT_DURABLE) as postgres:
        server = Server(postgres.dsn())
        server.prepare()
        database = server.create_database()
        token = new_token()
        database.rows("select add_api_token('bench', %s, '{enqueue}')", digest(token))
        port = free_port()
        view = start_view(database, port, 0, folder)
        process = psutil.Process(view.pid)
        try:
            found["idle_mb"] = round(process.memory_info().rss / 1e6)
            batch = {"jobs": [JOB] * BATCH}
            for kind, path, document in (("single", "/jobs", JOB), ("batch", "/jobs/batch", batch)):
                before = sum(process.cpu_times()[:2])
                times = asyncio.run(measure(port, path, token, document, connections, seconds))
                cores = (sum(process.cpu_times()[:2]) - before) / seconds
                found[kind] = {
                    "requests_a_second": round(len(times) / seconds),
                    "p50_ms": round(1000 * statistics.median(times), 1),
                    "p95_ms": round(1000 * statistics.quantiles(times, n=20)[-1], 1),
                    "cores_of_the_view": round(cores, 2),
                    "mb": round(process.memory_info().rss / 1e6),
                }
            found["jobs"] = database.value("select count(*) from job_queue")
        finally:
            view.terminate()
            view.wait(20)
            database.close()
    shutil.rmtree(folder)
    click.echo(json.dumps(found))


if __name__ == "__main__":
    main()
