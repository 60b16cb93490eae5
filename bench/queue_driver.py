"""This queue as a system of the peer benchmark: its public API, its real worker loop, all that a worker does.

Started by the harness as a process (its harness.py describes the commands). The worker runs in the main thread, where a
worker's signals arrive; a thread beside it tells the harness what has been handled. Its log goes to /dev/null.
"""

import contextlib
import json
import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import psycopg
from harness import Driver, main  # type: ignore[import-not-found]  # of the benchmark, which is no package
from psycopg.conninfo import make_conninfo

from sidelinja_jobs import Context, Job, JobType, WorkerSettings, enqueue, enqueue_many, run_worker
from sidelinja_jobs.logins import FOLDERS, PASSWORD_FILE
from sidelinja_jobs.migrate import migrate

ROOT = Path(__file__).resolve().parents[1]
PASSWORD = "bench"
BATCH = int(os.environ.get("BENCH_BATCH", "500"))
TUNED = JobType(name="b", role="worker_bench", lease_seconds=120, batch_size=BATCH)
# The harness starts an idle worker with "default": a type that asks for nothing takes one job at a time.
DEFAULT = JobType(name="b", role="worker_bench")
REPORT_SECONDS = 0.02


class Payload(msgspec.Struct, forbid_unknown_fields=True):
    """What the harness enqueues."""

    i: int


class Jobbko(Driver):  # type: ignore[misc]
    package = "psycopg"
    settings = f"batch_size {BATCH} in job_type.toml, the rest default; events, results, metrics and fence as always"
    unfinished = """SELECT (SELECT count(*) FROM job_queue WHERE job_type = 'b' AND status IN ('pending', 'retry')
        AND scheduled_for <= now()) + (SELECT count(*) FROM job_queue WHERE job_type = 'b' AND status = 'running')
        + (SELECT count(*) FROM job_queue WHERE job_type = 'b' AND status = 'error')"""
    fill = {  # noqa: RUF012
        "other": "INSERT INTO job_queue (job_type, payload, scheduled_for) "
        "SELECT 'a', '{\"i\": 0}', now() - interval '1 hour' + i * interval '1 ms' FROM generate_series(1, %(n)s) i",
        "completed": "INSERT INTO job_queue (job_type, payload, status, result, started_at, completed_at, "
        "scheduled_for) SELECT 'b', '{\"i\": 0}', 'completed', '{}', now(), now(), "
        "now() - interval '1 hour' + i * interval '1 ms' FROM generate_series(1, %(n)s) i",
        "future": "INSERT INTO job_queue (job_type, payload, priority, scheduled_for) SELECT 'b', '{\"i\": 0}', 10, "
        "now() + interval '1 day' + i * interval '1 ms' FROM generate_series(1, %(n)s) i",
    }

    async def setup(self) -> None:
        """All files of db/init, as `migrate` applies them in production, and the type of the benchmark."""
        with tempfile.TemporaryDirectory() as folder:
            for name in (*FOLDERS.values(), TUNED.role):
                (Path(folder) / name).mkdir(exist_ok=True)
                (Path(folder) / name / PASSWORD_FILE).write_text(PASSWORD)
            with contextlib.redirect_stdout(sys.stderr):  # the harness reads what a command prints
                migrate(self.dsn, ROOT / "db" / "init", [TUNED], Path(folder))

    async def open(self) -> None:
        self.conn = psycopg.connect(_dsn_of(self.dsn, "jobbko_producer"), autocommit=True)

    async def close(self) -> None:
        self.conn.close()

    async def enqueue(self, i: int) -> None:
        enqueue(self.conn, "b", {"i": i})

    async def enqueue_many(self, n: int) -> None:
        enqueue_many(self.conn, "b", [{"i": i} for i in range(n)])


class Ticker:
    """Counts handler starts, as the harness's own does."""

    def __init__(self, out: Any) -> None:
        self._out = out
        self._lock = threading.Lock()
        self.count, self.first, self.last = 0, 0.0, 0.0
        self.starts: list[tuple[int, float]] = []

    def handle(self, job: Job[Payload], _ctx: Context) -> dict[str, int]:
        self.last = time.monotonic()
        self.first = self.first or self.last
        self.count += 1
        if len(self.starts) < 1000:
            self.starts.append((job.payload.i, self.last))
        return {"i": job.payload.i}

    def report(self) -> None:
        said = 0
        while True:
            time.sleep(REPORT_SECONDS)
            if self.count != said:
                said = self.count
                self.say({"count": said, "first": self.first, "last": self.last})

    def stop_at_end_of_input(self) -> None:
        sys.stdin.read()
        self.say({"starts": self.starts})
        os.kill(os.getpid(), signal.SIGTERM)

    def say(self, message: object) -> None:
        with self._lock:
            print(json.dumps(message), file=self._out, flush=True)


def work(dsn: str, is_tuned: bool) -> int:
    """One worker until standard input closes."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the worker's log
    ticker = Ticker(out)
    print("ready", file=out, flush=True)
    sys.stdin.readline()
    for task in (ticker.report, ticker.stop_at_end_of_input):
        threading.Thread(target=task, daemon=True).start()
    job_type = TUNED if is_tuned else DEFAULT
    with tempfile.TemporaryDirectory() as folder:
        settings = WorkerSettings(
            url=_dsn_of(dsn, TUNED.role), metrics_port=0, health_file=Path(folder) / "healthy", log_format="json"
        )
        _choose_batch(dsn, job_type)
        return run_worker(ticker.handle, Payload, job_type, settings=settings)


def _choose_batch(dsn: str, job_type: JobType) -> None:
    """What `migrate` would write for this job_type.toml."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("update job_type set batch_size = %s where name = %s", (job_type.batch_size, job_type.name))


def _dsn_of(dsn: str, role: str) -> str:
    return make_conninfo(dsn, user=role, password=PASSWORD)


if __name__ == "__main__":
    if sys.argv[1] == "work":
        sys.exit(work(os.environ["BENCH_DSN"], sys.argv[2] == "tuned"))
    main(Jobbko)
