"""What a verdict, or an empty budget, means for the job: the errors that a handler raises to steer the queue.

A wait that the server names costs no attempt (come back later). A key that is missing or refused, spent credit and a
spent day rest the whole type. Whatever retrying cannot mend ends the job. The rest is an ordinary failure, with the
backoff of the queue.
"""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from openrouter_client.advice import GIVE_A_KEY
from openrouter_client.ledger import Reservation
from openrouter_client.verdicts import NO_CREDIT_SECONDS, Kind, Verdict
from openrouter_client.waits import LONGEST_HINT_SECONDS, next_reset, spread
from sidelinja_jobs.errors import (
    ComeBackLaterError,
    HandlerError,
    PauseJobTypeError,
    PermanentError,
    RetryLaterError,
)

NO_KEY = "no_api_key"
REFUSED_KEY = "auth"
NO_CREDIT = "credits"
KEY_LIMIT = "key_limit"
BUDGET = "budget_exceeded"
NO_KEY_SECONDS = 3600.0  # a pause without a key; a worker that starts with one ends it at once
REFUSED_KEY_SECONDS = 900.0  # a key that was refused is tried again this often
IN_FLIGHT_SECONDS = 60.0  # until calls under way have told what they cost
FIRST_WAIT_SECONDS, WAIT_GROWTH = 4.0, 1.5
LONGEST_WAIT_SECONDS = 7200.0
CENT = Decimal("0.01")


class TooLongError(PermanentError):
    """The prompt does not fit the model. A caller that can ask in parts catches it."""

    error_class = "too_long"


class TruncatedError(PermanentError):
    """The answer does not fit its token budget, not even a doubled one. A caller that can ask for less catches it."""

    error_class = "truncated"


class ModelAwayError(ComeBackLaterError):
    """The model is away for all, and `until` is the job's turn in line. It may ask again at `alone_until`, counted."""

    def __init__(self, message: str, *, until: datetime, alone_until: datetime, error_class: str | None = None) -> None:
        super().__init__(message, until=until, error_class=error_class)
        self.alone_until = alone_until


def error_for(verdict: Verdict, *, now: datetime) -> HandlerError:
    """The error that a verdict stands for, once nothing more can be tried within this run."""
    text, error_class = _text(verdict), verdict.error_class or "upstream"
    wait = None if verdict.wait_seconds is None else min(verdict.wait_seconds, LONGEST_HINT_SECONDS)
    match verdict.kind:
        case Kind.COME_BACK:
            alone_until = _after(now, wait or IN_FLIGHT_SECONDS)
            if verdict.turn is not None:
                return ModelAwayError(text, until=verdict.turn, alone_until=alone_until, error_class=error_class)
            return ComeBackLaterError(text, until=alone_until, error_class=error_class)
        case Kind.PAUSE:
            return _pause(text, error_class, wait, now)
        case Kind.AFFORDS_LESS:
            return _pause(text, NO_CREDIT, wait, now)
        case Kind.TOO_LONG:
            return TooLongError(text)
        case Kind.TRUNCATED:
            return TruncatedError(text)
        case Kind.OTHER_FORMAT:
            return PermanentError(text, error_class="config")
        case Kind.PERMANENT:
            return PermanentError(text, error_class=error_class)
    if wait is not None:
        return RetryLaterError(text, seconds=spread(wait), error_class=error_class)
    return HandlerError(text, error_class=error_class)


def no_key_error(now: datetime) -> PauseJobTypeError:
    """There is no key: the type rests until a worker starts with one."""
    return PauseJobTypeError(
        f"there is no key for OpenRouter, so no model can be asked. Next: {GIVE_A_KEY}",
        until=now + timedelta(seconds=NO_KEY_SECONDS),
        error_class=NO_KEY,
    )


def budget_error(told: Reservation, most_usd: Decimal, model: str, *, now: datetime) -> HandlerError:
    """The error that a refused reservation stands for."""
    spent, budget = told.spent_usd or Decimal(0), told.budget_usd or Decimal(0)
    costs = f"a call of {model} can cost up to {usd(most_usd)}"
    if told.outcome == "job":
        return PermanentError(
            f"{costs}, and {usd(spent)} of the job's budget of {usd(budget)} are spent. Next: raise max_cost_usd or "
            "OPENROUTER_JOB_BUDGET_USD, then retry the job",
            error_class=BUDGET,
        )
    setting = "OPENROUTER_TYPE_DAY_BUDGET_USD" if told.outcome == "type_day" else "OPENROUTER_DAY_BUDGET_USD"
    if told.outcome == "never":
        return PermanentError(
            f"{costs}, more than a whole day's budget of {usd(budget)}. Next: raise the day's budget or choose a "
            "cheaper model",
            error_class=BUDGET,
        )
    if told.outcome == "in_flight":
        flying = told.in_flight_usd or Decimal(0)
        return ComeBackLaterError(
            f"{costs}; of the day's budget of {usd(budget)}, {usd(spent)} are spent and {usd(flying)} are held by "
            "calls under way",
            until=_after(now, max(IN_FLIGHT_SECONDS, least_wait(told.postponements))),
            error_class=BUDGET,
        )
    return PauseJobTypeError(
        f"the day's budget of {usd(budget)} ({setting}) is spent but for {usd(max(budget - spent, Decimal(0)))}, and "
        f"{costs}. It goes on at midnight UTC. Next: wait, or raise it, start the worker again and resume the type",
        until=told.day_ends or next_midnight(now),
        origin="budget",
        error_class=BUDGET,
    )


def least_wait(postponements: int) -> float:
    """The shortest wait of a job that has come back so often. The queue lets it come back twenty times: this way over
    seven hours, where a server that asks for a second each time would have ended it after a minute."""
    if postponements <= 0:
        return 0.0
    return min(FIRST_WAIT_SECONDS * WAIT_GROWTH**postponements, LONGEST_WAIT_SECONDS)


def next_midnight(now: datetime) -> datetime:
    """When the next UTC day begins."""
    return next_reset("daily", now) or now.astimezone(UTC) + timedelta(days=1)


def usd(amount: Decimal) -> str:
    """An amount for people: cents, or as many decimals as a small one needs."""
    if amount == 0 or amount >= CENT:
        return f"{amount.quantize(Decimal('0.0001')).normalize():f} USD"
    return f"{amount.quantize(Decimal('0.00000001')).normalize():f} USD"


def _pause(text: str, error_class: str, wait: float | None, now: datetime) -> PauseJobTypeError:
    default = REFUSED_KEY_SECONDS if error_class in (REFUSED_KEY, NO_KEY) else NO_CREDIT_SECONDS
    until = now + timedelta(seconds=wait or default)
    return PauseJobTypeError(text, until=until, error_class=error_class)


def _after(now: datetime, seconds: float) -> datetime:
    return now + timedelta(seconds=spread(seconds))


def _text(verdict: Verdict) -> str:
    text = verdict.message or "the call failed"
    if verdict.provider and verdict.provider not in text:
        text += f" (provider {verdict.provider})"
    return f"{text}. Next: {verdict.advice}" if verdict.advice else text
