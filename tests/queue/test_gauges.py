"""The gauges of what the database holds: against real rows, real sessions, a server that is away."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from demo.embedded_postgres import EmbeddedPostgres
from services.admin import gauges
from services.admin.gauges import QueueGauges
from sidelinja_jobs.settings import DatabaseSettings
from tests.databases import ROOT, Database
from tests.sessions import refused
from tests.waiting import wait_until


@pytest.fixture(autouse=True)
def _always_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gauges, "KEPT_SECONDS", 0.0)


class Scrapes:
    """What Prometheus would read."""

    def __init__(self, dsn: str, media: Path | None = None) -> None:
        self._registry = CollectorRegistry()
        self.gauges = QueueGauges(DatabaseSettings(url=dsn, password=None, timeout_seconds=2), media)
        self._registry.register(self.gauges)

    def __call__(self, name: str, **labels: str) -> float | None:
        return self._registry.get_sample_value(name, labels)


@pytest.fixture
def scrape(database: Database) -> Iterator[Scrapes]:
    scrapes = Scrapes(database.dsn("metrics"))
    yield scrapes
    scrapes.gauges.close()


def test_jobs_are_counted_by_type_and_state(database: Database, scrape: Scrapes) -> None:
    database.enqueue(scheduled_for="2026-01-01 00:00+00")
    database.enqueue(status="retry", attempts=1)
    database.enqueue(scheduled_for="2100-01-01 00:00+00")
    database.enqueue(status="running", started_at="2026-01-01 00:00+00", lease_until="2026-01-01 00:01+00")
    database.enqueue(status="error", error_class="cancelled", completed_at="2026-01-01 00:00+00")
    database.enqueue(status="completed", completed_at="2026-01-01 00:00+00")
    database.enqueue("nobodys")

    assert [scrape("jobqueue_jobs", job_type="test_job", state=state) for state in gauges.STATES] == [2, 1, 1, 1]
    assert [scrape("jobqueue_jobs", job_type="nobodys", state=state) for state in gauges.STATES] == [1, 0, 0, 0]
    assert [scrape("jobqueue_jobs", job_type="other_job", state=state) for state in gauges.STATES] == [0, 0, 0, 0]
    assert scrape("jobqueue_expired_leases", job_type="test_job") == 1
    assert (scrape("jobqueue_oldest_due_age_seconds", job_type="test_job") or 0) > 86400
    assert (scrape("jobqueue_oldest_running_age_seconds", job_type="test_job") or 0) > 86400
    assert scrape("jobqueue_oldest_due_age_seconds", job_type="other_job") == 0


def test_workers_and_pauses_are_told(database: Database, scrape: Scrapes) -> None:
    worker = (
        "insert into worker (worker_id, job_type, version, host, pid, idle, seen_at)"
        " values (%s, 'test_job', '1', 'h', 1, %s, %s)"
    )
    conn = database.connect()
    for values in (("idle", True, "now"), ("busy", False, "now"), ("gone", True, "2026-01-01 00:00+00")):
        conn.execute(worker, values)
    conn.execute("update job_type set paused_at = now(), pause_origin = 'operator' where name = 'other_job'")
    conn.execute(
        "update job_type set paused_at = now(), paused_until = '2026-01-01', pause_origin = 'worker'"
        " where name = 'foreign_job'"
    )

    assert (scrape("jobqueue_workers", job_type="test_job"), scrape("jobqueue_idle_workers", job_type="test_job")) == (
        2,
        1,
    )
    assert scrape("jobqueue_workers", job_type="other_job") == 0
    assert scrape("jobqueue_paused", job_type="other_job") == 1
    assert scrape("jobqueue_paused", job_type="foreign_job") == 0, "a pause whose time is over"


def test_a_schedule_is_overdue_when_its_run_waits_and_told_when_it_has_none(
    database: Database, scrape: Scrapes
) -> None:
    schedule = "insert into job_schedule (name, job_type, every) values (%s, 'test_job', '1 hour')"
    for name in ("late", "lost", "early"):
        database.connect().execute(schedule, [name])
    database.enqueue(unique_key="schedule:late", scheduled_for="2026-01-01 00:00+00")
    database.enqueue(unique_key="schedule:early", scheduled_for="2100-01-01 00:00+00")

    lost = scrape("jobqueue_schedule_overdue_seconds", schedule="lost")

    assert (scrape("jobqueue_schedule_overdue_seconds", schedule="late") or 0) > 86400
    assert scrape("jobqueue_schedule_overdue_seconds", schedule="early") == 0
    assert math.isnan(lost or 0)


def test_a_held_snapshot_and_an_idle_transaction_show(database: Database, scrape: Scrapes) -> None:
    holder = database.connect(autocommit=False)
    holder.execute("set transaction isolation level repeatable read")
    holder.execute("select count(*) from job_queue")

    def held() -> Any:
        return (scrape("jobqueue_database_oldest_snapshot_age_seconds") or 0) > 0.3

    wait_until(held, 10, what="an old snapshot")
    assert (scrape("jobqueue_database_idle_in_transaction_seconds") or 0) > 0
    holder.rollback()


def test_the_database_itself_is_measured(database: Database, scrape: Scrapes) -> None:
    assert (scrape("jobqueue_database_size_bytes") or 0) > 1e6
    assert (scrape("jobqueue_database_connections") or 0) >= 1
    assert (scrape("jobqueue_database_max_connections") or 0) >= 10
    assert (scrape("jobqueue_table_size_bytes", table="job_queue") or 0) > 0
    assert scrape("jobqueue_table_dead_rows", table="stats.day") is not None
    assert scrape("jobqueue_database_schema_version") == database.value("select max(version) from schema_migrations")
    assert scrape("openrouter_day_spent_usd") == 0


@pytest.mark.parametrize(
    ("media", "disks"),
    [(None, ["volumes"]), ("/", ["volumes"]), ("/dev/shm", ["volumes", "media"]), ("/unmounted", ["volumes"])],  # noqa: S108
)
def test_each_disk_is_told_once(database: Database, media: str | None, disks: list[str]) -> None:
    """The media folder may lie on a disk of its own, which fills by itself."""
    scrape = Scrapes(database.dsn("metrics"), Path(media) if media else None)
    found = [
        disk
        for disk in ("volumes", "media")
        if (scrape("jobqueue_disk_size_bytes", disk=disk) or 0)
        >= (scrape("jobqueue_disk_free_bytes", disk=disk) or 0)
        > 0
    ]
    scrape.gauges.close()

    assert found == disks


def test_what_the_database_does_not_tell_is_left_out_and_counted(
    own_postgres: EmbeddedPostgres, own_database: Database
) -> None:
    scrape = Scrapes(own_database.dsn("metrics"))
    assert scrape("jobqueue_jobs", job_type="test_job", state="due") == 0

    own_postgres.stop()
    assert scrape("jobqueue_jobs", job_type="test_job", state="due") is None
    assert (scrape("jobqueue_collect_errors_total") or 0) >= 1
    assert (scrape("jobqueue_disk_free_bytes", disk="volumes") or 0) > 0

    own_postgres.start()
    assert scrape("jobqueue_jobs", job_type="test_job", state="due") == 0
    scrape.gauges.close()


def test_a_scrape_within_ten_seconds_asks_nobody(
    database: Database, scrape: Scrapes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gauges, "KEPT_SECONDS", 3600.0)
    assert scrape("jobqueue_jobs", job_type="test_job", state="due") == 0
    database.enqueue()

    assert scrape("jobqueue_jobs", job_type="test_job", state="due") == 0


def test_the_exporters_role_reads_numbers_and_no_rows(database: Database) -> None:
    for statement in ("select * from job_queue", "select * from llm_call", "select payload from job_schedule"):
        with refused("42501"):
            database.connect("metrics").execute(statement)
    with refused("42501"):
        database.connect("worker_test").execute("select * from queue_gauges()")


def test_the_scalers_query_counts_due_and_running_jobs_and_is_never_null(database: Database) -> None:
    """KEDA asks as jobbko_metrics, and takes one number."""
    documents = yaml.safe_load_all((ROOT / "docs" / "examples" / "kubernetes.yaml").read_text())
    (query,) = [
        trigger["metadata"]["query"]
        for document in documents if document["kind"] == "ScaledObject"
        for trigger in document["spec"]["triggers"]
    ]  # fmt: skip
    conn = database.connect("metrics")
    assert conn.execute(query).fetchall() == [(0,)]
    database.enqueue("whisper_transcribe", {"path": "a.mp3"})
    database.enqueue("whisper_transcribe", {"path": "b.mp3"}, status="running", started_at="2026-01-01 00:00+00")
    database.enqueue("whisper_transcribe", {"path": "c.mp3"}, scheduled_for="2100-01-01 00:00+00")
    assert conn.execute(query).fetchall() == [(2,)]


def test_counts_come_from_partial_indexes(database: Database) -> None:
    """Half a million completed jobs shall not be read at each scrape."""
    conn = database.connect()
    conn.execute(
        "insert into job_queue (job_type, payload, status, completed_at)"
        " select 'test_job', '{}', 'completed', now() from generate_series(1, 3000)"
    )
    conn.execute("analyze job_queue")
    before = conn.execute("select pg_stat_get_xact_tuples_returned('job_queue'::regclass)").fetchone()
    with conn.transaction():
        conn.execute("select * from queue_gauges()")
        read = conn.execute("select pg_stat_get_xact_tuples_returned('job_queue'::regclass)").fetchone()

    assert before is not None
    assert read is not None
    assert read[0] - before[0] < 3000
