"""Finds jobs for pages and API, newest first, without ever reading the whole table at once.

Sets that are small and have an index of their own (what waits or runs, a group of errors, ids that begin alike, the
children of a job) are read whole. Everything else is read by windows of a bounded number of rows, and of bytes where
texts are searched; a page that has found too little says how far it has read.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from services.admin.database import Database, Row, Session

OLDEST, NEWEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)  # what the table takes
# What one page may read: bench/admin_pages.py holds each page under 50 ms of the database's time.
SCANNED_ROWS = 20_000
SEARCHED_ROWS, SEARCHED_BYTES = 4_000, 2_000_000
SMALL_GROUP = 2_000  # a larger one is dense among the errors, whose window finds it at once
_WAITING = {"pending", "retry", "running"}


@dataclass(frozen=True)
class Sought:
    """Which jobs, as the queries of jobs.sql take it: None matches everything. `until` is not among them.

    `fingerprint` is a group of errors, `worker` a part of a name, `pattern` one of LIKE for payloads and messages,
    `lower` and `upper` the first and the last id.
    """

    types: list[str] | None = None
    statuses: list[str] | None = None
    error_class: str | None = None
    fingerprint: str | None = None
    worker: str | None = None
    pattern: str | None = None
    lower: UUID | None = None
    upper: UUID | None = None
    parent_id: UUID | None = None
    since: datetime = OLDEST
    until: datetime = NEWEST


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


async def find_jobs(session: Session | Database, sought: Sought, place: Place, limit: int) -> Found:
    """The next `limit` jobs below a place."""
    parameters: dict[str, object] = {
        **vars(sought),
        "before_at": place.at,
        "before_id": place.id,
        "limit": limit + 1,
        "scan": SEARCHED_ROWS if sought.pattern else SCANNED_ROWS,
        "scan_bytes": SEARCHED_BYTES,
        "only_errors": sought.fingerprint is not None or sought.statuses == ["error"],
    }
    small = await _small_set(session, sought)
    query = "jobs_with_text" if sought.pattern else "jobs_newest"
    if small:
        rows = await session.fetch_all("jobs_in_small_set", **parameters, small=small)
    else:
        rows = await session.fetch_all(query, **parameters)
    ids = [row["id"] for row in rows[:limit]]
    if len(rows) > limit:
        return Found(ids, after=_place(rows[limit - 1]))
    reach = None if small else await session.fetch_one(f"{query}_reach", **parameters)
    return Found(ids, searched_to=_place(reach) if reach else None)


async def each_batch(database: Database, sought: Sought, size: int) -> AsyncIterator[list[UUID]]:
    """All jobs that are sought, in batches; some may be empty. No connection is held between two of them."""
    place: Place | None = TOP
    while place is not None:
        found = await find_jobs(database, sought, place, size)
        yield found.ids
        place = found.next


async def _small_set(session: Session | Database, sought: Sought) -> str | None:
    """The set with an index of its own in which all that is sought stands; None where there is none, or a large one."""
    most = SMALL_GROUP if sought.fingerprint or sought.pattern else SCANNED_ROWS
    if sought.lower:
        small = "ids"
    elif sought.parent_id:
        small = "children"
    elif sought.fingerprint:
        small = "group"
    elif sought.statuses and set(sought.statuses) <= _WAITING:
        small = "waiting"
    else:
        return None
    rows = await session.fetch_value("jobs_small_rows", **vars(sought), small=small, most=most)
    return small if rows <= most else None


def _place(row: Row) -> Place:
    return Place(row["created_at"], row["id"])
