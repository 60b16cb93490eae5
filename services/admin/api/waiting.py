"""GET /jobs/{id}/wait and GET /events/stream: requests that stay open."""

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator

import msgspec
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from services.admin.api.answers import JobSummary
from services.admin.api.bodies import wrong_parameter
from services.admin.api.events import Look
from services.admin.api.jobs import no_job, summary
from services.admin.api.operations import STREAM, Answer, Call, sent_token
from services.admin.api.problems import ProblemError
from services.admin.api.shapes import CURSOR_PATTERN, EventsAfter
from services.admin.api.watch import Watch
from services.admin.database import TROUBLE
from services.admin.metrics import STREAMS

SEND_SECONDS = 10.0
TOKEN_SECONDS = 30.0  # between looks whether the token of a stream still holds
_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


async def wait(call: Call) -> Answer:
    """The job, once it has ended or the time is up: `has_ended` says which."""
    job = await _read(call)
    if not job.has_ended and call.parameters.timeout:
        await _watch(call).wait_for(job.id, call.parameters.timeout)
        job = await _read(call)
    return Answer(job)


async def stream_events(call: Call) -> StreamingResponse:
    """Events as they come, as server-sent events; a client that comes back goes on where it was."""
    watch, after = _watch(call), call.parameters.after
    if (last := call.request.headers.get("last-event-id")) is not None:
        if not re.fullmatch(CURSOR_PATTERN, last):
            raise wrong_parameter("Last-Event-ID", "it is no cursor")
        after = last
    watch.check_room()
    wanted = EventsAfter(after=after, type=call.parameters.type)
    await watch.check_cursor(wanted)
    return _EventStream(_written(call, watch, wanted), media_type=STREAM, headers=_HEADERS)


class _EventStream(StreamingResponse):
    """A client that takes nothing for a while is dropped: it would keep others from listening."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_in_time(message: Message) -> None:
            async with asyncio.timeout(SEND_SECONDS):
                await send(message)

        with contextlib.suppress(TimeoutError), STREAMS.track_inprogress():
            await super().__call__(scope, receive, send_in_time)


async def _written(call: Call, watch: Watch, wanted: EventsAfter) -> AsyncIterator[bytes]:
    yield b"retry: 1000\n\n"
    checked_at = time.monotonic()
    async with contextlib.aclosing(watch.listen(wanted)) as looks:
        async for look in looks:
            if time.monotonic() - checked_at >= TOKEN_SECONDS:
                checked_at = time.monotonic()
                if not await _is_still_allowed(call):
                    return
            yield _lines(look)


async def _is_still_allowed(call: Call) -> bool:
    """Whether the token holds; a database that is away does not end what it allowed before."""
    try:
        await sent_token(call.request)
    except ProblemError:
        return False
    except TROUBLE:
        return True
    return True


def _lines(look: Look) -> bytes:
    """The cursor comes with the last event: one who is cut off before it gets them all again.

    Without events it comes alone, which moves the client's Last-Event-ID and wakes nobody.
    """
    documents = [msgspec.json.encode(event) for event in look.events]
    parts = [b"event: change\ndata: %b\n\n" % document for document in documents[:-1]]
    cursor = look.next_cursor.encode()
    parts.append(
        b"id: %b\nevent: change\ndata: %b\n\n" % (cursor, documents[-1]) if documents else b"id: %b\n\n" % cursor
    )
    return b"".join(parts)


async def _read(call: Call) -> JobSummary:
    row = await call.database.fetch_one("api_list_rows", ids=[call.job_id])
    if row is None:
        raise no_job(call.job_id)
    return msgspec.convert(summary(row), JobSummary)


def _watch(call: Call) -> Watch:
    watch: Watch = call.request.app.state.watch
    return watch
