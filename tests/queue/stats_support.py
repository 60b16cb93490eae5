"""Runs of stats_parse inside the test's own process: the real handler, its own login, a real database."""

import gzip
import time
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest
import structlog

from services.stats import line_reader, parsing
from services.stats.handler import StatsWorker
from services.stats.payload import StatsPayload
from services.stats.settings import StatsSettings
from sidelinja_jobs import Job, queue
from sidelinja_jobs.context import Context
from sidelinja_jobs.database import Link, connect
from sidelinja_jobs.run import Run
from sidelinja_jobs.settings import DatabaseSettings
from tests.databases import Database
from tests.sessions import claim_one, worker_session
from tests.unit.stats_support import FILE_BYTES, NOON, SHOW, line

TODAY = NOON.date()
LONG_AGO = NOON - timedelta(days=10)
# What is left when listeners' keys are drawn anew for each test: the tables that two runs can be compared by.
COMPARED = {
    "download_day": "select * from stats.download_day order by 1, 2, 3, 4, 5, 6, 7, 8",
    "download_hour": "select * from stats.download_hour order by 1, 2, 3, 4",
    "referrer_day": "select * from stats.referrer_day order by 1, 2, 3, 4",
    "listener_day": "select * from stats.listener_day order by 1, 2",
    "excluded_day": "select * from stats.excluded_day order by 1, 2, 3",
    "feed_day": "select * from stats.feed_day order by 1, 2, 3, 4",
    "unknown_agent": "select * from stats.unknown_agent order by 1, 2, 3",
    "day": "select day, state, counted_requests, downloads, heavy_addresses, unknown_lengths from stats.day order by 1",
    "windows": "select day, show, episode, total_size, ranges, first_start, requests, bytes, app, referrer, counted"
    " from stats.listener_window order by day, show, episode, total_size, first_start, app, ranges::text, bytes",
}


class Stats:
    """A database with the source `SHOW`, a folder for its log, and runs of the handler."""

    def __init__(self, database: Database, folder: Path, **settings: Any) -> None:
        self.database, self.logs = database, folder / "logs"
        self.media = folder / "media"
        for made in (self.logs, self.media):
            made.mkdir(parents=True, exist_ok=True)
        database.add_job_type("stats_parse", "worker_stats", lease_seconds=60, longest_run_seconds=600)
        self.worker = self.new_worker(**settings)
        database.rows("insert into stats.source (name, show) values ('media', %s)", SHOW)
        self.know()

    def new_worker(self, **settings: Any) -> StatsWorker:
        roots = {"log_root": self.logs, "media_root": self.media}
        return StatsWorker(StatsSettings(**(roots | settings)))

    def know(
        self, name: str = "ep1.mp3", total: int = FILE_BYTES, duration: float | None = 180.0, id3: int = 66
    ) -> None:
        """What a person knows of a file."""
        self.database.rows(
            "insert into stats.media (show, episode, total_size, duration_seconds, id3_bytes)"
            " values (%s, %s, %s, %s, %s)",
            SHOW, name, total, duration, id3,
        )  # fmt: skip

    def write(self, *lines: bytes, name: str = "access.log") -> Path:
        """Appends lines to a log file; one whose name ends with .gz is written as a whole."""
        path = self.logs / name
        if name.endswith(".gz"):
            path.write_bytes(gzip.compress(b"".join(lines)))
        else:
            with path.open("ab") as file:
                file.writelines(lines)
        return path

    def run(self, **payload: Any) -> dict[str, Any]:
        """One job from claim to completion; raises what the handler raises."""
        result, _ = self.run_job(self.database.enqueue("stats_parse", payload))
        return result

    def run_partly(self, monkeypatch: pytest.MonkeyPatch) -> int:
        """A run whose time is over before the log is; how many lines it read."""
        with monkeypatch.context() as patched:
            patched.setattr(parsing, "BATCH_LINES", 5)
            patched.setattr(line_reader, "PIECE_BYTES", 700)
            self.worker = self.new_worker(run_seconds=0)
            partly = self.run()
        assert (partly["more"], partly["lines"] > 0) == (True, True)
        self.database.rows("delete from job_queue")
        self.worker = self.new_worker()
        return int(partly["lines"])

    def run_next(self) -> dict[str, Any]:
        """The next job that waits."""
        result, _ = self.run_job(None)
        return result

    def run_job(self, job_id: UUID | None) -> tuple[dict[str, Any], Context]:
        session = worker_session(self.database, "worker_stats", "stats_parse")
        try:
            claim = claim_one(session, "stats_parse")
            assert job_id in (None, claim.id)
            rules = queue.register(session, "w1", "stats_parse", "1", "host", 1, None)
            settings = DatabaseSettings(url=self.database.dsn("worker_stats"))
            link = Link(lambda: connect(settings, name="test"), lambda: None)
            run = Run(claim, "stats_parse", rules, time.monotonic())
            context = Context(run, link, lambda name: connect(settings, name=name), structlog.get_logger())
            job = job_of(claim)
            try:
                result = self.worker.handle(job, context)
                conn = link.open()
                with conn.transaction():
                    for write in context.writes:
                        write(conn)
                    queue.complete(conn, claim, msgspec.to_builtins(result))
            finally:
                link.close()
        finally:
            session.close()
        stored = self.database.job(claim.id)["result"]
        assert stored["lines"] == stored["counted_requests"] + sum(
            sum(stored[kind].values()) for kind in ("excluded", "bad")
        ) + stored["late"]  # fmt: skip
        return stored, context

    def tables(self, *without: str) -> dict[str, list[dict[str, Any]]]:
        return {name: self.database.rows(query) for name, query in COMPARED.items() if name not in without}

    def downloads(self, day: date = TODAY, name: str | None = None) -> int:
        found = self.database.value(
            "select coalesce(sum(downloads), 0) from stats.download_day"
            " where day = %s and (episode = %s or %s::text is null)", day, name, name,
        )  # fmt: skip
        return int(found)

    def files(self) -> dict[str, tuple[int, str]]:
        """Name -> position and state."""
        rows = self.database.rows("select name, byte_offset, state from stats.file")
        return {row["name"]: (row["byte_offset"], row["state"]) for row in rows}


def job_of(claim: Any) -> Job[StatsPayload]:
    return Job(
        id=claim.id, job_type="stats_parse", payload=msgspec.json.decode(claim.payload_text, type=StatsPayload),
        attempt=claim.attempts + 1, max_attempts=claim.max_attempts, priority=claim.priority,
        created_at=claim.created_at, scheduled_for=claim.scheduled_for, parent_id=claim.parent_id,
    )  # fmt: skip


def some(count: int, first: int = 0) -> list[bytes]:
    """Lines of as many listeners."""
    return [line(agent=f"App{number}/1", at=NOON + timedelta(seconds=number)) for number in range(first, first + count)]
