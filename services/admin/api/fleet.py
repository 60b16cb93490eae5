"""GET /job-types, /workers and /health; pause and resume."""

import asyncio

import msgspec

from services.admin.api.answers import Health, JobTypes, JobTypeState, Outcome, Workers, WorkerState
from services.admin.api.enqueueing import check_time
from services.admin.api.operations import Answer, Call
from services.admin.api.problems import ProblemError
from services.admin.database import TROUBLE, Row
from services.admin.messages import redacted

_HEALTH_SECONDS = 5.0


async def list_job_types(call: Call) -> Answer:
    """Every type, with the schema of its payload."""
    rows = await call.database.fetch_all("api_job_types")
    return Answer(JobTypes(job_types=[msgspec.convert(_state(row), JobTypeState) for row in rows]))


async def list_workers(call: Call) -> Answer:
    """The processes that have shown themselves lately."""
    rows = await call.database.fetch_all("api_workers")
    return Answer(Workers(workers=[msgspec.convert(row, WorkerState) for row in rows]))


async def pause(call: Call) -> Answer:
    """Nothing of the type is taken any more; what runs goes on."""
    asked = call.body.value
    check_time(asked.until, "until")
    await _change_type(call, "api_pause", until=asked.until, reason=asked.reason)
    return Answer(Outcome(outcome="paused"))


async def resume(call: Call) -> Answer:
    """Jobs of the type are taken again."""
    if not await _change_type(call, "resume_job_type"):
        raise ProblemError("not_possible", f"{call.request.path_params['name']} is not paused", "GET /api/v1/job-types")
    return Answer(Outcome(outcome="resumed"))


async def tell_health(call: Call) -> Answer:
    """Whether the database answers; nothing else."""
    try:
        async with asyncio.timeout(_HEALTH_SECONDS):
            await call.database.fetch_value("ping")
    except (*TROUBLE, TimeoutError):
        return Answer(Health(status="unavailable"), 503)
    return Answer(Health(status="ok"))


def _state(row: Row) -> Row:
    return row | {
        "payload_schema": msgspec.Raw((row["payload_schema"] or "null").encode()),
        "pause_reason": row["pause_reason"] and redacted(row["pause_reason"]),
    }


async def _change_type(call: Call, query: str, /, **parameters: object) -> bool:
    name = call.request.path_params["name"]
    if "\0" in name:
        raise ProblemError("no_such_job_type", "there is no job type with a NUL in its name", "GET /api/v1/job-types")
    async with call.database.acting_as(call.token.actor) as session:
        return bool(await session.fetch_value(query, name=name, **parameters))
