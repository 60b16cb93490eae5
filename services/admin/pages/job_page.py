"""One job: all that is known of it."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import anyio
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from services.admin.database import Row
from services.admin.messages import redacted
from services.admin.pages.job_line import attempt_number, between, seconds_left, still_seconds
from services.admin.pages.job_reasons import sentence
from services.admin.pages.job_timeline import timeline
from services.admin.rendering import render, speech
from services.admin.views import View, view_of
from services.admin.views.json_tree import pretty
from sidelinja_jobs.redaction import redact_json

# Stored bytes, which are compressed: of more than these nothing is read for the page.
MOST_READ_BYTES = 400_000
MOST_SHOWN = 20_000  # characters of a payload on the page; the download has all
MOST_INLINE = 60_000  # characters of a result that is shown here and not on a page of its own
SHOWN_EVENTS, SHOWN_ATTEMPTS, SHOWN_RELATIVES = 200, 50, 50
_OWN_PAGE = ("transcript", "clip")


@dataclass(frozen=True)
class Shown:
    """A JSON text as the page shows it: `text` None where it is too large to read."""

    text: str | None
    is_cut: bool
    stored_bytes: int


async def job_page(request: Request) -> Response:
    """The page of a job."""
    job_id: UUID = request.path_params["id"]
    async with request.app.state.database.session() as session:
        job = await session.fetch_one("job", id=job_id, most_bytes=MOST_READ_BYTES)
        if job is None:
            raise HTTPException(404)
        reasons = await session.fetch_all("job_reasons", id=job_id)
        attempts = await session.fetch_all("job_attempts", id=job_id, limit=SHOWN_ATTEMPTS)
        events = await session.fetch_all("job_events", id=job_id, limit=SHOWN_EVENTS)
        relatives = await session.fetch_all("job_relatives", id=job_id, limit=SHOWN_RELATIVES)
    says = speech(request)
    return render(
        request,
        "jobs/job.html",
        job=job,
        attempt=attempt_number(job),
        seconds_left=seconds_left(job),
        still_seconds=still_seconds(job),
        reasons=[sentence(row["reason"], row["detail"], says) for row in reasons],
        payload=shown_json(job["payload"], job["payload_bytes"]),
        result=inline_view(job),
        attempts=[_attempt(row) for row in attempts],
        error=_error(job, attempts),
        steps=timeline(events, job["read_at"]),
        children=[row for row in relatives if row["kind"] == "child"],
        copies=[row for row in relatives if row["kind"] == "copy"],
        request_id=uuid4(),
    )


async def job_text(request: Request) -> Response:
    """A payload or a result as a file; secrets are hidden in it, too."""
    job_id, part = request.path_params["id"], request.path_params["part"]
    if part not in ("payload", "result"):
        raise HTTPException(404)
    row = await request.app.state.database.fetch_one("job_text", id=job_id, part=part)
    if row is None or row["text"] is None:
        raise HTTPException(404)
    headers = {"Content-Disposition": f'attachment; filename="{part}-{str(job_id)[:8]}.json"'}
    text = await anyio.to_thread.run_sync(redact_json, row["text"])
    return Response(text, media_type="application/json", headers=headers)


async def result_page(request: Request) -> Response:
    """A result on a page of its own."""
    job_id: UUID = request.path_params["id"]
    database = request.app.state.database
    job = await database.fetch_one("job", id=job_id, most_bytes=2**31)
    if job is None or job["result"] is None:
        raise HTTPException(404)
    # Megabytes take a while, and other pages are served meanwhile.
    view = await anyio.to_thread.run_sync(view_of, job["job_type"], job["result"])
    return render(request, "jobs/result.html", job=job, view=view)


def shown_json(text: str | None, stored_bytes: int | None) -> Shown:
    """A JSON text made readable, without secrets, and cut."""
    if text is None:
        return Shown(None, True, stored_bytes or 0)
    whole = pretty(redact_json(text))
    return Shown(whole[:MOST_SHOWN], len(whole) > MOST_SHOWN, stored_bytes or 0)


def inline_view(job: Row) -> View | None:
    """The view of a result that is small enough to stand on the job's page; kind `link` where it is not."""
    if job["result_bytes"] is None:
        return None
    if job["result"] is None or len(job["result"]) > MOST_INLINE:
        return View("link", None)
    view = view_of(job["job_type"], job["result"])
    return View("link", view.content) if view.kind in _OWN_PAGE else view


def _attempt(row: Row) -> dict[str, Any]:
    return row | {
        "error_msg": redacted(row["error_msg"]),
        "traceback": redacted(row["traceback"]),
        "seconds": between(row["started_at"], row["ended_at"]) if row["started_at"] else None,
    }


def _error(job: Row, attempts: list[Row]) -> dict[str, Any] | None:
    """The failure that the job stands with: its first line is the cause, the rest and the traceback fold out."""
    if not job["error_msg"] and not job["error_class"]:
        return None
    cause, _, rest = redacted(job["error_msg"]).strip().partition("\n")
    last = next((row for row in attempts if row["traceback"]), None)
    is_its_own = last is not None and last["error_msg"] is not None and job["error_msg"] is not None
    is_its_own = is_its_own and last["error_msg"][:200] == job["error_msg"][:200]  # type: ignore[index]
    return {
        "class": job["error_class"],
        "cause": cause,
        "rest": rest.strip(),
        "traceback": redacted(last["traceback"]) if last and is_its_own else "",
    }


routes = [
    Route("/jobs/{id:uuid}", job_page, name="job"),
    Route("/jobs/{id:uuid}/result", result_page, name="job_result"),
    Route("/jobs/{id:uuid}/download/{part}", job_text, name="job_text"),
]
