"""Who works, on what; who has fallen silent."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from services.admin.pages.job_line import seconds_left
from services.admin.rendering import render


async def workers(request: Request) -> Response:
    """Every worker process that has registered."""
    rows = await request.app.state.database.fetch_all("workers_list")
    shown = [row | {"seconds_left": seconds_left(row | {"started_at": row["run_started_at"]})} for row in rows]
    return render(request, "workers.html", workers=shown)


routes = [Route("/workers", workers, name="workers")]
