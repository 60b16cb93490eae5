"""The queue under any order of events: queue_machine.py has the steps, queue_laws.py the laws."""

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.databases import Database
from tests.queue.queue_machine import QueueMachine
from tests.queue.queue_world import World

# Stops at the first failure instead of looking for others: each example costs some hundred statements.
COMMON = {
    "deadline": None,
    "database": None,
    "print_blob": True,
    "report_multiple_bugs": False,
    "suppress_health_check": list(HealthCheck),
}


def walk(database: Database, options: settings) -> None:
    world = World(database)
    run_state_machine_as_test(lambda: QueueMachine(world), settings=options)


@pytest.mark.timeout(300)
def test_any_order_of_events_keeps_the_laws(database: Database) -> None:
    """The same walks every time, so that a failure here is one of the change at hand."""
    walk(database, settings(max_examples=30, stateful_step_count=40, derandomize=True, **COMMON))


@pytest.mark.long
@pytest.mark.timeout(0)
def test_many_long_walks_keep_the_laws(database: Database) -> None:
    """Other walks every time; STATE_MACHINE_WALKS says how many."""
    walks = int(os.environ.get("STATE_MACHINE_WALKS", "1000"))
    walk(database, settings(max_examples=walks, stateful_step_count=60, **COMMON))
