"""Finds the jobs of a filter, newest first, without ever reading the whole table at once.

Sets that are small and have an index of their own (what waits or runs, a group of errors, ids that begin alike) are
read whole. Everything else is read by windows of a bounded number of rows, and of bytes where texts are searched; a
page that has found too little says how far it has read.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from services.admin.database import Database, Row, Session
from services.admin.pages.job_filter import NEWEST, JobFilter

# What one page may read: bench/admin_pages.py holds each page under 50 ms of the database's time.
SCANNED_ROWS = 20_000
SEARCHED_ROWS, SEARCHED_BYTES = 4_000, 2_000_000
SMALL_GROUP = 2_000  # a larger one is dense among the errors, whose window finds it at once
_WAITING = {"pending", "retry", "running"}


@dataclass(frozen=True)
class Place:
    """A place in a list, newest first: what comes after it is older."""

    at: datetime
    id: UUID

    def __str__(self) -> str:
        return f"{self.at.isoformat()}_{self.id}"

    @classmethod
    def read(cls, text: str) -> "Place | None":
        """From a query string; None where it is no place."""
        at, _, job_id = text.partition("_")
        try:
            place = cls(datetime.fromisoformat(at), UUID(job_id))
        except ValueError:
            return None
        return place if place.at.tzinfo and place.at <= NEWEST else None


TOP = Place(NEWEST, UUID(int=2**128 - 1))


@dataclass(frozen=True)
class Found:
    """Ids of a page. `after`: where the next page begins, None at the end. `searched_to`: the page is not full, and
    older rows have not been looked at."""

    ids: list[UUID]
    after: Place | None = None
    searched_to: Place | None = None

    @property
    def next(self) -> Place | None:
        return self.after or self.searched_to


async def find_jobs(
    session: Session | Database, wanted: JobFilter, place: Place, limit: int, *, as_of: datetime | None = None
) -> Found:
    """The next `limit` jobs below a place."""
    if wanted.problems:
        return Found([])
    only_errors = wanted.is_group or set(wanted.statuses) == {"error"}
    parameters: dict[str, object] = {
        **wanted.parameters(as_of),
        "before_at": place.at,
        "before_id": place.id,
        "limit": limit + 1,
        "scan": SEARCHED_ROWS if wanted.text else SCANNED_ROWS,
        "scan_bytes": SEARCHED_BYTES,
        "small_rows": SMALL_GROUP if wanted.is_group or wanted.text else SCANNED_ROWS,
        "only_errors": only_errors,
    }
    small = await _small_set(session, wanted, parameters)
    query = "jobs_with_text" if wanted.text else "jobs_newest"
    if small:
        rows = await session.fetch_all("jobs_in_small_set", **parameters, small=small)
    else:
        rows = await session.fetch_all(query, **parameters)
    ids = [row["id"] for row in rows[:limit]]
    if len(rows) > limit:
        return Found(ids, after=_place(rows[limit - 1]))
    reach = None if small else await session.fetch_one(f"{query}_reach", **parameters)
    return Found(ids, searched_to=_place(reach) if reach else None)


async def each_batch(
    database: Database, wanted: JobFilter, size: int, *, as_of: datetime | None = None
) -> AsyncIterator[list[UUID]]:
    """All jobs of a filter, in batches; some may be empty. No connection is held between two of them."""
    place: Place | None = TOP
    while place is not None:
        found = await find_jobs(database, wanted, place, size, as_of=as_of)
        yield found.ids
        place = found.next


async def _small_set(session: Session | Database, wanted: JobFilter, parameters: dict[str, object]) -> str | None:
    if wanted.id_prefix:
        small = "ids"
    elif wanted.is_group:
        small = "group"
    elif wanted.statuses and set(wanted.statuses) <= _WAITING:
        small = "waiting"
    else:
        return None
    rows = await session.fetch_value("jobs_small_rows", **parameters, small=small)
    return small if rows <= parameters["small_rows"] else None


def _place(row: Row) -> Place:
    return Place(row["created_at"], row["id"])
