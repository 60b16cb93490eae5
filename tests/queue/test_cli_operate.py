"""`jobs retry`, `cancel`, `pause` and `resume` against a real database."""

from uuid import UUID

import pytest

from sidelinja_jobs.cli.exits import ExitCode
from tests.command_line import Jobs
from tests.databases import Database


def failed(database: Database, error_class: str = "OSError", job_type: str = "test_job", **columns: object) -> UUID:
    return database.enqueue(job_type, status="error", error_class=error_class, attempts=3, **columns)


def statuses(database: Database, *ids: UUID) -> list[str]:
    return [database.job(job_id)["status"] for job_id in ids]


def test_retry_runs_failed_jobs_anew_and_waiting_ones_now(database: Database, jobs: Jobs) -> None:
    error, waiting = failed(database), database.enqueue(scheduled_for="2199-01-01 00:00+00")

    ended = jobs("retry", str(error)[:8], str(waiting))

    assert ended.code == 0
    assert ended.lines == [
        f"{str(error)[:8]} runs anew, with all its attempts",
        f"{str(waiting)[:8]} waited; it is due now",
    ]
    assert statuses(database, error, waiting) == ["pending", "pending"]
    assert database.value("select count(*) from job_queue where scheduled_for <= now()") == 2


def test_each_job_is_changed_on_its_own(database: Database, jobs: Jobs) -> None:
    done, error = database.enqueue(status="completed"), failed(database)

    ended = jobs("retry", str(done), "00000000", str(error))

    assert ended.code == ExitCode.NOT_POSSIBLE
    assert f"job {done} is completed, expected error, retry or pending. Next: enqueue it again" in ended.err
    assert "there is no job 00000000" in ended.err
    assert statuses(database, done, error) == ["completed", "pending"]
    assert [row["outcome"] for row in jobs("retry", "--json", str(done), str(error)).document] == [
        None,
        "pulled_forward",
    ]


def test_retry_of_a_key_that_runs_again_already_is_not_possible(database: Database, jobs: Jobs) -> None:
    error = failed(database, unique_key="k")
    database.enqueue(unique_key="k")

    ended = jobs("retry", str(error))

    assert ended.code == ExitCode.NOT_POSSIBLE
    assert 'the unique key "k" waits or runs' in ended.err


def test_all_errors_are_those_of_the_filter_and_no_others(database: Database, jobs: Jobs) -> None:
    hit = [failed(database), failed(database)]
    missed = [failed(database, "ValueError"), failed(database, job_type="other_job"), failed(database, "cancelled")]

    ended = jobs("retry", "--all-errors", "--type", "test_job", "--class", "OSError", "--yes")

    assert (ended.code, len(ended.lines)) == (0, 2)
    assert statuses(database, *hit, *missed) == ["pending"] * 2 + ["error"] * 3
    assert len(jobs("retry", "--all-errors", "--yes", "--json").document) == 2
    assert statuses(database, missed[2]) == ["error"]
    jobs("retry", "--all-errors", "--class", "cancelled", "--yes")
    assert statuses(database, missed[2]) == ["pending"]


def test_all_errors_asks_with_the_number_and_only_yes_is_yes(
    database: Database, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = failed(database)
    assert "Next: add --yes" in jobs("retry", "--all-errors").err

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    answers = iter(["n", "y"])
    asked: list[str] = []

    def answer(prompt: str = "") -> str:
        asked.append(prompt)
        return next(answers)

    monkeypatch.setattr("click.termui.visible_prompt_func", answer)
    refused = jobs("retry", "--all-errors", "--type", "test_job")
    assert refused.code == ExitCode.INTERRUPTED
    assert statuses(database, error) == ["error"]
    assert "Run 1 job in error of type test_job anew?" in refused.err + "".join(asked)

    assert jobs("retry", "--all-errors").code == 0
    assert statuses(database, error) == ["pending"]


def test_nothing_to_retry_is_no_failure(jobs: Jobs) -> None:
    ended = jobs("retry", "--all-errors")

    assert (ended.code, ended.out) == (0, "")
    assert "0 jobs in error: nothing to do" in ended.err


def test_cancel_ends_waiting_jobs_and_asks_running_ones(database: Database, jobs: Jobs) -> None:
    waiting, running = database.enqueue(), database.enqueue(status="running")

    ended = jobs("cancel", str(waiting), str(running), "--reason", "ikke nødvendig")

    assert ended.lines == [f"{str(waiting)[:8]} cancelled", f"{str(running)[:8]} runs; its worker was asked to stop it"]
    assert database.job(waiting)["error_msg"] == "cancelled while waiting: ikke nødvendig"
    assert database.job(running)["cancel_requested_at"] is not None
    assert jobs("cancel", str(waiting)).code == ExitCode.NOT_POSSIBLE
    assert "running, cancelling" in jobs("list").out


def test_reason_that_cannot_be_stored_is_refused(database: Database, jobs: Jobs) -> None:
    job_id = database.enqueue()

    assert jobs("cancel", str(job_id), "--reason", "\udcff").code == ExitCode.REFUSED
    assert statuses(database, job_id) == ["pending"]


def test_pause_holds_until_a_time_a_duration_or_a_resume(database: Database, jobs: Jobs) -> None:
    assert jobs("pause", "test_job", "--reason", "kvote", "--for", "10m").out.startswith("test_job is paused until 20")
    assert (
        database.value(
            "select round(extract(epoch from paused_until - now()) / 60) from job_type where name = 'test_job'"
        )
        == 10
    )
    jobs("pause", "test_job", "--reason", "kvote", "--until", "2199-12-31T12:00Z")
    assert database.value("select paused_until::text from job_type where name = 'test_job'") == "2199-12-31 12:00:00+00"
    jobs("pause", "test_job", "--reason", "vedlikehold")
    row = database.row("select paused_until, pause_reason, pause_origin from job_type where name = 'test_job'")
    assert row == {"paused_until": None, "pause_reason": "vedlikehold", "pause_origin": "operator"}

    assert jobs("resume", "test_job", "--json").document == {"job_type": "test_job", "is_paused": False}
    again = jobs("resume", "test_job")
    assert (again.code, again.err) == (ExitCode.NOT_POSSIBLE, "jobs: test_job is not paused. Next: see jobs types\n")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["pause", "tset_job", "--reason", "x"], ExitCode.NOT_FOUND, 'no job type "tset_job"'),
        (["resume", "tset_job"], ExitCode.NOT_FOUND, 'no job type "tset_job"'),
        (["pause", "test_job", "--reason", "x", "--until", "2020-01-01"], ExitCode.REFUSED, "is over"),
        (["pause", "test_job", "--reason", "x", "--until", "infinity"], ExitCode.REFUSED, "is not a time"),
        (["pause", "test_job", "--reason", "x", "--until", ""], ExitCode.REFUSED, "'' is not a time"),
        (["pause", "test_job", "--reason", "x", "--for", ""], ExitCode.REFUSED, "'' is not a duration"),
        (["pause", "test_job", "--reason", "x", "--for", "100000d"], ExitCode.REFUSED, "200 years"),
        (["pause", "test_job", "--reason", "x", "--for", "1h", "--until", "18:00"], ExitCode.REFUSED, "both given"),
    ],
)
def test_pauses_that_make_no_sense_are_refused(
    database: Database, jobs: Jobs, arguments: list[str], code: ExitCode, words: str
) -> None:
    ended = jobs(*arguments)

    assert ended.code == code
    assert words in ended.err
    assert database.value("select count(*) from job_type where paused_at is not null") == 0


def test_reader_may_change_nothing(database: Database, jobs: Jobs) -> None:
    error = str(failed(database))

    for arguments in (
        ["retry", error],
        ["cancel", error],
        ["pause", "test_job", "--reason", "x"],
        ["resume", "test_job"],
    ):
        ended = jobs(*arguments, role="reader")
        assert ended.code == ExitCode.NOT_ALLOWED, arguments
        assert ended.err.endswith("Next: log in as jobbko_operator: see DATABASE_URL\n")


def test_timeline_names_the_person(database: Database, jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "kari")
    job_id = database.enqueue()

    jobs("cancel", str(job_id))

    assert "kari (jobs)" in jobs("show", str(job_id)).out


def test_migrate_is_the_services_own(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    monkeypatch.setattr("sidelinja_jobs.migrate.main", lambda: ran.append("migrate") or 69)

    assert jobs("migrate").code == 69
    assert jobs("migrate", "--help").code == 0
    assert ran == ["migrate"]
