"""The jobs of a filter as CSV, sent while they are read: a million rows pass through a few hundred at a time."""

import csv
import io
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from services.admin.database import Database, Row
from services.admin.messages import redacted, redacted_json
from services.admin.pages.job_filter import JobFilter, read_filter
from services.admin.pages.job_source import each_batch

COLUMNS = (
    "id", "job_type", "status", "priority", "attempts", "max_attempts", "created_at", "scheduled_for", "started_at",
    "completed_at", "worker_id", "progress", "error_class", "error_msg", "unique_key", "parent_id", "payload",
)  # fmt: skip
BATCH = 1000
LONGEST_CELL = 1000
# A spreadsheet takes a cell that begins with one of these for a formula, and may run a program for it.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


async def export(request: Request) -> Response:
    """The filter's jobs, newest first, as a file."""
    wanted = read_filter(request.query_params, request.app.state.settings.zone)
    if wanted.problems:
        raise HTTPException(400)
    database: Database = request.app.state.database
    as_of = await database.fetch_value("jobs_now")
    headers = {"Content-Disposition": f'attachment; filename="jobs-{as_of:%Y%m%dT%H%M%S}.csv"'}
    return StreamingResponse(_lines(database, wanted, as_of), media_type="text/csv; charset=utf-8", headers=headers)


async def _lines(database: Database, wanted: JobFilter, as_of: datetime) -> AsyncIterator[str]:
    yield csv_line(COLUMNS)
    async for ids in each_batch(database, wanted.sought(as_of), BATCH):
        if ids:
            rows = await database.fetch_all("jobs_rows", ids=ids)
            yield "".join(csv_line([cell(row, name) for name in COLUMNS]) for row in rows)


def cell(row: Row, name: str) -> Any:
    """What stands in a column: secrets hidden, texts cut, times in UTC. A payload too large to list stays out."""
    value = row[name]
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
    if name == "payload" and value is not None:
        value = redacted_json(value)
    elif name == "error_msg" and value is not None:
        value = redacted(value)
    return value[:LONGEST_CELL] if isinstance(value, str) else value


def csv_line(cells: Any) -> str:
    """A line of CSV. A text that a spreadsheet would calculate gets an apostrophe in front."""
    out = io.StringIO()
    csv.writer(out).writerow([_harmless(item) for item in cells])
    return out.getvalue()


def _harmless(item: Any) -> Any:
    if isinstance(item, str) and item.startswith(_FORMULA):
        return f"'{item}"
    return item


routes = [Route("/jobs/export.csv", export, name="jobs_export")]
