"""The first page: what there is now."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from services.admin.rendering import render


async def overview(request: Request) -> Response:
    """All job types at a glance."""
    types = await request.app.state.database.fetch_all("overview_types")
    return render(request, "overview.html", types=types)


routes = [Route("/", overview, name="overview")]
