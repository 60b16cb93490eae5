"""The lease thread: heartbeats, limits, sweeps and the health file, on a connection of its own.

It lives as long as the process. The main thread tells it which runs are held. Four guards see to it that a handler ends
before its lease does, each for what the one before cannot see:
1. this thread interrupts the main thread (cancel, limits, lost lease, shutdown);
2. an alarm in the main thread fires when the lease was not renewed, even if this thread is dead (interrupt.py);
3. a main thread that native code keeps from both is abandoned: this thread settles its runs and ends the process;
4. native code that keeps the interpreter itself is ended by a C timer, ten seconds after the lease.
The fence in the database refuses whatever comes too late all the same.
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psycopg

from sidelinja_jobs import queue, settling
from sidelinja_jobs.database import Link, QueueConnection
from sidelinja_jobs.errors import JobQueueError, StopReason
from sidelinja_jobs.housekeeping import Housekeeping
from sidelinja_jobs.interrupt import STOP_SIGNALS, Interrupter, StopFlag, Waker
from sidelinja_jobs.log import get_logger
from sidelinja_jobs.metrics import WorkerMetrics
from sidelinja_jobs.models import Rules
from sidelinja_jobs.run import Phase, Run

HEALTH_SECONDS = 5.0
CONTACT_SECONDS = 30.0  # without the database for this long, the process is not well
COMPLETING_SECONDS = 5.0  # the last writes of a handler may take this long when it is to stop: its work is done
HANG_SECONDS = 10.0  # longer than a few statements that run into their deadlines
PRESS_SECONDS = 1.0
STUCK_SECONDS = 5.0  # a handler that does not leave for this long after an interrupt is in native code


class LeaseThread:
    """Keeps the leases of the runs that the main thread holds."""

    def __init__(
        self,
        link: Link,
        rules: Rules,
        worker_id: str,
        *,
        listens_to: str | None,
        claim_seconds: float,
        register: Callable[[QueueConnection], object],
        stopping: StopFlag,
        waker: Waker,
        main_waker: Waker,
        interrupter: Interrupter,
        metrics: WorkerMetrics,
        health_file: Path,
        drain_seconds: float,
        settle_overdue: Callable[[QueueConnection], None],
    ) -> None:
        self._link, self._rules, self._worker_id = link, rules, worker_id
        self._interrupter, self._metrics = interrupter, metrics
        self._stopping, self._waker, self._main_waker = stopping, waker, main_waker
        self._health_file, self._drain_seconds = health_file, drain_seconds
        self._listens_to = listens_to
        self._settle_overdue = settle_overdue
        self._housekeeping = Housekeeping(worker_id, rules, claim_seconds, register, metrics)
        self._log = get_logger(worker_id=worker_id)
        self._held: set[Run] = set()  # changed by single operations, read as a copy: no lock is needed
        self._closed = False
        self._stopping_since: float | None = None
        self._listening_on: QueueConnection | None = None
        now = time.monotonic()
        self._contact_at, self._polled_at = now, now
        self._health_at = now
        self._retry_at = now
        self._ask_since = now  # a run whose last heartbeat was sent before gets another one at once
        self.failed = False
        self._ticked = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Ends the thread; the main thread holds nothing any more."""
        self._closed = True
        self._waker.wake()
        self._thread.join(timeout=0 if self.failed else 15)  # a thread that hangs ends with the process
        self._health_file.unlink(missing_ok=True)

    def hold(self, runs: list[Run]) -> None:
        """From now on these runs are kept, too."""
        self._held.update(runs)

    def drop(self, run: Run) -> None:
        """This run has ended."""
        run.phase = Phase.DONE
        self._held.discard(run)

    @property
    def _runs(self) -> list[Run]:
        return list(self._held)

    def claim_failed(self) -> None:
        """A claim raised: it may have succeeded all the same, or still be on its way."""
        self._housekeeping.claim_failed()

    @property
    def listening_on(self) -> list[int]:
        """The descriptor on which notifications arrive: the main thread, too, may wait for it to be readable."""
        conn = self._listening_on
        try:
            return [conn.fileno()] if conn is not None and self._listens_to is not None else []
        except psycopg.Error:  # closed
            return []

    def require_alive(self) -> None:
        """After a run was lost: a thread that hangs keeps no further lease, so the process must end.

        Waits for a sign of the thread, which may be waiting for the database, for a lease at most.
        """
        self._ticked.clear()
        self._waker.wake()
        if not self._ticked.wait(timeout=max(self._rules.lease_seconds, HANG_SECONDS)):
            self._log.critical("lease thread hangs, ending the process")
            self.failed = True
            self._stopping.set()

    def polled(self) -> None:
        """The main thread has claimed, or tried to, without an error."""
        now = self._polled_at = self._contact_at = time.monotonic()
        self._housekeeping.claimed(now)

    # ---------------------------------------------------------------- the thread

    def _run(self) -> None:
        try:
            self._talk()
            while not self._closed:
                self._tick()
        except BaseException:
            self._log.critical("lease thread died", exc_info=True)
            self.failed = True
            self._health_file.unlink(missing_ok=True)
            for run in self._runs:
                run.stop(StopReason.INTERNAL)
            self._stopping.set()
            self._interrupter.press()
            self._main_waker.wake()
        finally:
            self._link.close()

    def _tick(self) -> None:
        tick = min(1.0, self._rules.lease_seconds / 8)
        conn = self._listening_on
        woken, _ = self._waker.wait(tick, *([conn.fileno()] if conn is not None and not conn.closed else []))
        if STOP_SIGNALS.intersection(woken) or (self._stopping.is_set() and self._stopping_since is None):
            self._note_stop()
        if time.monotonic() >= self._retry_at:
            self._talk()
        self._ticked.set()
        now = time.monotonic()
        for run in self._runs:
            if run.is_interruptible:
                self._watch(run, now)
        self._interrupter.guard.follow(self._runs)
        if now >= self._health_at:
            self._touch_health(now)

    def _note_stop(self) -> None:
        now = time.monotonic()
        if self._stopping_since is None:
            self._stopping_since = now
            self._log.info("stop requested", drain_seconds=self._drain_seconds)
        elif now - self._stopping_since > 1.0:  # within a second it is the same signal, seen twice
            self._drain_seconds = 0.0  # asked again: at once
        for run in self._runs:
            run.is_hurried = True
        self._stopping.set()
        self._main_waker.wake()

    def _talk(self) -> None:
        try:
            conn = self._link.open()
            if conn is not self._listening_on:
                self._listen(conn)
            self._read_notices(conn)
            self._extend(conn)
            self._settle_overdue(conn)
        except (psycopg.Error, JobQueueError) as error:
            self._log.warning("heartbeat failed", error=str(error).strip(), held=len(self._runs))
            self._metrics.heartbeat_failures.inc()
            self._link.close()
            self._retry_at = time.monotonic() + min(1.0, self._rules.lease_seconds / 16)
            return
        try:
            if self._housekeeping.keep(conn, self._runs):
                self._contact_at = time.monotonic()
        except (psycopg.Error, JobQueueError) as error:  # a sweep that fails must not cost the lease
            self._log.error("housekeeping failed", error=str(error).strip())

    def _listen(self, conn: QueueConnection) -> None:
        # Here and not on the main thread's connection, which nobody reads while a long job runs: the server would keep
        # all notifications since, and could not vacuum.
        queue.listen_cancel(conn)
        if self._listens_to is not None:
            queue.listen_ready(conn)
        self._listening_on = conn
        self._ask_since = time.monotonic()  # what was said before, nobody heard
        self._main_waker.wake()

    def _read_notices(self, conn: QueueConnection) -> None:
        for notice in conn.notifies(timeout=0):
            if notice.channel == "job_ready" and notice.payload == self._listens_to:
                self._main_waker.wake()
            elif notice.channel == "job_cancel" and notice.payload == self._worker_id:
                self._ask_since = time.monotonic()  # which of the runs is meant, the next heartbeat tells

    def _extend(self, conn: QueueConnection) -> None:
        now = time.monotonic()
        beat = self._rules.beat_seconds
        # What is just being settled is left to that statement, which locks many rows; one that settles long is not.
        runs = [
            run
            for run in self._runs
            if not run.is_locked and (run.phase is not Phase.SETTLING or now - run.phase_since >= beat)
        ]
        if not any(
            run.sent_at < self._ask_since or now - run.sent_at >= (min(1.0, beat) if run.has_progress else beat)
            for run in runs
        ):
            return
        for run in runs:
            run.sent_at = now
        kept = queue.extend(conn, runs, [run.take_progress() for run in runs])
        self._contact_at = now
        for run in runs:
            if run.id in kept:
                run.confirmed_at = now
                if kept[run.id]:
                    run.stop(StopReason.CANCELLED)
            elif run.phase is Phase.WAITING or run.is_interruptible:
                run.stop(StopReason.LOST)

    def _watch(self, run: Run, now: float) -> None:
        rules = self._rules
        if run.is_expired:
            run.stop(StopReason.LOST)
        elif now - run.started_at >= rules.longest_run_seconds:
            run.stop(StopReason.TIMEOUT)
        elif rules.stall_seconds and now - run.active_at >= rules.stall_seconds:
            run.stop(StopReason.STALLED)
        elif self._stopping_since is not None and now - self._stopping_since >= self._drain_seconds:
            run.stop(StopReason.SHUTDOWN)
        if run.stop_reason is None:
            return
        is_short = run.phase is Phase.COMPLETING and now - run.phase_since < COMPLETING_SECONDS
        if is_short and run.stop_reason is not StopReason.LOST:
            return
        if run.pressed_at is None:
            run.pressed_at = now
            self._log.info("stopping handler", job_id=str(run.id), reason=run.stop_reason.value)
        if now >= run.press_again_at:
            # Not at each tick: the signal wakes this thread, too, and a storm of them keeps a wait from ever ending.
            run.press_again_at = now + PRESS_SECONDS
            self._interrupter.press()
        if now - run.pressed_at >= STUCK_SECONDS:
            self._abandon(run)

    def _abandon(self, run: Run) -> None:
        """The main thread is in native code and cannot be reached: settle in its place and end the process."""
        self._log.error("handler stuck in native code, ending the process", job_id=str(run.id))
        with contextlib.suppress(psycopg.Error):
            for held in self._runs:
                with contextlib.suppress(JobQueueError):  # this one is lost: its neighbours in the batch are not
                    settling.settle_stopped(self._link.open(), held, held.stop_reason or StopReason.SHUTDOWN)
        self._health_file.unlink(missing_ok=True)
        os._exit(0 if self._stopping_since is not None and run.stop_reason is StopReason.SHUTDOWN else os.EX_SOFTWARE)

    def _touch_health(self, now: float) -> None:
        self._health_at = now + HEALTH_SECONDS
        busy = any(not run.is_expired for run in self._runs)
        if now - self._contact_at < CONTACT_SECONDS and (busy or now - self._polled_at < CONTACT_SECONDS):
            with contextlib.suppress(OSError):
                self._health_file.touch()
