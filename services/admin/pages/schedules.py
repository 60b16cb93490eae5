"""Recurring jobs: when they run next, how the last run ended; running one now, switching it off and on."""

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from services.admin.rendering import redirect, render, speech


async def schedules(request: Request) -> Response:
    """All schedules."""
    return render(request, "schedules.html", schedules=await request.app.state.database.fetch_all("schedules_list"))


async def run_now(request: Request) -> Response:
    """Pulls the queued run forward; the ones after it keep to the grid."""
    name = request.path_params["name"]
    async with request.app.state.database.acting_as(request.state.account.name) as session:
        run = await session.fetch_one("schedule_run", name=name)
        if run is None:
            raise HTTPException(409, speech(request).t("schedules.none_queued"))
        if run["status"] == "running":
            return redirect(request, "schedules", notice="schedules.runs_already", values={"name": name})
        await session.fetch_one("retry_job", id=run["id"])
    return redirect(request, "schedules", notice="schedules.pulled", values={"name": name})


async def switch_on(request: Request) -> Response:
    """Lets runs be queued again; the next one is at once."""
    return await _switch(request, enabled=True)


async def switch_off(request: Request) -> Response:
    """Queues no more runs, and cancels the one that waits."""
    return await _switch(request, enabled=False)


async def _switch(request: Request, *, enabled: bool) -> Response:
    name = request.path_params["name"]
    async with request.app.state.database.acting_as(request.state.account.name) as session:
        is_changed = await session.fetch_value("switch_schedule", name=name, enabled=enabled)
    notice = f"schedules.{'' if is_changed else 'already_'}{'on' if enabled else 'off'}"
    return redirect(request, "schedules", notice=notice, values={"name": name})


routes = [
    Route("/schedules", schedules, name="schedules"),
    Route("/schedules/{name:path}/run", run_now, name="run_schedule", methods=["POST"]),
    Route("/schedules/{name:path}/on", switch_on, name="schedule_on", methods=["POST"]),
    Route("/schedules/{name:path}/off", switch_off, name="schedule_off", methods=["POST"]),
]
