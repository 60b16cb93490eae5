"""What crashes, races and strange answers did to money and attempts, and must not do again."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from openrouter_client import calls
from sidelinja_jobs.errors import (
    ComeBackLaterError,
    HandlerError,
    JobStopped,
    PauseJobTypeError,
    PermanentError,
    StopReason,
)
from tests.databases import Database
from tests.openrouter_standin import Endpoint, Model, StandIn, faults
from tests.openrouter_standin.wire import json_reply
from tests.services.asking_support import GOOD, Asking
from tests.services.openrouter_service import OpenrouterService
from tests.worker_processes import WorkerProcesses

CHEAP = Endpoint("Cheap", "0.0000001", "0.0000001", collects=True)
DEAR = Endpoint("Dear", "0.0000029", "0.0000145")
TOO_DEAR = Endpoint("Too dear", "0.00003", "0.00015")
AWAY = [json_reply(503, {"error": {"code": 503, "message": "away"}})] * 4
FEW = ("max_tokens", "temperature", "seed", "response_format", "structured_outputs")


def test_what_is_reserved_covers_the_dearest_provider_that_may_answer(database: Database) -> None:
    """The list shows one price of a model; another of its providers may be the one that is asked."""
    with StandIn(models=(Model("a/b", (CHEAP, DEAR, TOO_DEAR)),)) as standin:
        asking = Asking(database, standin, model="a/b")
        asking.ask()

        (call,) = asking.calls()
        (billed,) = standin.billing
        assert billed.cost == call["cost_usd"] <= call["reserved_usd"]
        room = 1250  # tokens of the answer, thoughts included
        assert room * Decimal("0.0000145") < call["reserved_usd"] < room * Decimal("0.00002"), "not the one too dear"
        asking.close()


def test_an_answer_is_used_again_whatever_the_catalogue_says_now(database: Database) -> None:
    """The catalogue decides which parameters are sent. It may be there in one run, and away in the next."""
    with StandIn(models=(Model("a/b", (Endpoint(parameters=FEW),)),)) as standin:
        asking = Asking(database, standin, model="a/b")
        asking.ask()
        asking.next_run()
        standin.script_path("GET", "/models", *AWAY)
        asking.with_settings()

        assert asking.ask().is_reused
        assert standin.billed_count == 1
        asking.close()


def test_a_job_does_not_end_for_a_catalogue_that_was_away(database: Database) -> None:
    """Then parameters are sent that no provider may take, and the server finds nobody who fits."""
    with StandIn(models=(Model("a/b", (Endpoint(parameters=FEW),)),)) as standin:
        asking = Asking(database, standin, model="a/b")
        standin.script_path("GET", "/models", *AWAY)
        with pytest.raises(HandlerError, match="catalogue") as caught:
            asking.ask()
        assert not isinstance(caught.value, PermanentError)
        assert caught.value.error_class == "upstream"
        asking.close()


def test_a_day_that_is_spent_ends_by_the_databases_clock(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker whose clock is ahead of it would rest the type for a whole further day."""

    class Ahead(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(tz) + timedelta(hours=24)

    asking.with_settings(day_budget_usd=Decimal("0.0035"))
    asking.ask()
    asking.database.rows("update llm_call set cost_usd = 0.003")
    monkeypatch.setattr(calls, "datetime", Ahead)

    with pytest.raises(PauseJobTypeError) as caught:
        asking.ask(asking.question("Et spørsmål til"))

    midnight = asking.database.value("select (clock_timestamp() at time zone 'UTC')::date + 1")
    assert caught.value.until == datetime(midnight.year, midnight.month, midnight.day, tzinfo=UTC)


def test_waits_grow_while_a_server_keeps_asking_for_short_ones(asking: Asking, standin: StandIn) -> None:
    """A job may come back twenty times: at a second each, a minute would end it, though others are answered."""
    waited = []
    for count in range(20):
        asking.database.rows("update job_queue set postponements = %s where id = %s", count, asking.job_id)
        standin.script(faults.rate_limited(retry_after="1"))
        before = datetime.now(UTC)
        with pytest.raises(ComeBackLaterError) as caught:
            asking.ask()
        waited.append((caught.value.until - before).total_seconds())
        asking.ask(asking.question(f"Og hva handler nummer {count} om?"))
    assert waited[0] < 8, "the first wait is the server's"
    assert sum(waited) > 6 * 3600
    assert max(waited) < 3 * 3600


def test_an_answer_that_is_nested_too_deeply_is_asked_for_once_more(asking: Asking, standin: StandIn) -> None:
    standin.script(faults.content('{"title": ' + "[" * 70 + "]" * 70 + ', "words": []}'))

    assert asking.ask().data == GOOD


def test_an_estimate_is_made_with_the_price_of_the_model_that_answered(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "GENERATION_WAITS_SECONDS", (0.0,))
    models = (Model("a/cheap", (CHEAP,)), Model("a/dear", (DEAR,)))
    with StandIn(models=models, generation_lag_seconds=60) as standin:
        asking = Asking(database, standin, model="a/cheap", fallback_models="a/dear")
        standin.script(faults.usage("none", None))  # the first model collects prompts, so the second one answers
        answer = asking.ask()

        assert answer.cost_source == "estimate"
        assert answer.cost_usd >= standin.billing[0].cost
        asking.close()


def test_a_worker_that_is_to_end_begins_no_call_and_uses_what_was_paid_for(asking: Asking, standin: StandIn) -> None:
    asking.ask()
    run = asking.run = asking._run()
    run.is_hurried = True

    assert asking.ask().is_reused
    with pytest.raises(JobStopped) as caught:
        asking.ask(asking.question("Et spørsmål til"))

    assert caught.value.reason is StopReason.SHUTDOWN
    assert standin.billed_count == 1
    assert asking.states() == [("received", "provider")]


def test_an_answer_that_comes_slowly_is_no_standstill(asking: Asking, standin: StandIn) -> None:
    """A small machine writes for an hour; the stall limit of the job type must not end it meanwhile."""
    run = asking.run = asking._run()
    standin.script(faults.dripping(0.1))
    reports = 0
    report = run.report

    def counted(fraction: float | None, note: str | None) -> None:
        nonlocal reports
        reports += 1
        report(fraction, note)

    run.report = counted  # type: ignore[method-assign]
    asking.ask()

    assert reports > 3, "each piece of the answer is a sign of life"


def test_a_long_transcript_is_not_asked_in_small_parts_because_the_catalogue_is_away(
    database: Database, worker_process: WorkerProcesses, standin: StandIn
) -> None:
    """Its context would be guessed: many calls for one, and what an earlier run has paid for would not be found."""
    service = OpenrouterService(database, worker_process, standin)
    standin.script_path("GET", "/models", *AWAY)
    service.start()
    sentence = "Vi har snakket med folk som bor langs kysten, og de forteller at båten sjelden kommer når den skal. "
    job_id = database.enqueue("openrouter_analyze", {"text": sentence * 1200})

    seen = service.wait_until_settled(job_id)[job_id]

    assert (seen.job["status"], seen.job["error_class"], seen.chats) == ("retry", "upstream", [])
    assert "catalogue" in seen.job["error_msg"]
