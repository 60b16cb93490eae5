"""Prometheus metrics of the view itself: requests by their end, and streams that are open.

The label is the route as it is written in the code, never an address: what strangers ask for makes no series.
"""

from collections.abc import Iterable, Iterator

from prometheus_client import Counter, Gauge, disable_created_metrics
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

disable_created_metrics()  # type: ignore[no-untyped-call]  # or each counter counts twice as a series
REQUESTS = Counter("jobqueue_http_requests_total", "Requests by route and status", ["route", "code"])
STREAMS = Gauge("jobqueue_sse_clients", "Event streams that are open: pages, and clients of the API")
NO_ROUTE = "none"  # refused at the door, or no such page
LOST = "499"  # nginx's number for a client that left before the answer


class CountRequests:
    """Counts each request when it has ended; a stream, when it ends."""

    def __init__(self, app: ASGIApp, routes: Iterable[BaseRoute]) -> None:
        self._app = app
        self._names = dict(_named(routes))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        code = LOST

        async def noted(message: Message) -> None:
            nonlocal code
            if message["type"] == "http.response.start":
                code = str(message["status"])
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            REQUESTS.labels(self._names.get(scope.get("endpoint"), NO_ROUTE), code).inc()


def _named(routes: Iterable[BaseRoute], above: str = "") -> Iterator[tuple[object, str]]:
    """What the router leaves in the scope for each route, and the route's path."""
    for route in routes:
        if isinstance(route, Mount):
            yield route.app, above + route.path
            yield from _named(route.routes, above + route.path)
        elif isinstance(route, Route):
            yield route.endpoint, above + route.path
