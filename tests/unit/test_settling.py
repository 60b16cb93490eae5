"""Which end an exception of a handler stands for."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from sidelinja_jobs.errors import (
    ChildDiedError,
    ChildError,
    ChildTimeoutError,
    ComeBackLaterError,
    HandlerError,
    JobStopped,
    LeaseLostError,
    PauseJobTypeError,
    PermanentError,
    RefusedError,
    RetryLaterError,
    StopReason,
)
from sidelinja_jobs.settling import Failed, Postponed, Stopped, outcome_of

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (PermanentError("never"), Failed("permanent", "never", permanent=True)),
        (PermanentError("no", error_class="no_file"), Failed("no_file", "no", permanent=True)),
        (RetryLaterError("wait", seconds=9), Failed("retry_later", "wait", retry_after_seconds=9)),
        (
            RetryLaterError("wait", seconds=9, error_class="rate_limited"),
            Failed("rate_limited", "wait", retry_after_seconds=9),
        ),
        (ComeBackLaterError("noon", until=NOON), Postponed(NOON, "noon")),
        (PauseJobTypeError("broke", until=NOON), Postponed(NOON, "broke", pause_origin="worker", pause_class="paused")),
        (
            PauseJobTypeError("broke", until=NOON, origin="budget", error_class="money"),
            Postponed(NOON, "broke", pause_origin="budget", pause_class="money"),
        ),
        (HandlerError("plain", error_class="own"), Failed("own", "plain")),
        (ChildDiedError("died"), Failed("child_died", "died")),
        (ChildTimeoutError("slow"), Failed("timeout", "slow")),
        (ChildError("bad", child_class="KeyError", child_traceback="tb"), Failed("KeyError", "bad", traceback="tb")),
        (ChildError("bad"), Failed("child_error", "bad", traceback="")),
        (JobStopped(StopReason.TIMEOUT), Stopped(StopReason.TIMEOUT)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_error_that_steers_a_job_has_its_outcome(error: BaseException, expected: Any) -> None:
    assert outcome_of(error) == expected


@pytest.mark.parametrize(
    "error",
    [
        ValueError("x"),
        SystemExit(3),
        KeyboardInterrupt(),
        asyncio.CancelledError(),
        RefusedError("x"),
        LeaseLostError("x"),
    ],
)
def test_any_other_exception_is_an_ordinary_failure_of_its_class(error: BaseException) -> None:
    outcome = outcome_of(error)

    assert isinstance(outcome, Failed)
    assert outcome.error_class == type(error).__name__
    assert outcome.message
    assert (outcome.permanent, outcome.retry_after_seconds) == (False, None)


def test_the_traceback_of_a_failure_names_the_place_and_its_cause() -> None:
    try:
        try:
            {}["missing"]
        except KeyError as error:
            raise ValueError("second") from error
    except ValueError as error:
        outcome = outcome_of(error)

    assert isinstance(outcome, Failed)
    assert outcome.traceback is not None
    assert "test_settling.py" in outcome.traceback
    assert "KeyError: 'missing'" in outcome.traceback


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class MeanError(Exception):
    def __str__(self) -> str:
        raise SystemExit(5)


@pytest.mark.parametrize("error", [MuteError(), MeanError(), PermanentError(MuteError())])  # type: ignore[arg-type]
def test_an_error_whose_text_cannot_be_made_is_still_a_failure(error: Exception) -> None:
    outcome = outcome_of(error)

    assert isinstance(outcome, Failed)
    assert outcome.message


def stopped_then(raising: BaseException, *, with_cause: bool) -> BaseException:
    """What a handler leaves behind that was stopped and raised something else on its way out."""
    try:
        try:
            raise JobStopped(StopReason.SHUTDOWN)
        except JobStopped as stopped:
            raise raising from (stopped if with_cause else None)
    except BaseException as error:
        return error


@pytest.mark.parametrize("with_cause", [True, False], ids=["from", "during"])
def test_a_handler_that_was_stopped_is_stopped_whatever_it_raises_afterwards(with_cause: bool) -> None:
    assert outcome_of(stopped_then(OSError("cleanup"), with_cause=with_cause)) == Stopped(StopReason.SHUTDOWN)
    nested = BaseExceptionGroup("many", [ValueError("a"), BaseExceptionGroup("b", [JobStopped(StopReason.CANCELLED)])])
    assert outcome_of(nested) == Stopped(StopReason.CANCELLED)


def test_an_error_that_was_handled_long_before_the_stop_does_not_count() -> None:
    """A chain that goes in a circle must not hold the worker either."""
    first, second = ValueError("one"), ValueError("two")
    first.__context__, second.__context__ = second, first

    outcome = outcome_of(first)

    assert isinstance(outcome, Failed)
    assert outcome.message == "one"
