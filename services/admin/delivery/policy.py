"""What becomes of an event after a try: when it is tried again, and when it is given up."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from services.admin.delivery.batch import Tried
from services.admin.delivery.events import Event
from services.admin.delivery.settings import DeliverySettings
from services.admin.delivery.store import Result
from services.admin.delivery.verdicts import Kind, Verdict

JITTER = 0.2  # up to this share is added to a wait, so that many events do not come back at once
LONGEST_PAUSE_SECONDS = 60.0  # so long after it is back, at most, a receiver that was down gets its events


@dataclass(frozen=True)
class Policy:
    """The waits after the first, second, … failed try; the last goes for all that follow."""

    waits_seconds: tuple[float, ...]
    give_up_seconds: float

    @classmethod
    def from_settings(cls, settings: DeliverySettings) -> "Policy":
        return cls(settings.waits_seconds, settings.give_up_seconds)

    def result(self, event: Event, tried: Tried | None) -> Result:
        """What is to be recorded of an event, sent or not."""
        if not event.is_wanted:
            return Result(event, "skipped")
        if tried is None:
            return Result(event, "waiting")
        verdict = tried.verdict
        match verdict.kind:
            case Kind.DELIVERED:
                return Result(event, "delivered")
            case Kind.HOLD | Kind.DISABLE:
                return Result(event, "waiting")
            case Kind.RETRY if not self._is_given_up(event, verdict):
                return Result(event, "failed", self._wait_seconds(event), verdict.message)
        return Result(event, "parked", error=f"given up at try {event.tries + 1}: {verdict.message}")

    def pause_seconds(self, pauses_before: int) -> float:
        """How long the whole sink waits when its receiver seems to be down: doubles with each pause."""
        return min(self.waits_seconds[0] * 2.0 ** min(pauses_before, 10), LONGEST_PAUSE_SECONDS)

    def _is_given_up(self, event: Event, verdict: Verdict) -> bool:
        if verdict.most_tries is not None and event.tries + 1 >= verdict.most_tries:
            return True
        return event.age_seconds >= self.give_up_seconds and event.tries > 0

    def _wait_seconds(self, event: Event) -> float:
        wait = self.waits_seconds[min(event.tries, len(self.waits_seconds) - 1)]
        return wait * (1 + JITTER * random.random())  # noqa: S311


def sendable(events: Sequence[Event]) -> list[Event]:
    """Those that may be sent now."""
    return [event for event in events if event.is_wanted and not event.is_held]


def probe(events: Sequence[Event]) -> tuple[list[Event], list[Event]]:
    """What to ask a receiver with that seems to be down: one retried event, and the first new one that may be sent.

    `events` are in the order of the cursor. Returns those that are passed by it, and of these the ones to be sent.
    """
    retried, new = ([event for event in events if event.is_new is is_new] for is_new in (False, True))
    # The one that was tried least: else one job's trouble would be asked for again and again, and stand for all.
    retried.sort(key=lambda event: event.tries)
    for count, event in enumerate(new, start=1):
        # One that would overtake an earlier event of its job, which stands behind it and stays there, waits.
        overtakes = any(left.job_id == event.job_id and left.event_id < event.event_id for left in new[count:])
        if sendable([event]) and not overtakes:
            return [*retried[:1], *new[:count]], [*sendable(retried[:1]), event]
    return [*retried[:1], *new], sendable(retried[:1])
