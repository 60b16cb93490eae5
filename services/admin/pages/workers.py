"""Who works, on what; who has fallen silent."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from services.admin.rendering import render


async def workers(request: Request) -> Response:
    """Every worker process that has registered."""
    rows = await request.app.state.database.fetch_all("workers_list")
    return render(request, "workers.html", workers=rows)


routes = [Route("/workers", workers, name="workers")]
