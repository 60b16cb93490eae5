"""What verdicts and empty budgets mean for the job: which error of the queue, whether it costs an attempt, how long."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from openrouter_client.ledger import Reservation
from openrouter_client.metrics import OUTCOMES
from openrouter_client.outcomes import (
    TooLongError,
    TruncatedError,
    budget_error,
    error_for,
    next_midnight,
    no_key_error,
    usd,
)
from openrouter_client.verdicts import Kind, Verdict
from sidelinja_jobs.errors import (
    ComeBackLaterError,
    HandlerError,
    PauseJobTypeError,
    PermanentError,
    RetryLaterError,
)
from sidelinja_jobs.outcomes import Failed, Postponed, outcome_of

NOW = datetime(2026, 3, 14, 15, 9, 26, tzinfo=UTC)


def raised(kind: Kind, error_class: str = "upstream", **more: object) -> HandlerError:
    return error_for(Verdict(kind, error_class, "it failed", **more), now=NOW)  # type: ignore[arg-type]


def seconds_until(error: HandlerError) -> float:
    assert isinstance(error, ComeBackLaterError | PauseJobTypeError)
    return (error.until - NOW).total_seconds()


def test_a_wait_that_the_server_names_costs_no_attempt_and_is_kept() -> None:
    waits = [seconds_until(raised(Kind.COME_BACK, "rate_limited", wait_seconds=100)) for _ in range(50)]

    assert min(waits) >= 100
    assert max(waits) <= 120
    assert len(set(waits)) > 10  # fifty jobs do not come back at once
    assert isinstance(outcome_of(raised(Kind.COME_BACK, wait_seconds=1)), Postponed)


def test_no_wait_is_longer_than_a_day_and_its_jitter() -> None:
    assert seconds_until(raised(Kind.COME_BACK, wait_seconds=10**9)) <= 86_400 * 1.2
    assert seconds_until(raised(Kind.PAUSE, "credits", wait_seconds=10**9)) == 86_400


@pytest.mark.parametrize(
    ("error_class", "wait", "expected"), [("auth", None, 900), ("credits", None, 3600), ("credits", 7200, 7200)]
)
def test_key_and_credit_rest_the_type(error_class: str, wait: float | None, expected: float) -> None:
    error = raised(Kind.PAUSE, error_class, wait_seconds=wait)

    assert isinstance(error, PauseJobTypeError)
    assert (error.origin, error.error_class, seconds_until(error)) == ("worker", error_class, expected)


def test_a_budget_that_even_less_output_cannot_meet_is_credit() -> None:
    error = raised(Kind.AFFORDS_LESS, "credits", wait_seconds=3600.0, affordable_tokens=3)

    assert isinstance(error, PauseJobTypeError)
    assert (error.error_class, seconds_until(error)) == ("credits", 3600)


@pytest.mark.parametrize(
    ("kind", "error_type", "error_class"),
    [
        (Kind.PERMANENT, PermanentError, "refused"),
        (Kind.TOO_LONG, TooLongError, "too_long"),
        (Kind.TRUNCATED, TruncatedError, "truncated"),
        (Kind.OTHER_FORMAT, PermanentError, "config"),
    ],
)
def test_what_no_retry_mends_ends_the_job(kind: Kind, error_type: type, error_class: str) -> None:
    error = raised(kind, "refused" if kind is Kind.PERMANENT else "x")

    outcome = outcome_of(error)
    assert type(error) is error_type
    assert isinstance(outcome, Failed)
    assert (outcome.permanent, outcome.error_class) == (True, error_class)


def test_the_rest_is_an_ordinary_failure_with_the_queues_backoff() -> None:
    assert outcome_of(raised(Kind.RETRY, "upstream")) == Failed("upstream", "it failed")
    assert outcome_of(raised(Kind.EMPTY, "empty_output")) == Failed("empty_output", "it failed")


def test_a_wait_on_a_failure_is_its_shortest_backoff() -> None:
    error = raised(Kind.RETRY, "timeout", wait_seconds=30)

    assert isinstance(error, RetryLaterError)
    assert error.seconds >= 30


def test_every_verdict_that_is_no_answer_is_an_error() -> None:
    for kind in Kind:
        if kind is not Kind.OK:
            assert isinstance(raised(kind), HandlerError)


def test_every_verdict_has_its_count() -> None:
    assert {kind.value for kind in Kind} <= set(OUTCOMES)


def test_the_message_names_the_provider_and_the_next_step() -> None:
    error = raised(Kind.RETRY, provider="Google", advice="look there")

    assert str(error) == "it failed (provider Google). Next: look there"
    assert str(raised(Kind.RETRY, provider="it")) == "it failed", "not named twice"


def test_no_key_pauses_and_names_the_setting() -> None:
    error = no_key_error(NOW)

    assert "there is no key" in str(error)
    assert "Next: give a valid key with `make key`" in str(error)
    assert (error.error_class, error.until) == ("no_api_key", NOW + timedelta(hours=1))


# Budgets.


def refused(outcome: str, *, spent: str = "4.9", flying: str = "0", budget: str = "5", **more: Any) -> HandlerError:
    told = Reservation(None, outcome, Decimal(spent), Decimal(flying), Decimal(budget), **more)
    return budget_error(told, Decimal("0.315"), "a/model", now=NOW)


@pytest.mark.parametrize("outcome", ["job", "never"])
def test_a_budget_that_can_never_be_met_ends_the_job_with_the_numbers(outcome: str) -> None:
    error = refused(outcome)

    assert isinstance(error, PermanentError)
    assert error.error_class == "budget_exceeded"
    assert "0.315 USD" in str(error)
    assert "5 USD" in str(error)


@pytest.mark.parametrize(
    ("outcome", "setting"), [("day", "OPENROUTER_DAY_BUDGET_USD"), ("type_day", "OPENROUTER_TYPE_DAY_BUDGET_USD")]
)
def test_a_spent_day_rests_the_type_until_midnight_utc(outcome: str, setting: str) -> None:
    error = refused(outcome)

    assert isinstance(error, PauseJobTypeError)
    assert (error.origin, error.until) == ("budget", datetime(2026, 3, 15, tzinfo=UTC))
    assert setting in str(error)
    assert "but for 0.1 USD" in str(error)
    ahead = refused(outcome, day_ends=NOW + timedelta(days=2))
    assert isinstance(ahead, PauseJobTypeError)
    assert ahead.until == NOW + timedelta(days=2), "the database's clock decides"


def test_money_held_by_calls_under_way_is_waited_for_at_no_cost() -> None:
    error = refused("in_flight", spent="1", flying="3.9")

    assert isinstance(error, ComeBackLaterError)
    assert 60 <= seconds_until(error) <= 72
    assert seconds_until(refused("in_flight", postponements=15)) > 1000, "longer, the oftener it has come back"


def test_midnight_is_utcs_wherever_the_clock_stands() -> None:
    oslo = datetime.fromisoformat("2026-03-15T00:30:00+01:00")

    assert next_midnight(oslo) == datetime(2026, 3, 15, tzinfo=UTC)
    assert next_midnight(datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC)) == datetime(2027, 1, 1, tzinfo=UTC)
    assert next_midnight(datetime(2026, 3, 15, tzinfo=UTC)) == datetime(2026, 3, 16, tzinfo=UTC)


@pytest.mark.parametrize(
    ("amount", "shown"),
    [("0", "0 USD"), ("5", "5 USD"), ("100", "100 USD"), ("0.315", "0.315 USD"), ("0.00001234567", "0.00001235 USD")],
)
def test_amounts_are_shown_as_people_write_them(amount: str, shown: str) -> None:
    assert usd(Decimal(amount)) == shown
