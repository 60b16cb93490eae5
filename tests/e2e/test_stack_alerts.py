"""Each alert of the shipped rules in the running stack: its cause happens, it fires, somebody is told; then it is over.

Waiting times, windows and limits of seconds are a two-hundredth of the shipped ones (alert_watch.py). Two alerts are
tried in every run, the others with `make test-long`.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.e2e.alert_faults import FAULTS
from tests.e2e.alert_watch import AlertWatch, rules, watched
from tests.e2e.running_stack import RunningStack
from tests.waiting import wait_until

pytestmark = [pytest.mark.containers, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def watch(stack: RunningStack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AlertWatch]:
    stack.start_missing_workers()
    with watched(stack, tmp_path_factory.mktemp("prometheus")) as watch:
        yield watch


def at_once(*names: str, is_long: bool = True) -> object:
    """Faults that do not touch each other are made at the same time."""
    return pytest.param(names, id="+".join(names), marks=[pytest.mark.long] if is_long else [])


@pytest.mark.parametrize(
    "names",
    [
        at_once("unworked_type", "frozen_worker", is_long=False),
        at_once("failing_jobs"),
        at_once("killed_workers"),
        at_once("dead_workers"),
        at_once("hung_engines", "paused_type", "overdue_schedule", "spent_budget"),
        at_once("held_row", "dead_rows", "model_away"),
        at_once("crowded_database"),
        at_once("late_receiver"),
        at_once("gone_receiver"),
        at_once("full_disk"),
        at_once("stopped_view"),
        at_once("stopped_database"),
    ],
)
def test_alert_fires_is_told_and_ends(watch: AlertWatch, names: tuple[str, ...]) -> None:
    alerts = [alert for name in names for alert in FAULTS[name].alerts.items()]
    wait_until(lambda: not any(watch.firing(*alert) for alert in alerts), 120, every=1, what="a quiet beginning")
    since = len(watch.posts.taken)
    with ExitStack() as after:
        begun = time.monotonic()
        with ExitStack() as faults:
            for name in names:
                faults.enter_context(FAULTS[name].make(watch, after))
            for alert in alerts:
                watch.wait_until_it_fires(*alert, since=since)
                print(f"{alert[0]}: told after {time.monotonic() - begun:.0f} s")
            ended = time.monotonic()
        for alert in alerts:
            watch.wait_until_it_is_over(*alert, since=since)
            print(f"{alert[0]}: over {time.monotonic() - ended:.0f} s after its cause was taken away")

    for alert in alerts:
        told = watch.told(*alert, since=since)
        assert told[0]["data"]["is_firing"]
        assert len({message["id"] for message in told}) == len(told), "told once"


def test_there_is_a_fault_for_each_alert() -> None:
    assert {alert for fault in FAULTS.values() for alert in fault.alerts} == {
        rule["alert"] for rule in rules() if "alert" in rule
    }
