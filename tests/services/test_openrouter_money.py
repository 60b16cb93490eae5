"""Budgets, prices and costs of asking."""

from decimal import Decimal
from typing import Any

import pytest

from openrouter_client import outage
from openrouter_client.metrics import ModelMetrics
from sidelinja_jobs.errors import HandlerError, PauseJobTypeError, PermanentError
from tests.databases import Database
from tests.openrouter_standin import Endpoint, Model, StandIn, faults
from tests.services.asking_support import Asking, own_registry


def test_the_jobs_budget_ends_the_job_with_the_numbers(asking: Asking, standin: StandIn) -> None:
    with pytest.raises(PermanentError, match=r"job's budget of 0\.0001 USD") as caught:
        asking.ask(max_cost_usd=Decimal("0.0001"))

    assert caught.value.error_class == "budget_exceeded"
    assert standin.chats == []


def test_a_payload_cannot_raise_the_budget_of_the_settings(asking: Asking) -> None:
    asking.with_settings(job_budget_usd=Decimal("0.0001"))

    with pytest.raises(PermanentError, match=r"job's budget of 0\.0001 USD"):
        asking.ask(max_cost_usd=Decimal(50))


def test_a_spent_day_rests_the_type_until_midnight(asking: Asking, standin: StandIn) -> None:
    asking.with_settings(day_budget_usd=Decimal("0.0035"))
    asking.ask()
    asking.database.rows("update llm_call set cost_usd = 0.003")

    with pytest.raises(PauseJobTypeError, match="OPENROUTER_DAY_BUDGET_USD") as caught:
        asking.ask(asking.question("Et spørsmål til"))

    assert (caught.value.origin, caught.value.until.hour, caught.value.until.minute) == ("budget", 0, 0)
    assert len(standin.chats) == 1


def test_the_dearest_of_the_models_is_what_a_call_can_cost(database: Database) -> None:
    models = [
        Model(f"a/{name}", (Endpoint(name, price, price),)) for name, price in (("cheap", "1e-7"), ("dear", "2e-6"))
    ]
    with StandIn(models=models) as standin:
        asking = Asking(database, standin, model="a/cheap", fallback_models="a/dear")
        asking.ask()

        (call,) = asking.calls()
        assert (call["model_used"], standin.billing[0].model) == ("a/cheap", "a/cheap")
        assert call["reserved_usd"] > 1250 * Decimal("2e-6"), "for the room of the answer alone, thoughts included"
        asking.close()


@pytest.mark.parametrize(
    ("fault", "source"),
    [(faults.usage("none", None), "generation"), (faults.usage("zeros", dict.fromkeys(
        ("prompt_tokens", "completion_tokens", "total_tokens", "cost"), 0)), "generation")],
)  # fmt: skip
def test_a_cost_that_the_answer_does_not_tell_is_asked_for(
    asking: Asking, standin: StandIn, fault: Any, source: str
) -> None:
    standin.script(fault)

    answer = asking.ask()

    assert (answer.cost_source, answer.cost_usd) == (source, standin.billing[0].cost)
    assert asking.states() == [("received", source)]


def test_a_cost_that_nobody_tells_is_estimated_and_said_to_be(database: Database) -> None:
    with StandIn(generation_lag_seconds=60) as standin:
        asking = Asking(database, standin)
        standin.script(faults.usage("none", None))

        answer = asking.ask()

        assert answer.cost_source == "estimate"
        assert answer.cost_usd > 0
        assert "the cost is an estimate" in answer.warnings
        asking.close()


def test_a_key_of_ones_own_at_the_provider_pays_both(asking: Asking, standin: StandIn) -> None:
    standin.script(faults.byok(0.02, 0.001))

    assert asking.ask().cost_usd == Decimal("0.021")


def test_another_model_than_the_one_asked_for_is_told(asking: Asking, standin: StandIn) -> None:
    standin.script(faults.answered_by("openai/gpt-small"))

    answer = asking.ask()

    assert answer.warnings == ("openai/gpt-small answered, google/gemini-2.5-flash was asked",)
    assert asking.calls()[0]["model_used"] == "openai/gpt-small"


def test_the_answers_of_a_run_add_up_to_what_the_job_cost(asking: Asking, standin: StandIn) -> None:
    """With second tries, calls that failed, what an earlier run paid, and what was asked in vain."""
    standin.script(faults.cut_off(), faults.content("nei"))
    asking.ask()
    standin.script(faults.refuses())
    with pytest.raises(PermanentError):
        asking.ask(asking.question("Dette vil den ikke svare på"))
    asking.next_run()

    answers = [asking.ask(), asking.ask(asking.question("En til")), asking.ask(asking.question("To til"))]

    assert answers[0].is_reused
    assert sum(answer.cost_usd for answer in answers) == standin.billed_usd
    assert [answer.warnings for answer in answers] == [()] * 3


def test_a_call_of_unknown_cost_is_told(asking: Asking, standin: StandIn) -> None:
    standin.script(faults.closes_unanswered())
    with pytest.raises(HandlerError):
        asking.ask()

    answer = asking.ask()

    assert any("1 calls without an answer may have cost up to 0.0" in warning for warning in answer.warnings)


def test_questions_without_an_answer_are_counted_until_there_is_one(
    asking: Asking, standin: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = own_registry(monkeypatch)
    asking.with_metrics(ModelMetrics("google/gemini-2.5-flash", Decimal("5")))
    seen = []

    for fault in (faults.overloaded(), faults.silent(), faults.rate_limited(retry_after="9"), faults.refused(502)):
        standin.script(fault)
        with pytest.raises(HandlerError):
            asking.ask()
        seen.append(registry.get_sample_value("openrouter_unanswered_in_a_row"))
    with monkeypatch.context() as later:
        later.setattr(outage, "LATELY_SECONDS", 0.0)
        assert registry.get_sample_value("openrouter_unanswered_in_a_row") == 0  # others may have been answered since
    asking.ask()

    assert seen == [1, 2, 3, 4]
    assert registry.get_sample_value("openrouter_unanswered_in_a_row") == 0


def test_calls_tokens_and_money_are_counted(asking: Asking, standin: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = own_registry(monkeypatch)
    asking.model.metrics = ModelMetrics("google/gemini-2.5-flash", Decimal("5"))

    def count(name: str, **labels: str) -> float:
        return registry.get_sample_value(name, {"model": "google/gemini-2.5-flash", **labels}) or 0.0

    standin.script(faults.content("nei"))
    asking.ask()
    asking.next_run()
    asking.ask()
    standin.script(faults.rate_limited(retry_after="9"))
    with pytest.raises(HandlerError):
        asking.ask(asking.question("En annen"))

    outcomes = {
        name: count("openrouter_requests_total", outcome=name) for name in ("ok", "reused", "invalid", "come_back")
    }
    assert outcomes == {"ok": 2, "reused": 2, "invalid": 2, "come_back": 1}  # an answer of no use is used again, too
    assert count("openrouter_cost_usd_total") == pytest.approx(float(standin.billed_usd))
    assert count("openrouter_tokens_total", kind="prompt") == sum(one.prompt_tokens for one in standin.billing)
    assert count("openrouter_tokens_total", kind="completion") == sum(one.completion_tokens for one in standin.billing)
    assert count("openrouter_request_seconds_count") == 3
    assert registry.get_sample_value("openrouter_day_budget_usd") == 5


@pytest.mark.parametrize(("cache_seconds", "duplicates"), [(3600, 0), (0, 1)])
def test_what_a_lost_call_cost_is_counted_once_it_is_known(
    asking: Asking, standin: StandIn, monkeypatch: pytest.MonkeyPatch, cache_seconds: int, duplicates: int
) -> None:
    asking.with_settings(cache_seconds=cache_seconds)
    asking.ask()
    asking.lose_answer()
    asking.next_run()
    registry = own_registry(monkeypatch)
    asking.model.metrics = ModelMetrics("google/gemini-2.5-flash", Decimal("5"))  # of the process that follows

    asking.ask()

    labels = {"model": "google/gemini-2.5-flash"}
    assert registry.get_sample_value("openrouter_cost_usd_total", labels) == pytest.approx(float(standin.billed_usd))
    assert registry.get_sample_value("openrouter_possible_duplicates_total", labels) == duplicates
