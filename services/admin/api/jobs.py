"""What stands below /jobs/{id}: show, result, retry, cancel, priority."""

import asyncio
from typing import Any
from uuid import UUID

import msgspec
from starlette.responses import Response

from services.admin.api.answers import Job, Outcome, Reason
from services.admin.api.authentication import check_scope
from services.admin.api.operations import Answer, Call
from services.admin.api.problems import ProblemError
from services.admin.database import Row
from services.admin.messages import redacted
from services.admin.pages.job_line import attempt_number
from sidelinja_jobs.errors import RefusedError
from sidelinja_jobs.redaction import redact_json

_ENDED = ("completed", "error")
_SHOWN_EVENTS = 200
_LARGE = 128 * 1024  # characters of payload and result; more is masked beside the event loop


async def show_job(call: Call) -> Answer:
    """All of a job, with secrets masked unless an operator wants to see them."""
    if reveal := call.parameters.reveal:
        check_scope(call.token, "operate")
    async with call.database.session() as session:
        row = await session.fetch_one("api_show_job", id=call.job_id)
        if row is None:
            raise no_job(call.job_id)
        runs = await session.fetch_all("api_job_runs", id=call.job_id)
        events = await session.fetch_all("job_events", id=call.job_id, limit=_SHOWN_EVENTS)
        reasons = await session.fetch_all("api_job_reasons", id=call.job_id)
    if len(row["payload"]) + len(row["result"] or "") > _LARGE:
        return Answer(await asyncio.to_thread(_whole, row, runs, events, reasons, reveal))
    return Answer(_whole(row, runs, events, reasons, reveal))


async def show_result(call: Call) -> Response:
    """The result alone, as the worker wrote it."""
    row = await call.database.fetch_one("api_job_result", id=call.job_id)
    if row is None:
        raise no_job(call.job_id)
    if row["status"] == "error":
        message = redacted(row["error_msg"])
        detail = f"the job ended in error ({row['error_class']}): {message}"
        raise ProblemError("job_failed", detail, f"POST /jobs/{call.job_id}/retry runs it anew")
    if row["status"] != "completed":
        next_step = f"GET /jobs/{call.job_id}/wait answers when it has ended"
        raise ProblemError("not_completed", f"the job is {row['status']}", next_step)
    return Response(row["result"] or "null", media_type="application/json", headers={"Cache-Control": "no-store"})


async def retry(call: Call) -> Answer:
    """A failed job runs anew; one that waits is due now."""
    return Answer(Outcome(outcome=await _change(call, "retry_job")))


async def cancel(call: Call) -> Answer:
    """A waiting job ends at once; a running one is asked to stop."""
    return Answer(Outcome(outcome=await _change(call, "cancel_job", reason=call.body.value.reason)))


async def prioritise(call: Call) -> Answer:
    """A waiting job moves before or behind others."""
    wanted = call.body.value.priority
    before = await _change(call, "change_priority", priority=wanted)
    return Answer(Outcome(outcome="unchanged" if before == wanted else "changed"))


async def _change(call: Call, query: str, /, **parameters: object) -> Any:
    """What the function of the database answers."""
    try:
        async with call.database.acting_as(call.token.actor) as session:
            return await session.fetch_value(query, id=call.job_id, **parameters)
    except RefusedError as error:
        raise ProblemError("not_possible", str(error), f"GET /jobs/{call.job_id} shows its state") from error


def _whole(row: Row, runs: list[Row], events: list[Row], reasons: list[Row], reveal: bool) -> Job:
    fields = summary(row, reveal=reveal) | {
        "payload": _raw(row["payload"], reveal),
        "result": _raw(row["result"], reveal),
        "runs": [run | {"error_msg": _text(run["error_msg"], reveal)} for run in reversed(runs)],
        "events": events[::-1],
        "reasons": [Reason(reason=reason["reason"], detail=_detail(reason["detail"], reveal)) for reason in reasons],
    }
    return msgspec.convert(fields, Job)


def summary(row: Row, *, reveal: bool = False) -> dict[str, Any]:
    """The fields of a job that need no further look, messages redacted."""
    return row | {
        "has_ended": row["status"] in _ENDED,
        "attempt": attempt_number(row),
        "error_msg": _text(row["error_msg"], reveal),
        "progress_note": _text(row["progress_note"], reveal),
    }


def _text(text: str | None, reveal: bool) -> str | None:
    return text if text is None or reveal else redacted(text)


def _detail(json_text: str, reveal: bool) -> msgspec.Raw:
    """What belongs to a reason: flat, with messages and notes among its values."""
    facts: dict[str, Any] = msgspec.json.decode(json_text)
    shown = {name: _text(fact, reveal) if isinstance(fact, str) else fact for name, fact in facts.items()}
    return msgspec.Raw(msgspec.json.encode(shown))


def _raw(json_text: str | None, reveal: bool) -> msgspec.Raw:
    text = "null" if json_text is None else json_text
    return msgspec.Raw((text if reveal else redact_json(text)).encode())


def no_job(job_id: UUID) -> ProblemError:
    """What is told of an id that no job has."""
    return ProblemError("no_such_job", f"there is no job {job_id}", "GET /api/v1/jobs lists those that there are")
