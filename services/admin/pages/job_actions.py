"""What a person does to one job. Each action is a function of the database that looks at the status itself.

The form says which status the person saw: a second click, or one that comes too late, is told so and does nothing.
"""

import json
from typing import Any
from uuid import UUID, uuid4

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from services.admin.access.accounts import operator_only
from services.admin.database import Row
from services.admin.messages import first_line
from services.admin.pages.form_values import LONGEST_REASON, SMALLINT, id_of, text_of, whole_number
from services.admin.pages.payload_edit import edited_payload, shown_for_edit
from services.admin.rendering import redirect, render
from sidelinja_jobs.cli.exits import RefusedError as TypedError
from sidelinja_jobs.cli.payloads import parsed
from sidelinja_jobs.cli.schemas import problems
from sidelinja_jobs.errors import RefusedError

MOST_EDITED_BYTES = 12_000_000
MOST_PROBLEMS = 10


async def retry(request: Request) -> Response:
    """Runs a failed job anew, or a waiting one now."""
    return await _act(request, "retry_job", "jobs.job_")


async def cancel(request: Request) -> Response:
    """Ends a waiting job, or asks a running one to stop."""
    async with request.form() as form:
        reason = text_of(form, "reason", LONGEST_REASON) or None
    return await _act(request, "cancel_job", "jobs.job_cancel_", reason=reason)


@operator_only
async def ask_cancel(request: Request) -> Response:
    """The question before a cancel."""
    job = await _job(request)
    if job["status"] in ("completed", "error"):
        return redirect(request, "job", id=job["id"], notice="jobs.too_late", values={"status": job["status"]})
    return render(request, "jobs/cancel.html", job=job)


async def priority(request: Request) -> Response:
    """Moves a waiting job before or behind others."""
    job_id: UUID = request.path_params["id"]
    async with request.form() as form:
        wanted = whole_number(text_of(form, "priority").strip(), SMALLINT)
    if wanted is None:
        return redirect(request, "job", id=job_id, notice="jobs.bad_priority")
    return await _act(request, "change_priority", "jobs.job_priority", priority=wanted)


async def again(request: Request) -> Response:
    """A new job with the payload of one that has ended; the old one stays as it is."""
    job = await _job(request)
    async with request.form() as form:
        request_id = id_of(form)
    whole = await request.app.state.database.fetch_one("job_text", id=job["id"], part="payload")
    made = await enqueue(request, job["job_type"], whole["text"], request_id, origin=job)
    return redirect(request, "job", id=made["id"], notice=f"jobs.made_{made['outcome']}")


@operator_only
async def edit(request: Request) -> Response:
    """The form of a payload to change."""
    job = await _job(request)
    if job["payload_bytes"] > MOST_EDITED_BYTES:
        raise HTTPException(413)
    whole = await request.app.state.database.fetch_one("job_text", id=job["id"], part="payload")
    return _edit_form(request, job, shown_for_edit(whole["text"]), [])


async def resubmit(request: Request) -> Response:
    """A new job with a changed payload; it names the old one as its origin."""
    job = await _job(request)
    async with request.form(max_part_size=MOST_EDITED_BYTES) as form:
        text, request_id = text_of(form, "payload"), id_of(form)
    database = request.app.state.database
    whole = await database.fetch_one("job_text", id=job["id"], part="payload")
    facts = await database.fetch_one("job_type_facts", job_type=job["job_type"])
    try:
        payload = edited_payload(text, whole["text"])
        told = _schema_problems(payload, facts)
        if told:
            return _edit_form(request, job, text, told[:MOST_PROBLEMS], status_code=422)
        made = await enqueue(request, job["job_type"], payload, request_id, origin=job)
    except TypedError as error:
        return _edit_form(request, job, text, [error.message], status_code=422)
    except RefusedError as error:
        return _edit_form(request, job, text, [str(error)], status_code=422)
    except RecursionError:
        return _edit_form(request, job, text, ["the payload is nested too deeply"], status_code=422)
    return redirect(request, "job", id=made["id"], notice=f"jobs.made_{made['outcome']}")


async def enqueue(
    request: Request, job_type: str, payload: str, request_id: UUID, *, origin: Row | None = None, **given: Any
) -> Row:
    """One job for one form that was sent, however often it is sent. `given`: more of enqueue_once, as in job.sql."""
    values: dict[str, Any] = {
        "priority": origin["priority"] if origin else 0,
        "max_attempts": origin["max_attempts"] if origin else 3,
        "scheduled_for": None,
        "unique_key": None,
        "parent_id": origin["parent_id"] if origin else None,
        "origin_id": origin["id"] if origin else None,
    }
    async with request.app.state.database.acting_as(request.state.account.name) as session:
        made: Row = await session.fetch_one(
            "job_enqueue", request_id=request_id, job_type=job_type, payload=payload, **(values | given)
        )
    return made


async def _act(request: Request, query: str, prefix: str, **values: Any) -> Response:
    """One action, and back to the job with what came of it."""
    job_id: UUID = request.path_params["id"]
    async with request.form() as form:
        seen = text_of(form, "seen")
    job = await _job(request)
    if seen and seen != job["status"]:
        return redirect(request, "job", id=job_id, notice="jobs.too_late", values={"status": job["status"]})
    try:
        async with request.app.state.database.acting_as(request.state.account.name) as session:
            outcome = await session.fetch_value(query, id=job_id, **values)
    except RefusedError as error:
        return redirect(request, "job", id=job_id, notice="jobs.refused", values={"why": first_line(str(error), 300)})
    notice = prefix + outcome if isinstance(outcome, str) else prefix
    told = {"before": outcome, "after": values["priority"]} if query == "change_priority" else {}
    return redirect(request, "job", id=job_id, notice=notice, values=told)


async def _job(request: Request) -> Row:
    job = await request.app.state.database.fetch_one("job", id=request.path_params["id"], most_bytes=0)
    if job is None:
        raise HTTPException(404)
    row: Row = job
    return row


def _edit_form(request: Request, job: Row, text: str, problems: list[str], *, status_code: int = 200) -> Response:
    return render(
        request, "jobs/edit.html", status_code=status_code, job=job, text=text, problems=problems, request_id=uuid4()
    )


def _schema_problems(payload: str, facts: Row | None) -> list[str]:
    """What the type's schema refuses; nothing where the type has published none."""
    if facts is None or facts["payload_schema"] is None:
        return []
    return problems(parsed(payload), json.loads(facts["payload_schema"]))


routes = [
    Route("/jobs/{id:uuid}/retry", retry, name="job_retry", methods=["POST"]),
    Route("/jobs/{id:uuid}/cancel", ask_cancel, name="job_ask_cancel"),
    Route("/jobs/{id:uuid}/cancel", cancel, name="job_cancel", methods=["POST"]),
    Route("/jobs/{id:uuid}/priority", priority, name="job_priority", methods=["POST"]),
    Route("/jobs/{id:uuid}/again", again, name="job_again", methods=["POST"]),
    Route("/jobs/{id:uuid}/edit", edit, name="job_edit"),
    Route("/jobs/{id:uuid}/edit", resubmit, name="job_resubmit", methods=["POST"]),
]
