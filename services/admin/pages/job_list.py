"""The list of jobs, and what is done to those that are ticked in it."""

from collections.abc import Mapping
from urllib.parse import urlencode
from uuid import UUID

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from services.admin.access.origin import leads_inside
from services.admin.pages.form_values import LONGEST_REASON, text_of
from services.admin.pages.job_filter import STATUSES, JobFilter, id_range, read_filter
from services.admin.pages.job_line import job_line
from services.admin.pages.job_source import TOP, Found, Place, find_jobs
from services.admin.rendering import redirect, render

SHOWN_JOBS = 50
MOST_TICKED = 1000
# What an action may be done to, and what it is done to where the filter says nothing.
MAY = {"retry": ("error", "retry", "pending"), "cancel": ("pending", "running", "retry")}
MEANS = {"retry": ("error",), "cancel": ("pending", "running", "retry")}


async def jobs(request: Request) -> Response:
    """Jobs of a filter, newest first."""
    database = request.app.state.database
    wanted = read_filter(request.query_params, request.app.state.settings.zone)
    before = request.query_params.get("before", "")
    place = Place.read(before) if before else TOP
    if place is None:
        raise HTTPException(400)
    async with database.session() as session:
        if wanted.id_prefix and wanted.pairs() == [("id", wanted.id_prefix)]:
            lower, upper = id_range(wanted.id_prefix)
            alike = await session.fetch_all("job_ids_like", lower=lower, upper=upper)
            if len(alike) == 1:
                return redirect(request, "job", id=alike[0]["id"])
        found = Found([]) if wanted.problems else await find_jobs(session, wanted.sought(), place, SHOWN_JOBS)
        rows = await session.fetch_all("jobs_rows", ids=found.ids)
        types = [row["name"] for row in await session.fetch_all("jobs_types")]
    return render(
        request,
        "jobs/list.html",
        lines=[job_line(row) for row in rows],
        wanted=wanted,
        problems=dict(wanted.problems),
        types=[*types, *(name for name in wanted.types if name not in types)],
        statuses=STATUSES,
        found=found,
        is_first=place == TOP,
        here_query=urlencode(wanted.pairs() + ([("before", before)] if before else [])),
        filter_query=urlencode(wanted.pairs()),
        next_query=urlencode([*wanted.pairs(), ("before", str(found.next))]) if found.next else None,
        actions=actions_for(wanted),
    )


async def ticked(request: Request) -> Response:
    """Retries the ticked jobs; asks before it cancels them."""
    async with request.form(max_fields=MOST_TICKED + 20) as form:
        given = [str(value) for value in form.getlist("job")]
        action, reason = text_of(form, "action"), text_of(form, "reason", LONGEST_REASON)
        is_confirmed, back = text_of(form, "confirmed") == "1", text_of(form, "back")
    ids = _ids(given)
    if action not in MAY:
        raise HTTPException(400)
    if not ids:
        return back_to(request, back, "jobs.none_ticked", {})
    if action == "cancel" and not is_confirmed:
        return render(request, "jobs/confirm_ticked.html", ids=ids, back=own_path(request, back))
    async with request.app.state.database.acting_as(request.state.account.name) as session:
        told = await session.fetch_one(
            "jobs_act", action=action, ids=ids, statuses=list(MAY[action]), reason=reason or None
        )
    values = {"n": told["done"], "m": told["done"] + told["refused"]}
    return back_to(request, back, f"jobs.done_{action}", values)


def actions_for(wanted: JobFilter) -> list[str]:
    """What can be done to all jobs of a filter."""
    statuses = set(wanted.statuses)
    if wanted.is_group:
        return ["retry"]
    return [action for action in MAY if (statuses & set(MAY[action]) if statuses else True)]


def back_to(request: Request, back: str, notice: str, values: Mapping[str, object]) -> Response:
    """After an action: the page that the form stood on, with its query string."""
    response = redirect(request, "jobs", notice=notice, values=dict(values))
    assert isinstance(response, RedirectResponse)  # noqa: S101 - what redirect makes
    if path := own_path(request, back):
        response.headers["location"] = path
    return response


def own_path(request: Request, path: str) -> str:
    """A path of this view as it was given; empty for anything that could lead elsewhere."""
    is_own = path.startswith(f"{request.scope.get('root_path', '')}/") and leads_inside(path)
    return path if is_own and path.isascii() else ""


def _ids(given: list[str]) -> list[UUID]:
    try:
        return [UUID(text) for text in dict.fromkeys(given)][:MOST_TICKED]
    except ValueError:
        raise HTTPException(400) from None


routes = [
    Route("/jobs", jobs, name="jobs"),
    Route("/jobs/ticked", ticked, name="jobs_ticked", methods=["POST"]),
]
