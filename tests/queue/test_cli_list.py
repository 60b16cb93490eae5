"""`jobs list`, `workers` and `types`, and rows that nobody would wish for, against a real database."""

import json
import time
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from psycopg.types.json import Jsonb

from sidelinja_jobs.cli.exits import ExitCode
from sidelinja_jobs.cli.rows import NO_FILTER
from sidelinja_jobs.cli.text import columns
from sidelinja_jobs.queries import load_queries
from tests.command_line import Jobs
from tests.databases import ROOT, Database

EVIL = "\x1b[2J\x1b]0;tittel\x07 ond\r\nfalsk linje \u202e\x9b31m"


@pytest.fixture
def ugly(database: Database) -> list[UUID]:
    """Jobs as a foreign program may have left them."""
    first, last = "2000-01-01 00:00+00", "2199-12-31 23:59:59+00"
    return [
        database.enqueue(EVIL, {"path": EVIL, EVIL: [EVIL]}, status="error", error_class=EVIL, error_msg=EVIL,
                         attempts=-1, max_attempts=-5, completed_at=first, started_at=last,
                         progress_note=EVIL, unique_key=EVIL, worker_id=EVIL),
        database.enqueue(status="error", error_msg="æøå 日本 " * 500_000, priority=-32768, attempts=32767,
                         max_attempts=32767),
        database.enqueue(priority=32767, scheduled_for=last, created_at=last),
        database.enqueue(status="running", lease_until=last, started_at=first),
        database.enqueue(status="running", lease_until=first, cancel_requested_at=last),
        database.enqueue(status="completed", result=Jsonb({"text": "x" * 1_000_000}), progress=0.5),
        database.enqueue("t" * 1000, {}, status="retry", progress_note="n" * 100_000, attempts=1),
    ]  # fmt: skip


@pytest.mark.parametrize("columns_of_screen", [None, 20, 40, 80, 200])
def test_ugly_rows_harm_no_listing(jobs: Jobs, ugly: list[UUID], columns_of_screen: int | None) -> None:
    ended = jobs("list", columns=columns_of_screen)

    assert ended.code == 0
    assert len(ended.lines) == 1 + len(ugly)
    assert not set(ended.out) & set("\x1b\x07\r\u202e\x9b")
    assert max(map(columns, ended.lines)) <= (columns_of_screen or 1500)


@pytest.mark.parametrize("arguments", [["list"], ["list", "--json"], ["types"], ["workers"], ["types", "--json"]])
def test_listings_are_quick_and_small_beside_megabytes(jobs: Jobs, ugly: list[UUID], arguments: list[str]) -> None:
    started = time.monotonic()
    ended = jobs(*arguments)

    assert ended.code == 0
    assert len(ended.out) < 20_000
    assert time.monotonic() - started < 5


def test_ugly_rows_can_be_shown(jobs: Jobs, ugly: list[UUID]) -> None:
    for job_id in ugly:
        for arguments in (["show"], ["show", "--json"], ["show", "--full"], ["why"], ["why", "--json"]):
            ended = jobs(*arguments, str(job_id), columns=80)

            assert ended.code == 0, (arguments, ended.err)
            assert not set(ended.out) & set("\x1b\x07\r\u202e\x9b")


def test_failed_job_is_listed_with_class_and_first_line(database: Database, jobs: Jobs) -> None:
    database.enqueue(status="error", attempts=2, error_class="OSError", error_msg="\nborte\nTraceback …")

    line = jobs("list").lines[1]

    assert line.endswith("OSError: borte")
    assert " 2/3 " in line


def test_numbers_and_times_of_json_are_exact(database: Database, jobs: Jobs) -> None:
    job_id = database.enqueue(created_at="2026-10-25 02:30:00.000001+01", scheduled_for="2199-12-31 23:59:59.999999+00")
    database.rows('update job_queue set payload = \'{"n": 9223372036854775807, "x": 0.1, "y": 1e400}\'')

    shown = jobs("show", str(job_id), "--json")

    assert shown.document["created_at"] == "2026-10-25T01:30:00.000001Z"
    assert shown.document["scheduled_for"] == "2199-12-31T23:59:59.999999Z"
    assert '"n": 9223372036854775807' in shown.out
    assert '"x": 0.1,' in shown.out
    assert f'"y": 1{"0" * 400}' in shown.out


def test_pages_follow_each_other_while_jobs_arrive(database: Database, jobs: Jobs) -> None:
    database.rows("insert into job_queue (job_type, payload) select 'test_job', '{}' from generate_series(1, 50)")
    wanted = {str(row["id"]) for row in database.rows("select id from job_queue")}
    seen: list[str] = []
    page: list[dict[str, Any]] = jobs("list", "--limit", "20", "--json").document
    while page:
        seen += [job["id"] for job in page]
        database.rows("insert into job_queue (job_type, payload) select 'test_job', '{}' from generate_series(1, 30)")
        page = jobs("list", "--limit", "20", "--json", "--before", seen[-1]).document

    assert len(seen) == 50
    assert set(seen) == wanted


def test_filters_narrow_the_list(database: Database, jobs: Jobs) -> None:
    old = database.enqueue(created_at="2020-01-01 00:00+00", status="completed")
    failed = database.enqueue(status="error", error_class="OSError", created_at="2026-01-01 00:00+00")
    cancelled = database.enqueue(status="error", error_class="cancelled", created_at="2026-01-02 00:00+00")
    retried = database.enqueue("other_job", status="retry", created_at="2026-01-03 00:00+00")
    waiting = database.enqueue()

    def listed(*arguments: str) -> list[UUID]:
        return [UUID(job["id"]) for job in jobs("list", "--json", *arguments).document]

    assert listed() == [waiting, retried, cancelled, failed, old]
    assert listed("--status", "error") == [cancelled, failed]
    assert listed("--status", "retry", "--status", "completed") == [retried, old]
    assert listed("--errors") == [retried, failed]
    assert listed("--type", "other_job") == [retried]
    assert listed("--since", "1h") == [waiting]
    assert listed("--since", "2026-01-02T00:00Z") == [waiting, retried, cancelled]
    assert listed("--before", str(retried), "--limit", "1") == [cancelled]
    assert listed("--since", f"{datetime.now() + timedelta(minutes=2):%H:%M}") == [waiting], "of yesterday"
    assert jobs("list", "--before", "").code == ExitCode.REFUSED


def test_empty_list_says_so_on_standard_error(jobs: Jobs) -> None:
    ended = jobs("list")

    assert (ended.code, ended.out, ended.err) == (0, "", "no such jobs\n")
    assert jobs("list", "--json").document == []


def test_ten_thousand_rows_are_listed_in_seconds(database: Database, jobs: Jobs) -> None:
    database.rows(
        "insert into job_queue (job_type, payload, status, error_msg)"
        " select 'test_job', '{}', 'error', 'noe gikk galt ' || n from generate_series(1, 10000) as n"
    )
    started = time.monotonic()

    assert len(jobs("list", "--limit", "10000", columns=100).lines) == 10_001
    assert time.monotonic() - started < 15
    assert len(jobs("list", "--limit", "10000", "--json").document) == 10_000


@pytest.mark.parametrize(
    ("filters", "index"),
    [
        ({}, "job_queue_created"),
        ({"statuses": ["running"]}, "job_queue_running"),
        ({"before": "one of them"}, "job_queue_created"),
        ({"since_seconds": 60.0}, "job_queue_created"),
        ({"ids": [UUID(int=n) for n in range(3)]}, "job_queue_pkey"),
    ],
)
def test_listing_of_a_large_table_reads_an_index(database: Database, filters: dict[str, Any], index: str) -> None:
    database.rows(
        "insert into job_queue (job_type, payload, status, created_at)"
        " select 'test_job', '{}', 'completed', now() - n * interval '1 s' from generate_series(1, 20000) as n"
    )
    database.rows("analyze job_queue")
    if "before" in filters:
        filters = {"before": database.value("select id from job_queue order by created_at limit 1 offset 9000")}
    operator = database.connect("operator")

    statements = load_queries(ROOT / "shared" / "sidelinja_jobs" / "cli" / "queries.sql")

    plan = operator.execute("explain " + statements["list_jobs"], {**NO_FILTER, "limit": 21, **filters}).fetchall()

    text = "\n".join(row[0] for row in plan)
    assert index in text
    assert "Seq Scan on job_queue" not in text


def test_workers_are_busy_idle_stuck_or_gone(database: Database, jobs: Jobs) -> None:
    connection = database.connect("worker_test")
    for name in ("w1", "w2", "w3", "w4"):
        connection.execute("select register_worker(%s, 'test_job', '1.0', 'h', 1)", [name])
    job_id = database.enqueue()
    connection.execute("select claim_jobs('test_job', 'w1')")
    database.enqueue(status="running", worker_id="w4", lease_until="2026-01-01 00:00+00")
    database.rows("update worker set seen_at = now() - interval '36 s' where worker_id = 'w3'")

    assert {row["worker_id"]: row["state"] for row in jobs("workers", "--json").document} == {
        "w1": "busy", "w2": "idle", "w3": "gone", "w4": "stuck"
    }  # fmt: skip
    assert str(job_id)[:8] in jobs("workers").out
    assert jobs("workers", "--type", "other_job").err == "no worker has registered\n"


def test_types_show_counts_and_pauses(database: Database, jobs: Jobs) -> None:
    database.enqueue()
    database.enqueue(scheduled_for="2199-01-01 00:00+00")
    database.enqueue(status="error", error_class="OSError")
    database.enqueue(status="error", error_class="cancelled")
    database.enqueue("foreign_type", status="running")
    database.rows("update job_type set paused_at = now(), pause_origin = 'worker', pause_reason = %s,"
                  " paused_until = '-infinity' where name = 'other_job'", EVIL)  # fmt: skip
    jobs("pause", "test_job", "--reason", "kvote", "--for", "1h")

    found = {row["name"]: row for row in jobs("types", "--json").document}
    assert {key: found["test_job"][key] for key in ("due", "later", "errors", "running", "workers", "is_paused")} == {
        "due": 1, "later": 1, "errors": 1, "running": 0, "workers": 0, "is_paused": True
    }  # fmt: skip
    assert (found["foreign_type"]["is_known"], found["foreign_type"]["running"]) == (False, 1)
    shown = jobs("types").out
    assert "paused by operator, resumes in 59m: kvote" in shown
    assert "unknown: no job_type row" in shown


def test_reader_may_look(database: Database, jobs: Jobs) -> None:
    job_id = str(database.enqueue())

    for arguments in (["list"], ["show", job_id], ["why", job_id], ["types"], ["workers"]):
        assert jobs(*arguments, role="reader").code == 0


def test_database_without_the_schema_says_run_migrate(database: Database, jobs: Jobs) -> None:
    database.rows("alter table job_queue rename to something_else")

    ended = jobs("list")

    assert ended.code == ExitCode.SETUP
    assert ended.err.endswith("Next: run jobs migrate\n")


def test_wrong_password_and_missing_database_are_told(
    database: Database, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_PASSWORD", "feil")
    refused = jobs("list")
    monkeypatch.delenv("DATABASE_PASSWORD")
    database.name += "_nowhere"
    missing = jobs("list")

    assert (refused.code, missing.code) == (ExitCode.NOT_ALLOWED, ExitCode.SETUP)
    assert "check DATABASE_PASSWORD" in refused.err
    assert "run jobs migrate" in missing.err


def test_completion_offers_types_and_ids(database: Database, jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    database.rows("insert into job_type (name, role) values (E'test_\\x1b[2J', 'worker_test')")
    job_id = database.enqueue()
    monkeypatch.setenv("_JOBS_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_CWORD", "2")

    monkeypatch.setenv("COMP_WORDS", "jobs enqueue te")
    assert jobs().lines == ["plain,test_job"]
    monkeypatch.setenv("COMP_WORDS", f"jobs show {str(job_id)[:6]}")
    assert jobs().lines == [f"plain,{job_id}"]


def test_completion_waits_no_longer_than_a_person_would(
    database: Database, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("_JOBS_COMPLETE", "bash_complete"), ("COMP_CWORD", "2"), ("COMP_WORDS", "jobs enqueue te")):
        monkeypatch.setenv(name, value)
    database.connect(autocommit=False).execute("lock table job_type")
    started = time.monotonic()

    assert (jobs().out.strip(), time.monotonic() - started < 10) == ("", True)


def test_json_of_ugly_rows_is_json(jobs: Jobs, ugly: list[UUID]) -> None:
    documents = jobs("list", "--json").document

    assert {document["id"] for document in documents} == {str(job_id) for job_id in ugly}
    assert json.loads(jobs("show", "--json", str(ugly[0])).out)["payload"]["path"] == EVIL
