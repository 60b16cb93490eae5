"""The accounts after the stack's soak: what a sweep puts right within seconds is no fault, what stays is one."""

import json
from typing import Any, cast

import pytest

from bench import stack_soak_accounts
from bench.stack_soak_accounts import ACCOUNTS, FIGURES, SCHEDULES, balance
from tests.e2e.running_stack import RunningStack

COUNTS = {"lines_counted": 5, "calls_in_ledger": 2}


class Answers:
    """In place of a stack: what it answers to a statement, the last of several again and again."""

    def __init__(self, **rows: list[str]) -> None:
        self._rows = {ACCOUNTS[name]: found for name, found in rows.items()}

    def sql(self, statement: str) -> str:
        if statement == FIGURES:
            return json.dumps(COUNTS)
        found = self._rows.get(statement, [""])
        return found.pop(0) if len(found) > 1 else found[0]


def balanced(answers: Answers, **also: Any) -> dict[str, Any]:
    return balance(cast(RunningStack, answers), also.get("asked", {}), also.get("billed", 2), also.get("lines", 5))


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stack_soak_accounts, "SWEEP_SECONDS", 1.5)


def test_the_run_after_one_that_has_just_ended_is_waited_for() -> None:
    assert balanced(Answers(**{SCHEDULES: ["podcast statistics", ""]})) == {}


def test_a_schedule_that_stays_without_a_run_is_told() -> None:
    assert balanced(Answers(**{SCHEDULES: ["podcast statistics"]})) == {SCHEDULES: ["podcast statistics"]}


def test_every_account_that_does_not_balance_is_told() -> None:
    found = balanced(Answers(**{"completed twice": ["a\nb"]}), asked={"c": "research_clip"}, billed=3, lines=6)

    assert found == {
        "completed twice": ["a", "b"],
        "asked for, and nowhere now": ["c"],
        "lines of the log": "6 written, 5 counted",
        "paid calls": "3 billed, 2 in the ledger",
    }
