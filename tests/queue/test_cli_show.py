"""`jobs show` and `jobs why` against a real database."""

from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from sidelinja_jobs.cli.exits import ExitCode
from tests.command_line import Jobs
from tests.databases import Database


def test_job_is_found_by_the_beginning_of_its_id(database: Database, jobs: Jobs) -> None:
    database.enqueue(id="abcdef00-0000-4000-8000-000000000001")
    database.enqueue(id="abcdef01-0000-4000-8000-000000000002")

    assert jobs("show", "ABCDEF01").out.startswith("test_job abcdef01-0000")
    assert jobs("show", "abcdef01-0000-4").code == 0
    twice = jobs("show", "abcdef")
    assert twice.code == ExitCode.REFUSED
    assert "fits several jobs: abcdef00-" in twice.err
    assert jobs("show", "abcde").code == ExitCode.REFUSED
    assert jobs("show", "abcdefgh").code == ExitCode.REFUSED
    assert jobs("show", "abcdef02").code == ExitCode.NOT_FOUND
    assert jobs("list", "--before", "abcdef02").code == ExitCode.NOT_FOUND


def test_show_has_everything(database: Database, jobs: Jobs) -> None:
    job_id = database.enqueue(payload={"path": "æ.mp3"})
    worker = database.connect("worker_test", row_factory=dict_row)
    worker.execute("select register_worker('w1', 'test_job', '1', 'h', 1)")
    claimed = worker.execute("select * from claim_jobs('test_job', 'w1')").fetchone()
    worker.execute(
        "select fail_job(%s, %s, 'OSError', E'borte\\nlinje to', 'Traceback: her')", [job_id, claimed["lease_token"]]
    )

    shown = jobs("show", str(job_id), columns=120).out
    assert '"path": "æ.mp3"' in shown
    assert "retry, attempt 1/3" in shown
    assert "It failed 1 time of at most 3 (OSError: borte)" in shown
    assert "  borte\n  linje to\n" in shown
    assert "pending -> running" in shown
    assert "running -> retry" in shown
    assert "Traceback: her" not in shown
    assert "Traceback: her" in jobs("show", "--full", str(job_id)).out

    document = jobs("show", "--json", str(job_id)).document
    assert document["runs"][0]["traceback"] == "Traceback: her"
    assert [event["new_status"] for event in document["events"]] == ["pending", "running", "retry"]
    assert document["reasons"][0]["reason"] == "waiting_after_error"


def test_long_texts_are_cut_and_counted(database: Database, jobs: Jobs) -> None:
    job_id = database.enqueue(status="completed", result=Jsonb({"segments": [{"n": n} for n in range(1000)]}))

    assert "more lines; --full shows all" in jobs("show", str(job_id)).out
    assert len(jobs("show", str(job_id)).lines) < 60
    assert len(jobs("show", "--full", str(job_id)).lines) > 3000


def test_of_many_runs_the_last_are_shown(database: Database, jobs: Jobs) -> None:
    job_id = database.enqueue()
    database.rows(
        "insert into job_attempt (job_id, attempt, worker_id, started_at, outcome, charged, error_class, error_msg)"
        " select %s, 1, 'w1', now(), 'postponed', false, 'in_line', 'try ' || n from generate_series(1, 100) as n",
        job_id,
    )

    shown = jobs("show", str(job_id), columns=120).out
    assert "… 70 earlier; --full shows all" in shown
    assert shown.count("in_line") == 30
    assert "try 100" in shown
    assert jobs("show", "--full", str(job_id)).out.count("in_line") == 100


def test_secrets_are_masked_unless_revealed(database: Database, jobs: Jobs) -> None:
    job_id = database.enqueue(payload={"api_key": "hemmelig1", "a": {"url": "https://ola:hemmelig2@h/x"}, "n": 1})

    for arguments in (["show"], ["show", "--json"], ["show", "--full"]):
        assert "hemmelig" not in jobs(*arguments, str(job_id)).out
        shown = jobs(*arguments, "--reveal", str(job_id)).out
        assert "hemmelig1" in shown
        assert "hemmelig2" in shown


def test_why_says_it_in_a_sentence(database: Database, jobs: Jobs) -> None:
    job_id = database.enqueue(scheduled_for="2199-01-01 00:00+00")

    said = jobs("why", str(job_id))

    assert said.lines[0] == f"test_job {str(job_id)[:8]}: pending"
    assert said.lines[1].startswith("- Its time has not come: it is scheduled in 1")
    assert said.lines[2] == "- No worker of test_job is alive. Start one; `jobs workers` shows who is there."
    assert [row["reason"] for row in jobs("why", "--json", str(job_id)).document["reasons"]] == [
        "scheduled",
        "no_worker",
    ]
