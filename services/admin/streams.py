"""GET /live: the event stream of one open page."""

import asyncio
import contextlib
import time

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from services.admin.access.guard import is_still_allowed
from services.admin.database import TROUBLE
from services.admin.live import LiveFeed
from services.admin.metrics import STREAMS
from sidelinja_jobs.log import get_logger

log = get_logger()

QUIET_SECONDS = 15.0  # then a comment, which shows a dead connection and keeps proxies from closing a live one
SEND_SECONDS = 10.0  # a page that takes nothing for so long is dropped
ACCOUNT_SECONDS = 30.0  # between looks whether the session still holds
RETRY_MILLISECONDS = 1000
HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),  # nginx holds back what it proxies otherwise
]


async def live(request: Request) -> Response:
    """The stream from Last-Event-ID on, which a browser sends when it comes again, else from ?after=."""
    feed: LiveFeed = request.app.state.feed
    if feed.is_full or feed.is_stopping:
        return PlainTextResponse("too many pages are open\n", 503, headers={"Retry-After": "30"})
    after = request.headers.get("last-event-id") or request.query_params.get("after")
    return EventStream(request, feed, after)


class EventStream(Response):
    """Sends what the feed tells until the page, the session or the server is gone."""

    def __init__(self, request: Request, feed: LiveFeed, after: str | None) -> None:
        super().__init__()
        self._request, self._feed, self._after = request, feed, after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with STREAMS.track_inprogress():
            await self._stream(receive, send)

    async def _stream(self, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": list(HEADERS)})
        telling = asyncio.create_task(self._tell(send))
        leaving = asyncio.create_task(_disconnected(receive))
        try:
            await asyncio.wait({telling, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if telling.done() and not leaving.done():
                telling.result()
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        except TimeoutError:
            log.info("page dropped that took nothing", seconds=SEND_SECONDS)  # the server closes what is not finished
        except TROUBLE as error:
            log.warning("live view has no database", error=str(error).strip())
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            for task in (telling, leaving):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, TimeoutError, *TROUBLE):
                    await task

    async def _tell(self, send: Send) -> None:
        await _send(send, f"retry: {RETRY_MILLISECONDS}\n\n".encode())
        checked_at = time.monotonic()
        async with contextlib.aclosing(self._feed.listen(self._after, QUIET_SECONDS)) as messages:
            async for message in messages:
                if time.monotonic() - checked_at >= ACCOUNT_SECONDS:
                    checked_at = time.monotonic()
                    if not await is_still_allowed(self._request):
                        return
                await _send(send, message or b": \n\n")


async def _send(send: Send, body: bytes) -> None:
    async with asyncio.timeout(SEND_SECONDS):
        await send({"type": "http.response.body", "body": body, "more_body": True})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


routes = [Route("/live", live, name="live")]
