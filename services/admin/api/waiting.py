"""GET /jobs/{id}/wait and GET /events/stream: requests that stay open."""

import re
from collections.abc import AsyncIterator

import msgspec
from starlette.responses import StreamingResponse

from services.admin.api.answers import JobSummary
from services.admin.api.bodies import wrong_parameter
from services.admin.api.events import Look
from services.admin.api.jobs import no_job, summary
from services.admin.api.operations import STREAM, Answer, Call
from services.admin.api.shapes import CURSOR_PATTERN, EventsAfter
from services.admin.api.watch import Watch

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
    return StreamingResponse(_written(watch, wanted), media_type=STREAM, headers=_HEADERS)


async def _written(watch: Watch, wanted: EventsAfter) -> AsyncIterator[bytes]:
    yield b"retry: 1000\n\n"
    async for look in watch.listen(wanted):
        yield _lines(look)


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
