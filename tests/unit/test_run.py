"""A run's lease, its signs of life, and the signals that stop its handler."""

import subprocess
import sys
import time
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from sidelinja_jobs.errors import StopReason
from sidelinja_jobs.interrupt import Interrupter, StopFlag, Waker
from sidelinja_jobs.models import Claim, Rules
from sidelinja_jobs.run import Phase, Run
from tests.databases import ROOT


def rules(**changes: int) -> Rules:
    values = {"lease_seconds": 120, "longest_run_seconds": 600, "stall_seconds": 0, "batch_size": 1}
    return Rules(**{**values, "payload_limit_bytes": 1000, **changes})


def run(claimed_at: float | None = None, **changes: int) -> Run:
    now = datetime.now(UTC)
    claim = Claim(
        id=uuid4(), payload_text="{}", payload_bytes=2, priority=0, attempts=0, max_attempts=3, lease_token=uuid4(),
        created_at=now, scheduled_for=now, started_at=now, parent_id=None,
    )  # fmt: skip
    return Run(claim, "test_job", rules(**changes), time.monotonic() if claimed_at is None else claimed_at)


@pytest.mark.parametrize(
    ("lease_seconds", "margin_seconds", "beat_seconds"), [(1, 0.25, 0.25), (2, 0.5, 0.5), (60, 15, 15), (3600, 15, 900)]
)
def test_four_beats_fit_into_a_lease_and_a_handler_stops_before_its_end(
    lease_seconds: int, margin_seconds: float, beat_seconds: float
) -> None:
    chosen = rules(lease_seconds=lease_seconds)

    assert (chosen.margin_seconds, chosen.beat_seconds) == (margin_seconds, beat_seconds)
    assert 3 * chosen.beat_seconds <= lease_seconds - chosen.margin_seconds


def test_the_deadline_follows_the_heartbeat_that_was_confirmed_and_not_the_one_sent() -> None:
    held = run(claimed_at=1000.0)
    assert held.deadline == 1000 + 120 - 15
    held.sent_at = 2000.0
    assert held.deadline == 1105

    held.confirmed_at = 2000.0
    assert held.deadline == 2105


def test_a_run_expires_at_its_deadline() -> None:
    assert not run(claimed_at=time.monotonic() - 104).is_expired
    assert run(claimed_at=time.monotonic() - 106).is_expired


def test_the_first_reason_to_stop_stays_but_a_lost_lease_overrides_it() -> None:
    stopped = run()

    stopped.stop(StopReason.CANCELLED)
    stopped.stop(StopReason.SHUTDOWN)
    assert stopped.stop_reason is StopReason.CANCELLED
    stopped.stop(StopReason.LOST)
    stopped.stop(StopReason.TIMEOUT)
    assert stopped.stop_reason is StopReason.LOST


@pytest.mark.parametrize(
    ("fraction", "kept"),
    [
        (0.5, 0.5),
        (0, 0.0),
        (-3, 0.0),
        (7, 1.0),
        (float("inf"), 1.0),
        (float("-inf"), 0.0),
        (float("nan"), None),
        (True, 1.0),
    ],
)
def test_progress_is_a_share_of_one(fraction: float, kept: float | None) -> None:
    reporting = run()

    reporting.report(fraction, None)

    assert reporting.take_progress() == (kept, None)


@pytest.mark.parametrize(("fraction", "note"), [("half", None), (object(), None), (0.5, b"bytes"), (0.5, 5)])
def test_progress_that_is_none_is_refused_where_it_is_reported(fraction: object, note: object) -> None:
    reporting = run()

    with pytest.raises((TypeError, ValueError)):
        reporting.report(fraction, note)  # type: ignore[arg-type]
    assert not reporting.has_progress


def test_progress_is_taken_once_and_parts_of_it_add_up() -> None:
    reporting = run()
    assert not reporting.has_progress

    reporting.report(0.25, "first")
    reporting.report(0.5, None)
    assert reporting.has_progress
    assert reporting.take_progress() == (0.5, "first")
    assert reporting.take_progress() == (None, None)
    reporting.report(None, "only a note")
    assert reporting.take_progress() == (None, "only a note")


def test_every_report_is_a_sign_of_life_and_limits_begin_with_the_handler() -> None:
    reporting = run(claimed_at=time.monotonic() - 50)

    reporting.enter(Phase.HANDLING)
    assert time.monotonic() - reporting.started_at < 1
    reporting.active_at -= 40
    reporting.report(None, None)

    assert time.monotonic() - reporting.active_at < 1
    assert not reporting.has_progress
    reporting.enter(Phase.SETTLING)
    assert not reporting.is_interruptible


# A thread interrupts runs that begin and end thousands of times a second, with no pause between two interrupts.
STORM = """
import random, sys, threading, time
import sidelinja_jobs.interrupt as interrupt
from sidelinja_jobs.errors import JobStopped, StopReason
from sidelinja_jobs.run import Phase
from tests.unit.test_run import interrupter, run

sys.setswitchinterval(1e-6)
interrupt.INTERRUPT_SECONDS = 0
interrupter = interrupter()
current, over = [run()], threading.Event()

def storm():
    while not over.is_set():
        current[0].stop(StopReason.CANCELLED)
        interrupter.press()
        time.sleep(random.random() / 2000)

def handle():
    for _ in range(random.choice([5, 500, 20_000])):
        pass

threading.Thread(target=storm, daemon=True).start()
end, stopped, finished = time.monotonic() + 2, 0, 0
while time.monotonic() < end:
    held = current[0] = run()
    try:
        interrupter.call(held, Phase.HANDLING, handle)
        finished += 1
    except JobStopped:
        stopped += 1
    assert not held.is_interruptible, "left the handler, and may still be interrupted"
    for _ in range(300):
        pass  # an interrupt that came out here would end the worker
over.set()
print(stopped, finished)
"""

# The lease of a batch ends between two of its runs, and the lease thread is dead; then comes a handler that never ends.
BETWEEN = """
import time
import sidelinja_jobs.interrupt as interrupt
from sidelinja_jobs.errors import JobStopped
from sidelinja_jobs.run import Phase
from tests.unit.test_run import interrupter, run

interrupt.SET_UP_SECONDS = 60  # as if the second run came at once
interrupter = interrupter()
first, second = (run(claimed_at=time.monotonic() - 105 + 0.2) for _ in range(2))
with interrupter.batch([first, second]):
    interrupter.call(first, Phase.HANDLING, lambda: None)
    while time.monotonic() < first.deadline + 0.05:
        pass
    end = time.monotonic() + 5
    try:
        interrupter.call(second, Phase.HANDLING, lambda: [None for _ in iter(lambda: time.monotonic() < end, False)])
        print("never stopped")
    except JobStopped as stopped:
        print(stopped.reason)
"""

# SIGTERM and SIGINT, each in the middle of the other's handler.
BURST = """
import signal, sys, threading, time
from tests.unit.test_run import interrupter

sys.setswitchinterval(1e-6)
interrupter = interrupter()
main = threading.main_thread().ident

def storm():
    for number in range(3000):
        signal.pthread_kill(main, (signal.SIGTERM, signal.SIGINT)[number % 2])
        time.sleep(0.00005)

thread = threading.Thread(target=storm, daemon=True)
thread.start()
while thread.is_alive():
    pass
print("alive")
"""


def interrupter() -> Interrupter:
    return Interrupter(Waker(), StopFlag(), stops_at_once=True)


def outside(script: str) -> str:
    """Runs a script in a process of its own, whose signals are its own; returns what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=20,
        env={"PYTHONPATH": f"{ROOT / 'shared'}:{ROOT}"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_an_interrupt_never_comes_after_the_handler() -> None:
    """It would be raised while the end is written, and end the process."""
    stopped, finished = map(int, outside(STORM).split())

    assert stopped > 50
    assert finished > 50


def test_a_lease_that_ends_between_two_runs_of_a_batch_stops_the_second() -> None:
    assert outside(BETWEEN) == "lost\n"


def test_signals_inside_the_handler_of_a_signal_do_no_harm() -> None:
    assert outside(BURST) == "alive\n"
