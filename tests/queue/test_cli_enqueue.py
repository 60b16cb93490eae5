"""`jobs enqueue` against a real database, as the operator."""

import io
import json
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from sidelinja_jobs.cli.exits import ExitCode
from tests.command_line import Jobs
from tests.databases import Database

SCHEMA = {
    "$ref": "#/$defs/P",
    "$defs": {
        "P": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "language": {"type": "string"}},
            "required": ["path"],
            "additionalProperties": False,
        }
    },
}


def count(database: Database) -> int:
    return int(database.value("select count(*) from job_queue"))


def test_enqueued_job_is_what_was_asked_for(database: Database, jobs: Jobs) -> None:
    ended = jobs("enqueue", "test_job", "path=æøå 日本.mp3", "n=9223372036854775807", "x=0.1", "--priority", "-32768",
                 "--max-attempts", "7", "--at", "2199-12-31T23:59Z", "--key", "k")  # fmt: skip

    job = database.row("select *, payload::text as text from job_queue")
    assert ended.out == f"{job['id']}\n"
    assert job["text"] == '{"n": 9223372036854775807, "x": 0.1, "path": "æøå 日本.mp3"}'
    assert (job["priority"], job["max_attempts"], job["unique_key"]) == (-32768, 7, "k")
    assert job["scheduled_for"].isoformat() == "2199-12-31T23:59:00+00:00"
    assert database.value("select actor from job_event").endswith("(jobs)")


def test_delay_is_counted_by_the_databases_clock(database: Database, jobs: Jobs) -> None:
    jobs("enqueue", "test_job", "--in", "1h30m")

    assert database.value("select extract(epoch from scheduled_for - created_at)::int from job_queue") == 5400


def test_key_that_waits_or_runs_is_told(database: Database, jobs: Jobs) -> None:
    first = jobs("enqueue", "test_job", "n=1", "--key", "k", "--json").document
    second = jobs("enqueue", "test_job", "n=2", "--key", "k", "--json")
    database.rows("update job_queue set status = 'running'")
    third = jobs("enqueue", "test_job", "n=3", "--key", "k", "--json")

    assert first["outcome"] == "created"
    assert second.document == {"id": first["id"], "outcome": "exists"}
    assert "nothing was added" in second.err
    assert third.document == {"id": first["id"], "outcome": "rerun"}
    assert database.value("select rerun_payload from job_queue") == {"n": 3}


def test_payload_comes_from_a_file_or_standard_input(
    database: Database, jobs: Jobs, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "clip.json"
    file.write_text('{"text": "fra fil"}', encoding="utf-8")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO('{"text": "fra røret"}'.encode())))

    jobs("enqueue", "test_job", "--payload-file", str(file))
    jobs("enqueue", "test_job", "--payload-file", "-")

    texts = database.rows("select payload ->> 'text' as text from job_queue order by created_at")
    assert [row["text"] for row in texts] == ["fra fil", "fra røret"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--payload", '{"a": 1'], "--payload is not JSON"),
        (["--payload", '{"a": NaN}'], "NaN is not a JSON number"),
        (["--payload", r'{"a": "\u0000"}'], "payload.a holds a NUL"),
        (["--payload", r'{"a": "\udc00"}'], "payload.a holds a lone surrogate"),
        (["a=\udcff"], "payload.a holds a lone surrogate"),
        (["--payload", "[1]"], "expected an object"),
        (["a=data:audio/mpeg;base64,SUQz"], "is a data: URL"),
        ([f"a={'QUJD' * 3000}"], "base64"),
        ([f"path={'x/' * 600}"], "path may have 1024"),
        ([f"a={'to ord ' * 200_000}"], "over the limit of 1048576 bytes"),
        (["--at", ""], "'' is not a time"),
        (["--in", ""], "'' is not a duration"),
        (["--at", "", "--in", "1h"], "--at and --in are both given"),
        (["--at", "infinity"], "'infinity' is not a time"),
        (["--at", "9999-12-31"], "outside the years 2000 to 2199"),
        (["--at", "2200-01-01T00:00Z"], "outside the years 2000 to 2199"),
        (["--in", "150000d"], "longer than 200 years"),
        (["--in", "72000d"], "outside the years 2000 to 2199"),
        (["--priority", "32768"], "not in the range"),
        (["--max-attempts", "0"], "not in the range"),
        (["--key", "\udcff"], "not UTF-8"),
        (["--key", "x" * 501], "--key has 501 characters, expected 1 to 500"),
        (["--key", ""], "--key has 0 characters"),
    ],
)
def test_what_cannot_be_queued_is_refused_in_one_line(
    database: Database, jobs: Jobs, arguments: list[str], words: str
) -> None:
    ended = jobs("enqueue", "test_job", *arguments)

    assert ended.code == ExitCode.REFUSED
    assert words in ended.err
    assert ended.err.count("\n") == 1
    assert ended.out == ""
    assert count(database) == 0


def test_fields_that_the_worker_does_not_know_are_refused_unless_one_insists(database: Database, jobs: Jobs) -> None:
    database.rows("update job_type set payload_schema = %s where name = 'test_job'", Jsonb(SCHEMA))

    ended = jobs("enqueue", "test_job", "languge=no")
    assert ended.code == ExitCode.REFUSED
    assert ended.err.startswith(
        "jobs: test_job would refuse this: payload.path is missing; "
        "payload.languge is not a known field (did you mean language?)"
    )
    assert count(database) == 0

    assert jobs("enqueue", "test_job", "languge=no", "--no-check").code == 0
    assert count(database) == 1


def test_text_fields_take_what_looks_like_a_number(database: Database, jobs: Jobs) -> None:
    database.rows("update job_type set payload_schema = %s where name = 'test_job'", Jsonb(SCHEMA))

    jobs("enqueue", "test_job", "path=123")

    assert database.value("select payload from job_queue") == {"path": "123"}


def test_doubts_stand_on_standard_error(database: Database, jobs: Jobs) -> None:
    assert "did you mean test_job?" in jobs("enqueue", "tset_job").err
    assert "no worker of test_job is alive" in jobs("enqueue", "test_job").err
    jobs("pause", "test_job", "--reason", "x")
    assert "test_job is paused" in jobs("enqueue", "test_job").err
    assert count(database) == 3


def test_login_that_may_not_enqueue_is_code_77(database: Database, jobs: Jobs) -> None:
    ended = jobs("enqueue", "test_job", role="reader")

    assert ended.code == ExitCode.NOT_ALLOWED
    assert "permission denied for function enqueue_job" in ended.err


def test_waiting_for_the_end_gives_its_exit_code(database: Database, jobs: Jobs) -> None:
    """The trigger stands for a worker that is done at once."""
    database.rows(
        "create function at_once() returns trigger language plpgsql as $$ begin"
        " new.status := (new.payload ->> 'end')::job_status; new.completed_at := now(); return new; end $$"
    )
    database.rows("create trigger at_once before insert on job_queue for each row execute function at_once()")

    done = jobs("enqueue", "test_job", "end=completed", "--wait")
    failed = jobs("enqueue", "test_job", "end=error", "--wait", "--json")

    assert (done.code, failed.code) == (0, ExitCode.JOB_ERROR)
    assert "completed" in done.out
    assert json.loads(failed.out.splitlines()[-1])["status"] == "error"
