"""`jobs retention` against a real database."""

import pytest

from sidelinja_jobs.cli.exits import ExitCode
from tests.command_line import Jobs
from tests.databases import Database


def rule(database: Database, job_type: str = "test_job") -> tuple[int, int]:
    row = database.row("select * from retention_rules() where job_type = %s", job_type)
    return row["keep_completed_days"], row["keep_error_days"]


def test_rules_are_shown_with_what_is_to_go(database: Database, jobs: Jobs) -> None:
    database.rows(
        "insert into job_queue (job_type, payload, status, completed_at)"
        " select 'stats_parse', '{}', 'completed', now() - interval '31 days' from generate_series(1, 3)"
    )

    shown = jobs("retention")

    line = next(line for line in shown.lines if line.startswith("stats_parse"))
    assert line.split() == ["stats_parse", "30", "d", "90", "d", "3", "job_type.toml"]
    assert "for ever" in next(line for line in shown.lines if line.startswith("whisper_transcribe"))
    assert shown.lines[-1] == "events 90 d, calls of deleted jobs 400 d, audit trail 730 d"
    found = {row["job_type"]: row for row in jobs("retention", "--json").document["job_types"]}
    assert found["stats_parse"]["completed_over"] == 3


def test_a_rule_is_set_in_parts_and_taken_back(database: Database, jobs: Jobs) -> None:
    database.add_job_type("test_job", keep_completed_days=7, keep_error_days=8)

    assert jobs("retention", "test_job", "--completed", "30").code == 0
    assert rule(database) == (30, 8)
    assert jobs("retention", "test_job", "--errors", "ever").code == 0
    assert rule(database) == (30, 0)
    assert jobs("retention", "test_job", "--completed", "default", "--errors", "default").code == 0
    assert rule(database) == (7, 8)
    actors = {row["actor"] for row in database.rows("select actor from audit_entry where action = 'retention.type'")}
    assert len(actors) == 1
    assert actors.pop().endswith("(jobs)")


def test_the_others_are_set_one_by_one(database: Database, jobs: Jobs) -> None:
    shown = jobs("retention", "--events", "30d", "--audit", "ever")

    assert shown.code == 0
    assert shown.lines[-1] == "events 30 d, calls of deleted jobs 400 d, audit trail for ever"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nothing", "--completed", "3"], "there is no job type"),
        (["test_job"], "add --completed or --errors"),
        (["--completed", "3"], "give TYPE"),
        (["test_job", "--completed", "0"], "is no number of days"),
        (["test_job", "--completed", "-1"], "is no number of days"),
        (["test_job", "--errors", "²"], "is no number of days"),
        (["--events", "default"], "is no number of days"),
        (["--calls", "1"], "budgets count two days"),
        (["--audit", "36501"], "is no number of days"),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(
    database: Database, jobs: Jobs, arguments: list[str], told: str
) -> None:
    ended = jobs("retention", *arguments)

    assert ended.code in (ExitCode.REFUSED, ExitCode.NOT_FOUND)
    assert told in ended.err
    assert database.value("select count(*) from audit_entry") == 0
