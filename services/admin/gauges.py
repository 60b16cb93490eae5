"""Prometheus gauges of what the database holds. One process of the stack tells them, beside what each worker counts.

A scrape asks the database at most once in ten seconds. When it does not answer, the gauges are left out rather than
told again: a missing series can raise an alert, an old one deceives. docs/monitoring.md lists them all.
"""

import shutil
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import psycopg
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sidelinja_jobs.database import Link, connect
from sidelinja_jobs.errors import SettingsError
from sidelinja_jobs.log import get_logger
from sidelinja_jobs.queries import load_queries
from sidelinja_jobs.settings import DatabaseSettings

log = get_logger()
_SQL = load_queries(Path(__file__).with_name("gauges.sql"))
Row = dict[str, Any]

KEPT_SECONDS = 10.0
STATES = ("due", "scheduled", "running", "error")
# Column of queue_gauges -> metric and its meaning.
_OF_TYPES = {
    "oldest_due_seconds": ("jobqueue_oldest_due_age_seconds", "How long the job that may be claimed has been due"),
    "oldest_running_seconds": ("jobqueue_oldest_running_age_seconds", "How long the oldest present run has gone on"),
    "expired_leases": ("jobqueue_expired_leases", "Runs whose lease has passed and that no sweep has taken yet"),
    "is_paused": ("jobqueue_paused", "1 = nothing of this type is claimed"),
    "workers": ("jobqueue_workers", "Worker processes that showed themselves within 35 seconds"),
    "idle_workers": ("jobqueue_idle_workers", "Those of them that wait for a job"),
}
_OF_DATABASE = {
    "size_bytes": ("jobqueue_database_size_bytes", "Size of the database"),
    "connections": ("jobqueue_database_connections", "Connections of clients, of all databases of the server"),
    "max_connections": ("jobqueue_database_max_connections", "Connections that the server allows"),
    "oldest_snapshot_seconds": (
        "jobqueue_database_oldest_snapshot_age_seconds",
        "Age of the oldest open transaction that keeps dead rows from being removed",
    ),
    "idle_in_transaction_seconds": (
        "jobqueue_database_idle_in_transaction_seconds", "How long a session has sat in a transaction without a word",
    ),
    "schema_version": ("jobqueue_database_schema_version", "Newest file of db/init that was applied"),
}  # fmt: skip
_OF_TABLES = {
    "size_bytes": ("jobqueue_table_size_bytes", "Size of a table with its indexes"),
    "live_rows": ("jobqueue_table_live_rows", "Rows, as the server's statistics have them"),
    "dead_rows": ("jobqueue_table_dead_rows", "Rows that vacuum has not removed yet"),
}


class QueueGauges(Collector):
    """Asks the database when Prometheus scrapes; scrapes come in threads, one of which asks at a time.

    `media` is a folder that may lie on a disk of its own. Inside a container, / lies where named volumes lie.
    """

    def __init__(self, settings: DatabaseSettings, media: Path | None = None) -> None:
        self._link = Link(lambda: connect(settings, name="jobbko gauges"), lambda: None)
        self._folders = {"volumes": Path("/")} | ({"media": media} if media else {})
        self._lock = threading.Lock()
        self._kept: list[Metric] = []
        self._kept_until = 0.0
        self._errors = 0

    def describe(self) -> Iterable[Metric]:
        """Nothing: the registry shall not ask the database when this is registered."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All gauges, at most ten seconds old; without the database only the count of failures."""
        with self._lock:
            if time.monotonic() >= self._kept_until:
                self._kept = self._ask()
                self._kept_until = time.monotonic() + KEPT_SECONDS
            yield from self._kept
            errors = CounterMetricFamily("jobqueue_collect_errors_total", "Times that the database told nothing")
            errors.add_metric([], self._errors)
            yield errors
        yield from _disks(self._folders)

    def close(self) -> None:
        """Lets the connection go; the next scrape opens another."""
        with self._lock:
            self._link.close()

    def _ask(self) -> list[Metric]:
        started = time.monotonic()
        try:
            conn = self._link.open()
            found = {name: conn.execute(statement).fetchall() for name, statement in _SQL.items()}
        except (psycopg.Error, SettingsError) as error:
            self._errors += 1
            log.warning("the database did not tell the queue's state", error=str(error))
            return []
        return [*_metrics(found), _gauge(
            "jobqueue_collect_duration_seconds", "Time that the questions behind the gauges took",
            time.monotonic() - started,
        )]  # fmt: skip


def _metrics(found: dict[str, list[Row]]) -> Iterator[Metric]:
    types = found["queue_gauges"]
    jobs = GaugeMetricFamily(
        "jobqueue_jobs", "Jobs that are not completed; due: may be claimed now, scheduled: later",
        labels=["job_type", "state"],
    )  # fmt: skip
    for row in types:
        for state in STATES:
            jobs.add_metric([row["job_type"], state], row[state])
    yield jobs
    yield from _families(_OF_TYPES, types, "job_type", "job_type")
    yield from _families(_OF_TABLES, found["table_gauges"], "table", "table_name")
    overdue = GaugeMetricFamily(
        "jobqueue_schedule_overdue_seconds", "How long a schedule's run is due without an end; NaN = none is queued",
        labels=["schedule"],
    )  # fmt: skip
    for row in found["schedule_gauges"]:
        seconds = row["overdue_seconds"]
        overdue.add_metric([row["schedule"]], float("nan") if seconds is None else seconds)
    yield overdue
    (database,) = found["database_gauges"]
    for column, (name, text) in _OF_DATABASE.items():
        yield _gauge(name, text, database[column])
    (spending,) = found["spending_gauges"]
    yield _gauge(
        "openrouter_day_spent_usd", "Taken from today's budget (UTC) by all job types", spending["day_spent_usd"]
    )


def _disks(folders: dict[str, Path]) -> Iterator[Metric]:
    """Each disk once. Overlays hide which one a folder is on, so two of one size and filling are taken for one."""
    free = GaugeMetricFamily("jobqueue_disk_free_bytes", "Free space where volumes and media lie", labels=["disk"])
    size = GaugeMetricFamily("jobqueue_disk_size_bytes", "Size of that disk", labels=["disk"])
    told: list[tuple[int, int]] = []
    for name, folder in folders.items():
        try:
            usage = shutil.disk_usage(folder)
        except OSError:
            continue  # not mounted: whoever needs it says so
        if any(usage.total == total and abs(usage.free - left) < total / 100 for total, left in told):
            continue
        told.append((usage.total, usage.free))
        free.add_metric([name], usage.free)
        size.add_metric([name], usage.total)
    yield free
    yield size


def _families(columns: dict[str, tuple[str, str]], rows: list[Row], label: str, key: str) -> Iterator[Metric]:
    for column, (name, text) in columns.items():
        family = GaugeMetricFamily(name, text, labels=[label])
        for row in rows:
            family.add_metric([row[key]], float(row[column]))
        yield family


def _gauge(name: str, text: str, value: Any) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=float(value))
