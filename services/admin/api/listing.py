"""GET /jobs: the newest jobs that fit, a page at a time, at a bounded cost whatever the filter."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec

from services.admin.api.answers import JobPage, JobSummary
from services.admin.api.jobs import summary
from services.admin.api.operations import Answer, Call
from services.admin.api.shapes import Listing
from services.admin.pages.job_source import NEWEST, OLDEST, TOP, Place, Sought, find_jobs

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


async def list_jobs(call: Call) -> Answer:
    """A page is short, even empty, where few of the jobs that it looked at fit; its cursor goes on behind them."""
    wanted: Listing = call.parameters
    sought = Sought(
        types=wanted.type or None,
        statuses=list(wanted.status) or None,
        error_class=wanted.error_class,
        parent_id=wanted.parent_id,
        since=wanted.created_from or OLDEST,
        until=wanted.created_before or NEWEST,
    )
    async with call.database.session() as session:
        found = await find_jobs(session, sought, _place(wanted.cursor) if wanted.cursor else TOP, wanted.limit)
        rows = await session.fetch_all("api_list_rows", ids=found.ids)
    jobs = [msgspec.convert(summary(row), JobSummary) for row in rows]
    return Answer(JobPage(jobs=jobs, next_cursor=_cursor(found.next) if found.next else None))


def _cursor(place: Place) -> str:
    """Where a page ended: microseconds and id of the last job that was looked at."""
    return f"{(place.at - _EPOCH) // _MICROSECOND}-{place.id.hex}"


def _place(cursor: str) -> Place:
    """Where the page before ended."""
    microseconds, _, job_id = cursor.partition("-")
    return Place(_EPOCH + int(microseconds) * _MICROSECOND, UUID(job_id))
