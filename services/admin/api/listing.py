"""GET /jobs: the newest jobs that fit, a page at a time, at a bounded cost whatever the filter."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec

from services.admin.api.answers import JobPage, JobSummary
from services.admin.api.jobs import summary
from services.admin.api.operations import Answer, Call
from services.admin.api.shapes import Listing
from services.admin.database import Row, Session

LOOKED_AT = 20_000  # jobs that one page looks at: some 10 ms in a table of a million
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_UNFINISHED = frozenset(("pending", "retry", "running"))

Place = dict[str, object]


async def list_jobs(call: Call) -> Answer:
    """A page is short, even empty, where few of the jobs that it looked at fit; its cursor goes on behind them."""
    wanted: Listing = call.parameters
    before_at, before_id = _place(wanted.cursor) if wanted.cursor else (None, None)
    place: Place = {
        "created_from": wanted.created_from,
        "created_before": wanted.created_before,
        "before_at": before_at,
        "before_id": before_id,
    }
    async with call.database.session() as session:
        ids, reach = await _look(session, wanted, place)
        rows = await session.fetch_all("api_list_rows", ids=ids[: wanted.limit])
    last = rows[-1] if len(ids) > wanted.limit else reach
    jobs = [msgspec.convert(summary(row), JobSummary) for row in rows]
    return Answer(JobPage(jobs=jobs, next_cursor=_cursor(last) if last else None))


async def _look(session: Session, wanted: Listing, place: Place) -> tuple[list[UUID], Row | None]:
    """One id more than fits on the page, if there is one; and how far was looked, if not to the end."""
    filters: Place = {
        "types": wanted.type or None,
        "statuses": wanted.status or None,
        "error_class": wanted.error_class,
        "limit": wanted.limit + 1,
        **place,
    }
    if wanted.parent_id:
        return _ids(await session.fetch_all("api_list_children", parent_id=wanted.parent_id, **filters)), None
    if wanted.status and _UNFINISHED.issuperset(wanted.status):
        count = await session.fetch_value("api_count_unfinished", types=wanted.type or None, looked_at=LOOKED_AT)
        if count <= LOOKED_AT:
            return _ids(await session.fetch_all("api_list_unfinished", **filters)), None
    looking: Place = {"only_errors": wanted.status == ["error"], "looked_at": LOOKED_AT}
    ids = _ids(await session.fetch_all("api_list_newest", **looking, **filters))
    reach = None if len(ids) > wanted.limit else await session.fetch_one("api_list_reach", **looking, **place)
    return ids, reach


def _ids(rows: list[Row]) -> list[UUID]:
    return [row["id"] for row in rows]


def _cursor(row: Row) -> str:
    """Where a page ended: microseconds and id of its last job."""
    return f"{(row['created_at'] - _EPOCH) // _MICROSECOND}-{row['id'].hex}"


def _place(cursor: str) -> tuple[datetime, UUID]:
    """Where the page before ended."""
    microseconds, _, job_id = cursor.partition("-")
    return _EPOCH + int(microseconds) * _MICROSECOND, UUID(job_id)
