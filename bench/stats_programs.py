"""Whole programs over a log, measured from outside: the worker, GoAccess, DuckDB."""

import json
import logging
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import structlog

from bench.stats_ways import peak_mb
from demo.embedded_postgres import NOT_DURABLE, EmbeddedPostgres
from tests.databases import Database, Server
from tests.queue.stats_support import Stats
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcesses

DUCKDB = "duckdb==2.0.1"
_DUCKDB_SCRIPT = """
import json, pathlib, sys, time, duckdb
duckdb.sql("set enable_progress_bar = false")
before = time.process_time()
duckdb.read_json(sys.argv[1], format="newline_delimited", columns={
    "ts": "DOUBLE", "duration": "DOUBLE", "size": "BIGINT", "status": "INTEGER",
    "request": "STRUCT(method VARCHAR, uri VARCHAR, remote_ip VARCHAR, headers MAP(VARCHAR, VARCHAR[]))",
}).query("log", '''
select count(*) from (
  select request.uri, request.remote_ip, request.headers['User-Agent'][1] as agent,
         cast(to_timestamp(ts - duration) as date) as day, sum(size) as bytes
    from log where status in (200, 206) and request.method = 'GET' and size > 2
   group by all having bytes >= 500000)''').fetchall()
(peak,) = (row for row in pathlib.Path("/proc/self/status").read_text().splitlines() if row.startswith("VmHWM"))
print(json.dumps({"cpu": time.process_time() - before, "peak_mb": int(peak.split()[1]) / 1024}))
"""
_LONGEST_SECONDS = 7000

Figures = dict[str, float]


class UnavailableError(Exception):
    """A program that is not here, and what brings it."""


def worker(file: Path) -> Figures:
    """`python -m services.stats` with a PostgreSQL of its own, from claim to result."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))  # not of migrations
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        folder.chmod(0o755)  # root's server runs as another user, who has to get in
        with EmbeddedPostgres(folder / "pg", settings=NOT_DURABLE) as postgres:
            server = Server(postgres.dsn())
            server.prepare()
            return _run_worker(server.create_database(), folder, file)


def _run_worker(database: Database, folder: Path, file: Path) -> Figures:
    stats = Stats(database, folder)
    database.rows(f"update job_type set longest_run_seconds = {_LONGEST_SECONDS} where name = 'stats_parse'")
    (stats.logs / "access.log").symlink_to(file)
    environ = {"STATS_LOG_ROOT": str(stats.logs), "MEDIA_ROOT": str(stats.media), "STATS_RUN_SECONDS": "3600"}
    workers = WorkerProcesses(folder)
    process = workers.start_command(database, [sys.executable, "-m", "services.stats"], "worker_stats", environ)
    workers.wait_until_registered(database, process)
    before, server_before, started = _spent([psutil.Process(process.pid)]), _spent(_servers()), time.monotonic()
    job_id = database.enqueue("stats_parse", {})
    wait_until(lambda: database.job(job_id)["status"] in ("completed", "error"), _LONGEST_SECONDS, every=0.5)
    wall = time.monotonic() - started
    result = database.job(job_id)
    if result["status"] != "completed":
        raise RuntimeError(f"the run ended with {result['error_msg']}")
    figures = {
        "cpu": _spent([psutil.Process(process.pid)]) - before,
        "server_cpu": _spent(_servers()) - server_before,
        "wall": wall,
        "peak_mb": peak_mb(process.pid),
    }
    process.terminate()
    process.wait()
    return figures


def _servers() -> list[psutil.Process]:
    return [child for child in psutil.Process().children(recursive=True) if child.name() == "postgres"]


def _spent(processes: list[psutil.Process]) -> float:
    """CPU seconds of processes, with those of their children that have ended."""
    return sum(sum(one.cpu_times()[:4]) for one in processes)


def goaccess(file: Path) -> Figures:
    """Hits per file, by its format for Caddy."""
    if shutil.which("goaccess") is None:
        _install_goaccess()
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            ["goaccess", str(file), "--log-format=CADDY", "--no-global-config", "-o", f"{folder}/report.json"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        peak = 0.0
        while process.poll() is None:
            peak = max(peak, psutil.Process(process.pid).memory_info().rss / 1024**2)
            time.sleep(0.2)
    if process.returncode:
        raise RuntimeError(f"goaccess ended with {process.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"cpu": cpu, "wall": time.monotonic() - started, "peak_mb": peak}


def _install_goaccess() -> None:
    if os.getuid() == 0 and shutil.which("apt-get") is not None:
        subprocess.run(["apt-get", "install", "-qq", "-y", "goaccess"], capture_output=True)
    if shutil.which("goaccess") is None:
        raise UnavailableError("GoAccess is not installed. Next: apt-get install goaccess")


def duckdb(file: Path) -> Figures:
    """One query of sums per file, address, agent and day."""
    started = time.monotonic()
    done = subprocess.run(
        [str(_duckdb_python()), "-c", _DUCKDB_SCRIPT, str(file)], check=True, capture_output=True, text=True
    )
    figures: Figures = json.loads(done.stdout)
    return figures | {"wall": time.monotonic() - started}


def _duckdb_python() -> Path:
    """The Python of an environment that has DuckDB, made in the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jobbko" / "bench-stats"
    python = cache / "bin" / "python"
    if not (cache / "ready").exists():
        made = subprocess.run([sys.executable, "-m", "venv", "--clear", str(cache)], capture_output=True, text=True)
        if made.returncode == 0:
            command = [str(python), "-m", "pip", "install", "--quiet", DUCKDB]
            made = subprocess.run(command, capture_output=True, text=True)
        if made.returncode:
            raise UnavailableError(f"{DUCKDB} cannot be installed into {cache}: {made.stderr.strip()[-300:]}")
        (cache / "ready").touch()
    return python


PROGRAMS: dict[str, Callable[[Path], Figures]] = {"worker": worker, "goaccess": goaccess, "duckdb": duckdb}
