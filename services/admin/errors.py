"""What a request ends with when it does not end well: pages for the errors of HTTP, of the queue and of ourselves."""

from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.admin.rendering import render
from sidelinja_jobs.errors import JobQueueError, NotAllowedError, NotFoundError
from sidelinja_jobs.log import get_logger

log = get_logger()

LARGEST_BODY_BYTES = 16 * 1024 * 1024  # the largest payload of a type is 8 MiB; a form writes a byte as up to three
KNOWN = {400, 401, 403, 404, 405, 409, 413, 421, 429, 500, 503}


def error_page(request: Request, status: int, message: str = "", headers: dict[str, str] | None = None) -> Response:
    """The page for a status, with a sentence of its own where there is one."""
    shown = status if status in KNOWN else (500 if status >= 500 else 400)
    response = render(request, "error.html", status_code=status, status=status, kind=shown, message=message)
    response.headers.update(headers or {})
    return response


async def http_error(request: Request, error: Exception) -> Response:
    """For what Starlette and the pages raise."""
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for it alone
    standard = {404: "Not Found", 405: "Method Not Allowed"}.get(error.status_code)
    message = "" if error.detail == standard else error.detail
    return error_page(request, error.status_code, message, dict(error.headers or {}))


async def queue_error(request: Request, error: Exception) -> Response:
    """For what the functions of the database refuse."""
    status = 404 if isinstance(error, NotFoundError) else 403 if isinstance(error, NotAllowedError) else 409
    return error_page(request, status, str(error))


async def database_away(request: Request, error: Exception) -> Response:
    """For a database that does not answer."""
    log.warning("database trouble", path=request.url.path, error=str(error).strip())
    return error_page(request, 503, headers={"Retry-After": "5"})


async def no_text(request: Request, error: Exception) -> Response:
    """For what no column can hold, such as a NUL character, wherever in the request it came."""
    log.info("request refused", path=request.url.path, error=str(error).strip())
    return error_page(request, 400)


# For what a page raises, and what is raised before there is a page: at the door.
HANDLERS: dict[Any, Callable[[Request, Exception], Awaitable[Response]]] = {
    HTTPException: http_error,
    JobQueueError: queue_error,
    psycopg.DataError: no_text,
    UnicodeEncodeError: no_text,
    psycopg.OperationalError: database_away,
    psycopg.InterfaceError: database_away,
}


class Edge:
    """The outermost net: a fault of ours becomes a page and a line of the log; a body that never ends is cut off."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False
        received = 0

        async def limited() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > LARGEST_BODY_BYTES:
                raise HTTPException(413)
            return message

        async def noted(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, limited, noted)
        except Exception as error:
            request = Request(scope)
            handler = next((HANDLERS[kind] for kind in type(error).__mro__ if kind in HANDLERS), None)
            if handler is None:
                log.exception("request failed", method=request.method, path=scope["path"])
            if not started:
                answer = await handler(request, error) if handler else error_page(request, 500)
                await answer(scope, receive, send)
