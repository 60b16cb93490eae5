"""The life of a job in steps, from its events, with the time that passed in each."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from services.admin.database import Row
from services.admin.pages.job_line import between

_ENDED = ("completed", "error")


@dataclass(frozen=True)
class Step:
    """A status that the job came into. `seconds`: how long it stayed, None once it has ended; never negative."""

    at: datetime
    status: str
    before: str | None
    actor: str
    worker_id: str | None
    error_class: str | None
    attempts: int
    seconds: float | None
    is_last: bool


def timeline(events: Sequence[Row], now: datetime) -> list[Step]:
    """The steps in the order in which they were recorded, whatever the clocks said; the last goes on until now."""
    ordered = sorted(events, key=lambda event: int(event["id"]))
    steps = []
    for number, event in enumerate(ordered):
        is_last = number == len(ordered) - 1
        end = now if is_last else ordered[number + 1]["at"]
        has_ended = is_last and event["new_status"] in _ENDED
        steps.append(
            Step(
                at=event["at"],
                status=event["new_status"],
                before=event["old_status"],
                actor=event["actor"],
                worker_id=event["worker_id"],
                error_class=event["error_class"],
                attempts=event["attempts"],
                seconds=None if has_ended else between(event["at"], end),
                is_last=is_last,
            )
        )
    return steps
