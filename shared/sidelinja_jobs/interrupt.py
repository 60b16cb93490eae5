"""Signals of a worker process.

- SIGTERM and SIGINT ask it to end. Python runs handlers only between two bytecodes of the main thread, which native
  code may not reach for minutes; the wake-up file descriptor is written at once, and the lease thread reads it.
- SIGUSR1, sent by the lease thread, raises JobStopped in the main thread while a handler runs.
- SIGALRM does the same when the lease was not renewed in time, whatever has become of the lease thread.
"""

import contextlib
import faulthandler
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from math import ceil
from types import FrameType
from typing import TypeVar

from sidelinja_jobs.errors import JobStopped, StopReason
from sidelinja_jobs.run import Phase, Run

INTERRUPT_SECONDS = 2.5  # a handler that has not left by then is interrupted again: it may have swallowed the first
GUARD_SECONDS = 10.0  # past the lease, so that a process that slept through it may still end in order
ALARM_AGAIN_SECONDS = 0.1
SET_UP_SECONDS = 0.01  # within a batch of quick jobs, signals and alarm are set anew this often at most
STOP_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT})

T = TypeVar("T")


class Waker:
    """Wakes a thread that waits in `wait`, from another thread or a signal."""

    def __init__(self) -> None:
        self._reader, self.writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self.writer, False)

    def wake(self) -> None:
        with contextlib.suppress(BlockingIOError):  # full: it is awake already
            os.write(self.writer, b"\0")

    def wait(self, timeout: float, *others: int) -> tuple[bytes, bool]:
        """Waits for a wake-up or for data on other file descriptors.

        Returns:
            the bytes written by wake-ups (signal numbers), and whether another descriptor is ready.
        """
        poll = select.poll()  # select() knows no descriptor above 1023, and a handler may keep many files open
        for descriptor in (self._reader, *others):
            poll.register(descriptor, select.POLLIN)
        ready = {descriptor for descriptor, _event in poll.poll(max(ceil(timeout * 1000), 0))}
        woken = b""
        if self._reader in ready:
            with contextlib.suppress(BlockingIOError):
                woken = os.read(self._reader, 4096)
        return woken, not ready.isdisjoint(others)


class StopFlag:
    """Set once, by either thread or a signal. No threading.Event: its lock would deadlock two signals in a row."""

    def __init__(self) -> None:
        self._is_set = False

    def set(self) -> None:
        self._is_set = True

    def is_set(self) -> bool:
        return self._is_set


class Guard:
    """Ends the process when native code keeps the interpreter past the lease: faulthandler's timer is a C thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._until: float | None = None
        self._is_in_batch = False

    def enter(self, run: Run, phase: Phase) -> None:
        """The main thread goes on to another phase of a run."""
        if self._is_in_batch:  # set and taken back in the main thread, too
            run.enter(phase)
            return
        with self._lock:
            run.enter(phase)
            self._set([run])

    def enter_batch(self, runs: Sequence[Run]) -> None:
        """From now on runs whose turn has not come count, too: the guard is not set anew for each of them."""
        with self._lock:
            self._is_in_batch = True
            self._set(runs)

    def leave_batch(self) -> None:
        with self._lock:
            self._is_in_batch = False
            self._set([])

    def follow(self, runs: Sequence[Run]) -> None:
        """Moves on with the leases; called by the lease thread."""
        with self._lock:
            self._set(runs)

    def _set(self, runs: Sequence[Run]) -> None:
        ends = [
            run.deadline + run.rules.margin_seconds + GUARD_SECONDS
            for run in runs
            if run.is_interruptible or (self._is_in_batch and run.phase is Phase.WAITING)
        ]
        until = min(ends, default=None)
        if until == self._until:
            return
        self._until = until
        if until is None:
            faulthandler.cancel_dump_traceback_later()
        else:
            faulthandler.dump_traceback_later(max(until - time.monotonic(), 1.0), exit=True)


class Interrupter:
    """Stops a handler in the main thread from outside. Made and used in the main thread."""

    def __init__(self, waker: Waker, stopping: StopFlag, *, stops_at_once: bool) -> None:
        self._waker, self._stopping, self._stops_at_once = waker, stopping, stops_at_once
        self.guard = Guard()
        self._run: Run | None = None
        self._is_in_batch = False
        self._set_up_at = 0.0
        self._thread_id = threading.main_thread().ident or 0
        self._install()

    def _install(self) -> None:
        # Before and after each handler: a library in it may have put its own in place (asyncio does).
        signal.set_wakeup_fd(self._waker.writer, warn_on_full_buffer=False)
        for number in STOP_SIGNALS:
            signal.signal(number, self._on_stop)
        signal.signal(signal.SIGUSR1, self._on_press)
        signal.signal(signal.SIGALRM, self._on_alarm)

    @staticmethod
    def close() -> None:
        """From here on the process is ending: one more SIGTERM must not kill it with another exit code."""
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        signal.set_wakeup_fd(-1)
        faulthandler.cancel_dump_traceback_later()

    def press(self) -> None:
        """Interrupts the handler; called by the lease thread."""
        signal.pthread_kill(self._thread_id, signal.SIGUSR1)

    def call(self, run: Run, phase: Phase, function: Callable[[], T]) -> T:
        """Calls the handler (HANDLING) or its last writes (COMPLETING).

        JobStopped may be raised at any point inside the function, and nowhere else: a signal that comes when it has
        been left finds no frame of it on the stack.
        """
        try:
            self._run = run
            self._set_up(run)
            self.guard.enter(run, phase)
            if run.stop_reason is StopReason.LOST or (run.stop_reason is not None and phase is Phase.HANDLING):
                raise JobStopped(run.stop_reason)
            return _inside(function)
        finally:
            self._run = None
            self.guard.enter(run, Phase.SETTLING)
            if not self._is_in_batch:
                self._take_down()

    @contextlib.contextmanager
    def batch(self, runs: Sequence[Run]) -> Iterator[None]:
        """While the runs of a batch are called: signals, alarm and guard are not set anew for each of them."""
        self._set_up(runs[0])
        self.guard.enter_batch(runs)
        self._is_in_batch = True
        try:
            yield
        finally:
            self._is_in_batch = False
            self.guard.leave_batch()
            self._take_down()

    def _set_up(self, run: Run) -> None:
        now = time.monotonic()
        if self._is_in_batch and now - self._set_up_at < SET_UP_SECONDS:
            return
        self._set_up_at = now
        self._install()
        self._arm(run)

    def _take_down(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        self._install()

    @staticmethod
    def _arm(run: Run) -> None:
        signal.setitimer(signal.ITIMER_REAL, max(run.deadline - time.monotonic(), 0.001))

    def _on_stop(self, _number: int, frame: FrameType | None) -> None:
        self._stopping.set()
        run = self._run
        # The lease thread does this, too, but C code that looks at signals may keep the interpreter from it.
        if self._stops_at_once and run is not None and run.phase is Phase.HANDLING and run.stop_reason is None:
            run.stop(StopReason.SHUTDOWN)
            self._interrupt(run, frame)

    def _on_press(self, _number: int, frame: FrameType | None) -> None:
        run = self._run
        if run is not None and run.is_interruptible:
            self._interrupt(run, frame)

    def _on_alarm(self, _number: int, frame: FrameType | None) -> None:
        run = self._run
        if run is None or not run.is_interruptible:
            if self._is_in_batch:  # between two of its runs
                signal.setitimer(signal.ITIMER_REAL, ALARM_AGAIN_SECONDS)
            return
        if not run.is_expired:
            self._arm(run)
            return
        run.stop(StopReason.LOST)
        signal.setitimer(signal.ITIMER_REAL, ALARM_AGAIN_SECONDS)
        self._interrupt(run, frame)

    @staticmethod
    def _interrupt(run: Run, frame: FrameType | None) -> None:
        """Raises, unless another of the guards did just before: a handler's cleanup must get to its end."""
        now = time.monotonic()
        if run.stop_reason is None or now < run.interrupt_again_at or not _is_inside(frame):
            return
        run.interrupt_again_at = now + INTERRUPT_SECONDS
        raise JobStopped(run.stop_reason)


def _inside(function: Callable[[], T]) -> T:
    """Its code marks the part of the stack where a handler runs."""
    return function()


def _is_inside(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_code is not _inside.__code__:
        frame = frame.f_back
    return frame is not None
