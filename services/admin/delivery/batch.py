"""Sends a batch of events: jobs beside each other, the events of one job one after the other.

The first event of a job that is not delivered ends that job's turn; what follows waits. So do all others once the
receiver seems to be down, when the batch takes too long, or when it is stopped.
"""

import math
import queue
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from uuid import UUID

from services.admin.delivery.events import Event
from services.admin.delivery.lane import CutOffError, Lane, UnansweredError
from services.admin.delivery.sinks import Sink
from services.admin.delivery.verdicts import Kind, Verdict
from sidelinja_jobs.log import get_logger

LANES = 8
TICK_SECONDS = 0.1
BATCH_SECONDS = 20.0  # then what was not begun waits, so that what was done gets recorded
LEFTOVER_SECONDS = 1.0  # for a thread that was cut off to end; one that looks a name up does not hear of it
DOWN_AFTER_JOBS = 3  # so many jobs in a row whose events failed, with nothing delivered between

log = get_logger()


@dataclass(frozen=True)
class Tried:
    """What came of an event that was sent."""

    verdict: Verdict
    seconds: float


class Batch:
    """What is sent in one go. `failing` are the jobs that failed since something was last delivered."""

    def __init__(self, sink: Sink, epoch: UUID, events: Iterable[Event], failing: frozenset[UUID]) -> None:
        self._sink, self._epoch = sink, epoch
        self.tried: dict[int, Tried] = {}  # by the event's id
        self.failing = set(failing)
        self.has_delivered = False
        self.halt = threading.Event()  # nothing more is begun
        self._lock = threading.Lock()
        self._jobs: queue.SimpleQueue[list[Event]] = queue.SimpleQueue()
        jobs: dict[UUID, list[Event]] = {}
        for event in sorted(events, key=lambda one: one.event_id):
            jobs.setdefault(event.job_id, []).append(event)
        for of_job in jobs.values():
            self._jobs.put(of_job)
        self.lanes_needed = min(len(jobs), LANES)

    @property
    def is_down(self) -> bool:
        """Whether the receiver seems to be down, and not single events to be trouble."""
        return len(self.failing) >= DOWN_AFTER_JOBS

    def work(self, lane: Lane) -> None:
        """Takes job after job; run by each lane's thread."""
        while not self.halt.is_set():
            try:
                of_job = self._jobs.get_nowait()
            except queue.Empty:
                return
            for event in of_job:
                if self.halt.is_set() or not self._is_sent(lane, event):
                    break

    def _is_sent(self, lane: Lane, event: Event) -> bool:
        started = time.monotonic()
        try:
            verdict = self._sink.judge(lane.post(self._sink.request(event, self._epoch)))
        except CutOffError:
            return False
        except UnansweredError as error:
            verdict = Verdict(Kind.RETRY, str(error))
        except Exception as error:  # the edge of the thread: one event that trips it must not stop all others
            log.exception("event could not be sent", sink=self._sink.name, event_id=event.event_id)
            verdict = Verdict(Kind.RETRY, f"a fault in the forwarder: {type(error).__name__}")
        with self._lock:
            self.tried[event.event_id] = Tried(verdict, time.monotonic() - started)
            self._note(event, verdict)
        return verdict.kind is Kind.DELIVERED

    def _note(self, event: Event, verdict: Verdict) -> None:
        if verdict.is_receivers_trouble:
            self.failing.add(event.job_id)
        else:
            self.failing.clear()
            self.has_delivered |= verdict.kind is Kind.DELIVERED
        if self.is_down or verdict.kind in (Kind.HOLD, Kind.DISABLE) or verdict.retry_after_seconds:
            self.halt.set()


class Crew:
    """The lanes of a sink with their threads, which live as long as a batch."""

    def __init__(self, sink: Sink, try_seconds: float) -> None:
        self._lanes = [Lane(sink.url, try_seconds) for _ in range(LANES)]

    def send(self, batch: Batch, end_within: Callable[[], float | None]) -> None:
        """Sends a batch.

        `end_within` is asked all the while; None means: go on. Once it names a number of seconds, nothing more is
        begun, and what has not ended by then is cut off: whether that arrived is unknown. The crew is of no use after.
        """
        lanes = self._lanes[: batch.lanes_needed]
        threads = [threading.Thread(target=batch.work, args=(lane,), daemon=True) for lane in lanes]
        for thread in threads:
            thread.start()
        halt_at, cut_at = time.monotonic() + BATCH_SECONDS, math.inf
        while alive := [thread for thread in threads if thread.is_alive()]:
            now = time.monotonic()
            if now >= halt_at:
                batch.halt.set()
            if cut_at == math.inf and (seconds := end_within()) is not None:
                batch.halt.set()
                cut_at = now + seconds
            if now >= cut_at + LEFTOVER_SECONDS:
                return
            for lane in lanes:
                lane.expire(now)
                if now >= cut_at:
                    lane.stop()
            alive[0].join(TICK_SECONDS)

    def close(self) -> None:
        for lane in self._lanes:
            lane.close()
