"""explain_job: the reasons why a job is not running, one by one."""

import re
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from sidelinja_jobs.cli.reasons import REASONS
from tests.databases import Database

Explain = Callable[[UUID], dict[str, dict[str, Any]]]


@pytest.fixture
def explain(database: Database) -> Explain:
    """The reasons of a job in their order, asked as the operator."""
    operator = database.connect("operator")

    def ask(job_id: UUID) -> dict[str, dict[str, Any]]:
        return dict(operator.execute("select reason, detail from explain_job(%s)", [job_id]).fetchall())

    return ask


@pytest.fixture
def worker(database: Database) -> Callable[..., Any]:
    """Calls a worker's function under its own role."""
    connection = database.connect("worker_test")

    def call(function: str, *arguments: object) -> Any:
        marks = ", ".join(["%s"] * len(arguments))
        return connection.execute(f"select * from {function}({marks})", arguments).fetchall()

    return call


def register(worker: Callable[..., Any], name: str = "w1") -> None:
    worker("register_worker", name, "test_job", "1.0", "host", 1)


def claim(worker: Callable[..., Any], name: str = "w1") -> tuple[UUID, UUID]:
    """Claims one job; returns its id and token."""
    (row,) = worker("claim_jobs", "test_job", name, 1)
    return row[0], row[6]


def test_comment_of_the_function_lists_every_reason_that_the_command_line_knows(database: Database) -> None:
    comment = database.value("select obj_description('explain_job(uuid)'::regprocedure)")

    assert set(re.findall(r"^ (\w+)  ", comment, re.MULTILINE)) == REASONS


def test_every_reason_in_the_code_stands_in_the_closed_list(database: Database) -> None:
    sources = database.rows("select prosrc from pg_proc where proname like 'explain\\_%%'")

    quoted = set().union(*(re.findall(r"(?:select|then|else) '(\w+)'", row["prosrc"]) for row in sources))
    assert quoted == REASONS


def test_due_job_beside_an_idle_worker_is_ready(database: Database, explain: Explain, worker: Any) -> None:
    register(worker)
    job_id = database.enqueue()

    assert list(explain(job_id)) == ["ready"]


def test_job_of_a_type_that_nobody_knows(database: Database, explain: Explain) -> None:
    assert explain(database.enqueue("tset_job")) == {"unknown_type": {"job_type": "tset_job"}}


def test_job_without_a_living_worker(database: Database, explain: Explain, worker: Any) -> None:
    register(worker)
    database.rows("update worker set seen_at = now() - interval '36 seconds'")

    assert explain(database.enqueue()) == {"no_worker": {"job_type": "test_job", "role": "worker_test"}}


def test_job_of_another_time(database: Database, explain: Explain, worker: Any) -> None:
    register(worker)
    job_id = database.enqueue(scheduled_for="2199-12-31 23:59:59+00")

    assert explain(job_id) == {"scheduled": {"until": "2199-12-31T23:59:59+00:00"}}


def test_job_of_a_paused_type(database: Database, explain: Explain, worker: Any) -> None:
    register(worker)
    database.connect("operator").execute("select pause_job_type('test_job', null, 'vedlikehold')")
    detail = explain(database.enqueue())["type_paused"]

    assert (detail["origin"], detail["why"], detail.get("until")) == ("operator", "vedlikehold", None)


def test_pause_that_is_over_is_no_reason(database: Database, explain: Explain, worker: Any) -> None:
    register(worker)
    database.rows(
        "update job_type set paused_at = now() - interval '2 h', paused_until = now() - interval '1 h',"
        " pause_origin = 'worker' where name = 'test_job'"
    )

    assert list(explain(database.enqueue())) == ["ready"]


def test_job_behind_others_of_its_type(database: Database, explain: Explain, worker: Any) -> None:
    register(worker)
    database.enqueue(priority=32767)
    database.enqueue(scheduled_for="2020-01-01 00:00+00")
    job_id = database.enqueue()
    database.enqueue(priority=-32768)
    database.enqueue(priority=5, scheduled_for="2199-01-01 00:00+00")
    database.enqueue("other_job", priority=9)

    assert explain(job_id) == {"jobs_ahead": {"count": 2, "or_more": False}}


def test_job_beside_busy_workers_only(database: Database, explain: Explain, worker: Any) -> None:
    for name in ("w1", "w2"):
        register(worker, name)
        database.enqueue()
        claim(worker, name)
    job_id = database.enqueue()

    assert explain(job_id) == {"workers_busy": {"workers": 2}}


def test_job_after_a_failure(database: Database, explain: Explain, worker: Any) -> None:
    register(worker)
    job_id = database.enqueue()
    worker("fail_job", *claim(worker), "OSError", "borte " * 500)
    detail = explain(job_id)["waiting_after_error"]

    assert (detail["attempts"], detail["max_attempts"], detail["error_class"]) == (1, 3, "OSError")
    assert len(detail["error_msg"]) == 500


def test_job_that_was_put_off(database: Database, explain: Explain, worker: Any) -> None:
    register(worker)
    job_id = database.enqueue()
    worker("postpone_job", *claim(worker), "2199-01-01 00:00+00", "kvoten er brukt opp")
    detail = explain(job_id)["postponed"]

    assert (detail["postponements"], detail["why"]) == (1, "kvoten er brukt opp")


def test_all_reasons_that_hold_are_told_the_nearest_first(database: Database, explain: Explain) -> None:
    database.connect("operator").execute("select pause_job_type('test_job', null, 'x')")
    job_id = database.enqueue(scheduled_for="2199-01-01 00:00+00")

    assert list(explain(job_id)) == ["scheduled", "type_paused", "no_worker"]


def test_running_job(database: Database, explain: Explain, worker: Any) -> None:
    register(worker)
    job_id = database.enqueue()
    claim(worker)
    reasons = explain(job_id)

    assert list(reasons) == ["running"]
    assert (reasons["running"]["worker_id"], reasons["running"]["attempt"]) == ("w1", 1)


def test_running_job_that_was_asked_to_stop(database: Database, explain: Explain, worker: Any) -> None:
    register(worker)
    job_id = database.enqueue()
    claim(worker)
    database.connect("operator").execute("select cancel_job(%s)", [job_id])

    assert list(explain(job_id)) == ["running", "cancel_requested"]


@pytest.mark.parametrize(("seen", "alive"), [("0 seconds", True), ("10 seconds", False)])
def test_run_whose_lease_is_over(database: Database, explain: Explain, worker: Any, seen: str, alive: bool) -> None:
    register(worker)
    job_id = database.enqueue()
    claim(worker)
    database.rows("update job_queue set lease_until = now() - interval '5 seconds'")
    database.rows("update worker set seen_at = now() - %s::interval", seen)
    reasons = explain(job_id)

    assert list(reasons) == ["running", "lease_expired"]
    assert reasons["lease_expired"]["worker_alive"] is alive


def test_worker_that_let_its_lease_go_is_not_waited_for(database: Database, explain: Explain, worker: Any) -> None:
    """It was killed a moment ago, and its row still says that it lives."""
    register(worker)
    database.enqueue()
    claim(worker)
    database.rows("update job_queue set lease_until = now() - interval '1 second'")

    assert list(explain(database.enqueue())) == ["no_worker"]


def test_run_whose_worker_is_gone(database: Database, explain: Explain, worker: Any) -> None:
    register(worker)
    job_id = database.enqueue()
    claim(worker)
    worker("unregister_worker", "w1")

    assert list(explain(job_id)) == ["running", "worker_gone"]


def test_run_of_a_program_that_keeps_no_lease(database: Database, explain: Explain) -> None:
    job_id = database.enqueue()
    database.connect("plain").execute("update job_queue set status = 'running', started_at = now()")

    assert explain(job_id)["no_lease"] == {"longest_run_seconds": 60}


def test_completed_job(database: Database, explain: Explain, worker: Any) -> None:
    register(worker)
    job_id = database.enqueue()
    worker("complete_job", *claim(worker), "{}")

    assert list(explain(job_id)) == ["completed"]


def test_failed_job(database: Database, explain: Explain, worker: Any) -> None:
    register(worker)
    job_id = database.enqueue()
    worker("fail_job", *claim(worker), "PermanentError", "nei", None, True)
    detail = explain(job_id)["failed"]

    assert (detail["attempts"], detail["error_class"], detail["by"]) == (1, "PermanentError", "worker_test")


def test_cancelled_job_names_who_did_it(database: Database, explain: Explain) -> None:
    job_id = database.enqueue()
    operator = database.connect("operator")
    operator.execute("select set_config('jobbko.actor', 'kari', false)")
    operator.execute("select cancel_job(%s, 'ikke nødvendig')", [job_id])
    detail = explain(job_id)["cancelled"]

    assert (detail["by"], detail["error_msg"]) == ("kari", "cancelled while waiting: ikke nødvendig")


def test_unknown_job_is_told(explain: Explain) -> None:
    with pytest.raises(psycopg.Error) as refused:
        explain(uuid4())

    assert refused.value.sqlstate == "JQ004"


@pytest.mark.parametrize("role", ["producer", "plain", "metrics", "worker_test"])
def test_only_operator_and_reader_may_ask(database: Database, role: str) -> None:
    job_id = database.enqueue()
    assert database.connect("reader").execute("select reason from explain_job(%s)", [job_id]).fetchall()

    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        database.connect(role).execute("select reason from explain_job(%s)", [job_id])


def test_count_of_jobs_ahead_stops_at_ten_thousand(database: Database, explain: Explain) -> None:
    database.rows("insert into job_queue (job_type, payload) select 'test_job', '{}' from generate_series(1, 10050)")
    job_id = database.enqueue(priority=-1)

    assert explain(job_id)["jobs_ahead"] == {"count": 10_000, "or_more": True}
