"""A run that this process holds: what the main thread and the lease thread both know of it.

Each field has one writer at a time; the lock covers the progress, which both touch.
"""

import math
import threading
import time
from enum import Enum, auto
from uuid import UUID

from sidelinja_jobs.errors import StopReason
from sidelinja_jobs.models import Claim, Rules


class Phase(Enum):
    """Where the main thread is with the run."""

    WAITING = auto()  # claimed in a batch, its turn has not come
    HANDLING = auto()  # the handler runs: may be interrupted
    COMPLETING = auto()  # the handler's last writes run: may be interrupted, when they take long
    SETTLING = auto()  # the end is being written: the fence decides
    DONE = auto()


class Run:
    """A claimed job, its lease and its signs of life. Times are of the monotonic clock, in seconds."""

    _lock = threading.Lock()  # one for all: it is held for the blink of an eye, and a batch makes many runs
    phase = Phase.WAITING
    stop_reason: StopReason | None = None
    pressed_at: float | None = None  # since when the handler is being interrupted
    press_again_at = 0.0
    is_hurried = False  # the worker was asked to stop
    is_locked = False  # its row, by an open transaction of the main thread: nobody takes it, and a heartbeat would wait
    interrupt_again_at = 0.0
    _progress: tuple[float | None, str | None] = (None, None)

    def __init__(self, claim: Claim, job_type: str, rules: Rules, claimed_at: float) -> None:
        self.claim = claim
        self.job_type = job_type
        self.rules = rules
        self.claimed_at = claimed_at
        self.confirmed_at = claimed_at  # when the last heartbeat that succeeded was sent
        self.sent_at = claimed_at  # when the last heartbeat was sent
        self.active_at = claimed_at  # last sign of life of the handler
        self.phase_since = claimed_at
        self.started_at = claimed_at  # of the handler, which in a batch may begin long after the claim

    @property
    def id(self) -> UUID:
        return self.claim.id

    @property
    def lease_token(self) -> UUID:
        return self.claim.lease_token

    @property
    def deadline(self) -> float:
        """From here on the lease may run out before the handler has stopped."""
        return self.confirmed_at + self.rules.lease_seconds - self.rules.margin_seconds

    @property
    def is_expired(self) -> bool:
        return time.monotonic() >= self.deadline

    def enter(self, phase: Phase) -> None:
        """The main thread goes on to another phase."""
        self.phase, self.phase_since = phase, time.monotonic()
        if phase is Phase.HANDLING:
            self.started_at = self.active_at = self.phase_since

    @property
    def is_interruptible(self) -> bool:
        return self.phase in (Phase.HANDLING, Phase.COMPLETING)

    def stop(self, reason: StopReason) -> None:
        """Asks the handler to stop. The first reason stays, but a lost lease overrides any other."""
        if self.stop_reason is None or reason is StopReason.LOST:
            self.stop_reason = reason

    def report(self, fraction: float | None, note: str | None) -> None:
        """Progress of the handler, to be sent with the next heartbeat.

        Raises:
            TypeError, ValueError: no number or no text; told here, where the handler can see it.
        """
        share = None if fraction is None else float(fraction)
        if note is not None and not isinstance(note, str):
            raise TypeError(f"progress note is a {type(note).__name__}, expected a str")
        if share is not None:
            share = None if math.isnan(share) else min(max(share, 0.0), 1.0)
        with self._lock:
            self.active_at = time.monotonic()
            before = self._progress
            self._progress = (before[0] if share is None else share, before[1] if note is None else note)

    def take_progress(self) -> tuple[float | None, str | None]:
        """The progress that was not sent yet."""
        with self._lock:
            progress, self._progress = self._progress, (None, None)
        return progress

    @property
    def has_progress(self) -> bool:
        return self._progress != (None, None)
