"""Recurring jobs: when they run next, how the last run ended, and running one now."""

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
        await session.fetch_one("run_now", id=run["id"])
    return redirect(request, "schedules", notice="schedules.pulled", values={"name": name})


routes = [
    Route("/schedules", schedules, name="schedules"),
    Route("/schedules/{name:path}/run", run_now, name="run_schedule", methods=["POST"]),
]
