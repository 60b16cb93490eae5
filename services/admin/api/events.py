"""GET /events: the changes of all jobs since a cursor, none left out.

A cursor is the epoch of the database, the transaction of an event and its id. It stays behind the oldest transaction
that still runs, since that one may yet commit an event that a cursor beyond it would never meet. Within one job the
order of changes is that of `id`: a page has them so, and a receiver that keeps the highest id of each job knows what
is old.
"""

from dataclasses import dataclass
from typing import Any

import msgspec

from services.admin.api.answers import Event, EventPage
from services.admin.api.operations import Answer, Call
from services.admin.api.problems import ProblemError
from services.admin.api.shapes import EventsAfter
from services.admin.database import Database, Row

END = "end"
_LEAST_LOOKED_AT = 2000  # events that a filter may pass over in one look
_COLUMNS = frozenset(Event.__struct_fields__)


@dataclass(frozen=True)
class Look:
    """What one look at the events found, and where the next one goes on."""

    events: list[Event]
    next_cursor: str
    has_more: bool


async def list_events(call: Call) -> Answer:
    """A page of changes."""
    look = await read_events(call.database, call.parameters)
    return Answer(EventPage(events=look.events, next_cursor=look.next_cursor, has_more=look.has_more))


async def read_events(database: Database, wanted: EventsAfter) -> Look:
    """The changes after a cursor, at most `limit`.

    Raises:
        ProblemError: the database was restored since the cursor was given.
    """
    if wanted.after == END:
        (now,) = await database.fetch_all("api_horizon")
        return Look([], f"{now['epoch']}-{now['xid']}-0", has_more=False)
    epoch, xid, event_id = (wanted.after or "-0-0").split("-")
    looked_at = max(wanted.limit, _LEAST_LOOKED_AT) if wanted.type else wanted.limit
    rows = await database.fetch_all(
        "api_events", xid=xid, id=int(event_id), types=wanted.type, limit=wanted.limit, looked_at=looked_at
    )
    if epoch and epoch != rows[0]["epoch"]:
        raise ProblemError(
            "cursor_expired",
            "the cursor is of a database that was restored from a backup since: ids and cursors began anew",
            "leave `after` out to read all events again, or begin with after=end",
        )
    kept = [row for row in rows if row["id"] is not None]
    events = [msgspec.convert({name: row[name] for name in _COLUMNS}, Event) for row in kept]
    return Look(in_order_of_each_job(events), *_next(rows[0], kept, wanted, looked_at))


def in_order_of_each_job(events: list[Event]) -> list[Event]:
    """The same events; those of one job stand in the order in which they happened, at the places that they had."""
    waiting: dict[Any, list[Event]] = {}
    for event in events:
        waiting.setdefault(event.job_id, []).append(event)
    for of_job in waiting.values():
        of_job.sort(key=lambda event: -event.id)
    return [waiting[event.job_id].pop() for event in events]


def _next(facts: Row, kept: list[Row], wanted: EventsAfter, looked_at: int) -> tuple[str, bool]:
    """The cursor of the next page, and whether it may have something already."""
    if len(kept) == wanted.limit:
        place, has_more = kept[-1]["cursor"], True
    elif facts["seen"] == looked_at:
        place, has_more = facts["seen_to"], True
    else:
        place, has_more = f"{facts['horizon']}-0", False
    return f"{facts['epoch']}-{place}", has_more
