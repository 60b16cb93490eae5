"""The one table of what the API offers, and the application that serves it below /api/v1."""

import re
from collections.abc import Sequence

from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from services.admin.api import answers, documentation, enqueueing, events, fleet, jobs, listing, manual, shapes, waiting
from services.admin.api.operations import PREFIX, STREAM, Operation, docs_path, endpoint, root_path, told

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "POST", "/jobs", "enqueue", "Enqueue a job", enqueueing.enqueue, "enqueue",
        takes=shapes.NewJob, limit=enqueueing.MOST_BYTES, gives=answers.EnqueuedJob, status=201, also=(200,),
        problems=("unknown_job_type", "invalid_payload", "refused"),
        description="201: a new job. 200: a job with this `unique_key` waits (`exists`: nothing was added) or runs "
        "(`rerun`: one more, with this payload, follows it), so a request that was sent twice makes one job.",
    ),
    Operation(
        "POST", "/jobs/batch", "enqueue_batch", "Enqueue many jobs, all or none", enqueueing.enqueue_batch, "enqueue",
        takes=shapes.NewJobs, limit=enqueueing.MOST_BYTES, gives=answers.EnqueuedJobs, status=201,
        problems=("unknown_job_type", "invalid_payload", "refused"),
        description=f"Up to {shapes.MOST_BATCHED} jobs of any types in one transaction.",
    ),
    Operation(
        "GET", "/jobs", "list_jobs", "List jobs, newest first", listing.list_jobs, "read",
        parameters=shapes.Listing, gives=answers.JobPage,
        description="Jobs that arrive while you turn pages move nothing. A page looks at a bounded number of jobs: go "
        "on while `next_cursor` is not null, also after a short page.",
    ),
    Operation(
        "GET", "/jobs/{id}", "show_job", "Show all of a job", jobs.show_job, "read",
        parameters=shapes.Showing, gives=answers.Job, problems=("no_such_job",),
        description="Values whose names or looks say that they are secret are masked, in payload, result and messages. "
        "`reveal=true` shows them to a token with the scope operate.",
    ),
    Operation(
        "GET", "/jobs/{id}/result", "show_result", "Get the result alone", jobs.show_result, "read",
        gives=None, problems=("no_such_job", "not_completed", "job_failed"),
        description="As the worker wrote it, nothing masked.",
    ),
    Operation(
        "GET", "/jobs/{id}/wait", "wait_for_job", "Wait for the end of a job", waiting.wait, "read",
        parameters=shapes.Waiting, gives=answers.JobSummary, problems=("no_such_job", "busy"),
        description="Answers when the job has ended or the time is up; `has_ended` says which.",
    ),
    Operation(
        "POST", "/jobs/{id}/retry", "retry_job", "Run a failed job anew", jobs.retry, "operate",
        gives=answers.Outcome, problems=("no_such_job", "not_possible"),
        description="`retried`: it has all its attempts again and keeps its finished parts. `pulled_forward`: it "
        "waited for a later time and is due now. A completed job is not run again: enqueue a new one.",
    ),
    Operation(
        "POST", "/jobs/{id}/cancel", "cancel_job", "Cancel a job", jobs.cancel, "operate",
        takes=shapes.Cancelling, gives=answers.Outcome, problems=("no_such_job", "not_possible"),
        description="`cancelled`: it waited and has ended. `requested`: it runs, and its worker was asked to stop.",
    ),
    Operation(
        "POST", "/jobs/{id}/priority", "change_priority", "Change the priority of a waiting job", jobs.prioritise,
        "operate", takes=shapes.Prioritising, gives=answers.Outcome, problems=("no_such_job", "not_possible"),
        description="`changed` or `unchanged`.",
    ),
    Operation(
        "GET", "/events", "list_events", "List changes of status since a cursor", events.list_events, "read",
        parameters=shapes.EventsAfter, gives=answers.EventPage, problems=("cursor_expired",),
        description="Each change is met once, whoever made it. Changes of transactions that are still open come later: "
        "they are not skipped.",
    ),
    Operation(
        "GET", "/events/stream", "stream_events", "Get changes of status as they come", waiting.stream_events, "read",
        parameters=shapes.EventsFrom, gives=answers.Event, media_type=STREAM,
        problems=("busy", "cursor_expired"),
        description="Server-sent events of the type `change`. A client that was cut off sends the last `id` that it "
        "got as the header Last-Event-ID, or as `after`, and goes on there; it may get some changes twice.",
    ),
    Operation(
        "GET", "/job-types", "list_job_types", "List job types with the schemas of their payloads",
        fleet.list_job_types, "read", gives=answers.JobTypes,
    ),
    Operation(
        "POST", "/job-types/{name}/pause", "pause_job_type", "Stop taking jobs of a type", fleet.pause, "operate",
        takes=shapes.Pausing, gives=answers.Outcome, problems=("no_such_job_type", "refused"),
        description="Jobs that run go on.",
    ),
    Operation(
        "POST", "/job-types/{name}/resume", "resume_job_type", "Take jobs of a type again", fleet.resume, "operate",
        gives=answers.Outcome, problems=("no_such_job_type", "not_possible"),
    ),
    Operation(
        "GET", "/workers", "list_workers", "List worker processes", fleet.list_workers, "read", gives=answers.Workers,
    ),
    Operation(
        "GET", "/health", "tell_health", "Tell whether the database answers", fleet.tell_health, None,
        gives=answers.Health, also=(503,),
    ),
)  # fmt: skip


_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY")


class _Problems:
    """Paths and methods that there are none of get a problem document, too, in place of a page."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except HTTPException as error:
            await _refusal(error, Request(scope))(scope, receive, send)


def _refusal(error: HTTPException, request: Request) -> Response:
    response = told(error, request).response(docs_path(request))
    response.headers.update(error.headers or {})
    return response


async def _document(request: Request) -> Response:
    server = f"{root_path(request)}{PREFIX}"
    return JSONResponse(documentation.openapi(OPERATIONS, server), headers={"Cache-Control": "no-cache"})


async def _manual(request: Request) -> Response:
    return HTMLResponse(manual.page(OPERATIONS, root_path(request)), headers={"Cache-Control": "no-cache"})


def _route(operations: Sequence[Operation]) -> Route:
    """One path with all its methods; others are refused here, before a path with a parameter can match."""
    by_method = {operation.method: endpoint(operation) for operation in operations}
    if "GET" in by_method and operations[0].media_type != STREAM:
        by_method["HEAD"] = by_method["GET"]

    async def run(request: Request) -> Response:
        if request.method not in by_method:
            return _refusal(HTTPException(405, headers={"Allow": ", ".join(by_method)}), request)
        return await by_method[request.method](request)

    # A job type's name may hold a slash.
    return Route(operations[0].path.replace("{name}", "{name:path}"), run, methods=_METHODS)


def _routes() -> list[BaseRoute]:
    paths: dict[str, list[Operation]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, []).append(operation)
    own: list[BaseRoute] = [_route(operations) for operations in paths.values()]
    own += [Route("/openapi.json", _document), Route("/docs", _manual)]
    api = Router(own, redirect_slashes=False)
    mount = Mount(PREFIX, api, name="api", middleware=[Middleware(_Problems)])
    # With line ends: a path that holds one is ours, too, to be refused with a problem.
    mount.path_regex = re.compile(mount.path_regex.pattern, re.DOTALL)
    return [mount]


routes = _routes()
