"""What is done to all jobs of a filter: asked first, with the filter in words and the number, then done in batches.

A batch is a transaction of its own, and each job's status is looked at again in it. What takes longer than a request
should goes on by the same page: it says how many are left.
"""

import time
from dataclasses import replace
from datetime import datetime
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from services.admin.access.accounts import operator_only
from services.admin.database import Database
from services.admin.pages.form_values import LONGEST_REASON, text_of
from services.admin.pages.job_filter import JobFilter, read_filter
from services.admin.pages.job_list import MAY, MEANS, back_to
from services.admin.pages.job_source import each_batch
from services.admin.rendering import render, speech

BATCH = 500
REQUEST_SECONDS = 20.0
MOST_COUNTED = 10_000  # of jobs that no index counts; others are counted whatever their number
CANCELLED = "cancelled"  # no failure: in no group


@operator_only
async def ask_all(request: Request) -> Response:
    """The question before an action: to which jobs, and to how many."""
    action, wanted = _asked(request)
    as_of = await request.app.state.database.fetch_value("jobs_now")
    count, is_least = await _count(request.app.state.database, wanted, as_of)
    return render(
        request,
        "jobs/confirm_all.html",
        action=action,
        wanted=wanted,
        words=wanted.in_words(speech(request)),
        count=count,
        is_least=is_least,
        as_of=as_of.isoformat(),
        query=urlencode([("action", action), *wanted.pairs()]),
        list_query=urlencode(wanted.pairs()),
    )


async def do_all(request: Request) -> Response:
    """Does it, to the jobs that there were when it was asked."""
    action, wanted = _asked(request)
    async with request.form() as form:
        as_of, reason = _moment(text_of(form, "as_of")), text_of(form, "reason", LONGEST_REASON)
    database = request.app.state.database
    done = refused = 0
    deadline = time.monotonic() + REQUEST_SECONDS
    is_cut = False
    async for ids in each_batch(database, wanted.sought(as_of), BATCH):
        if ids:
            async with database.acting_as(request.state.account.name) as session:
                told = await session.fetch_one(
                    "jobs_act", action=action, ids=ids, statuses=list(wanted.statuses), reason=reason or None
                )
            done, refused = done + told["done"], refused + told["refused"]
        if is_cut := time.monotonic() > deadline:
            break
    values = {"n": done, "m": done + refused}
    if is_cut:
        path = f"{request.url.path}?{urlencode([('action', action), *wanted.pairs()])}"
        return back_to(request, path, f"jobs.partly_{action}", values)
    path = f"{request.scope.get('root_path', '')}/jobs?{urlencode(wanted.pairs())}"
    return back_to(request, path, f"jobs.done_{action}", values)


def _asked(request: Request) -> tuple[str, JobFilter]:
    """The action, and the filter with the statuses that it is meant for."""
    action = request.query_params.get("action", "")
    wanted = read_filter(request.query_params, request.app.state.settings.zone)
    if action not in MAY or wanted.problems:
        raise HTTPException(400)
    statuses = [status for status in wanted.statuses if status in MAY[action]] if wanted.statuses else MEANS[action]
    if not statuses:
        raise HTTPException(400)
    return action, replace(wanted, statuses=tuple(statuses))


async def _count(database: Database, wanted: JobFilter, as_of: datetime) -> tuple[int, bool]:
    """How many jobs, and whether there may be more."""
    if wanted.text or wanted.worker or wanted.id_prefix or wanted.since or wanted.until:
        return await _walked(database, wanted, as_of)
    count = 0
    parameters = vars(wanted.sought())
    if "error" in wanted.statuses:
        if wanted.error_class == CANCELLED or (wanted.is_group and wanted.error_class):
            return await _walked(database, wanted, as_of)
        query = "count_group" if wanted.is_group else "count_class" if wanted.error_class else "count_errors"
        count += await database.fetch_value(query, **parameters)
    if set(wanted.statuses) - {"error"} and not wanted.is_group:
        count += await database.fetch_value("count_unfinished", **parameters)
    return count, False


async def _walked(database: Database, wanted: JobFilter, as_of: datetime) -> tuple[int, bool]:
    count = 0
    async for ids in each_batch(database, wanted.sought(as_of), 2000):
        count += len(ids)
        if count >= MOST_COUNTED:
            return count, True
    return count, False


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise HTTPException(400) from None
    if moment.tzinfo is None:
        raise HTTPException(400)
    return moment


routes = [
    Route("/jobs/all", ask_all, name="jobs_all"),
    Route("/jobs/all", do_all, name="jobs_all_do", methods=["POST"]),
]
