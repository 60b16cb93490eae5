"""Failed jobs by kind: the same class and, but for names and numbers, the same message."""

from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from services.admin.messages import first_line
from services.admin.rendering import render

SHOWN_GROUPS = 100
SHOWN_ERROR = 300


async def failed_jobs(request: Request) -> Response:
    """Groups of jobs in error, the one that happened last first. Cancelled jobs did not fail."""
    job_type = request.query_params.get("type", "").replace("\0", "") or None
    async with request.app.state.database.session() as session:
        groups = await session.fetch_all("failed_groups", job_type=job_type, limit=SHOWN_GROUPS)
        types = [row["name"] for row in await session.fetch_all("jobs_types")]
    for group in groups:
        group["message"] = first_line(group["error_msg"], SHOWN_ERROR)
        pairs = [("status", "error"), ("group", group["fingerprint"])]
        pairs += [("type", job_type)] if job_type else []
        group["query"] = urlencode(pairs)
        group["retry_query"] = urlencode([("action", "retry"), *pairs])
    return render(
        request,
        "jobs/failed.html",
        groups=groups,
        types=types,
        job_type=job_type,
        all_groups=groups[0]["groups"] if groups else 0,
        all_jobs=groups[0]["all_jobs"] if groups else 0,
    )


routes = [Route("/errors", failed_jobs, name="failed_jobs")]
