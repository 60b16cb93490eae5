"""POST /jobs and POST /jobs/batch: what comes in is held against the type's schema before it is queued."""

import asyncio
import difflib
import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from services.admin.api.answers import EnqueuedJob, EnqueuedJobs
from services.admin.api.operations import PREFIX, Answer, Call, root_path
from services.admin.api.problems import FieldProblem, ProblemError, field_error
from services.admin.api.shapes import NewJob
from services.admin.database import Row
from sidelinja_jobs.cli.schemas import problems
from sidelinja_jobs.errors import RefusedError
from sidelinja_jobs.json_text import check_payload

MOST_BYTES = 15 * 1024 * 1024  # of a body: the largest limit of a type is 8 MiB, and JSON may be written with escapes
_MOST_PROBLEMS = 20
_LARGE = 128 * 1024  # bytes of payloads; more is looked at beside the event loop
YEARS = range(2000, 2200)  # what the database takes


async def enqueue(call: Call) -> Answer:
    """One job: 201 with its Location, or 200 where the key is held already."""
    job, tree = call.body.value, call.body.tree
    (made,) = await _enqueue(call, [job], [tree["payload"]], [""])
    location = f"{root_path(call.request)}{PREFIX}/jobs/{made.id}"
    return Answer(made, 201 if made.outcome == "created" else 200, {"Location": location})


async def enqueue_batch(call: Call) -> Answer:
    """Many jobs, all or none."""
    jobs, trees = call.body.value.jobs, call.body.tree["jobs"]
    places = [f"jobs[{index}]." for index in range(len(jobs))]
    return Answer(EnqueuedJobs(jobs=await _enqueue(call, jobs, [tree["payload"] for tree in trees], places)), 201)


async def _enqueue(call: Call, jobs: Sequence[NewJob], trees: list[Any], places: list[str]) -> list[EnqueuedJob]:
    names = sorted({job.job_type for job in jobs})
    types = {row["name"]: row for row in await call.database.fetch_all("api_describe_types", names=names)}
    texts = [bytes(job.payload) for job in jobs]
    if sum(map(len, texts)) > _LARGE:
        await asyncio.to_thread(_check, jobs, texts, trees, places, types)
    else:
        _check(jobs, texts, trees, places, types)
    rows = await call.database.fetch_all(
        "api_enqueue",
        actor=call.token.actor,
        types=[job.job_type for job in jobs],
        payloads=[text.decode() for text in texts],
        priorities=[job.priority for job in jobs],
        times=[job.scheduled_for for job in jobs],
        attempts=[job.max_attempts for job in jobs],
        keys=[job.unique_key for job in jobs],
        parents=[job.parent_id for job in jobs],
    )
    return [EnqueuedJob(id=row["id"], outcome=row["outcome"]) for row in rows]


def _check(
    jobs: Sequence[NewJob], texts: list[bytes], trees: list[Any], places: list[str], types: dict[str, Row]
) -> None:
    """Refuses the request for its first jobs that are wrong.

    Raises:
        ProblemError: names every field that is wrong, up to a number.
    """
    schemas = {name: json.loads(row["payload_schema"]) for name, row in types.items() if row["payload_schema"]}
    found: list[FieldProblem] = []
    for job, text, tree, place in zip(jobs, texts, trees, places, strict=True):
        row = types[job.job_type]
        _check_type(job, row, place)
        check_time(job.scheduled_for, f"{place}scheduled_for")
        _check_size(job, len(text), row, place)
        found += _payload_problems(tree, schemas.get(job.job_type), place)
        if len(found) >= _MOST_PROBLEMS:
            break
    if found:
        shown = "; ".join(f"{problem.field}: {problem.message}" for problem in found[:5])
        raise ProblemError(
            "invalid_payload",
            f"{jobs[0].job_type if len(set(types)) == 1 else 'a job type'} refuses this: {shown}",
            f"see the schema: GET {PREFIX}/job-types",
            errors=found[:_MOST_PROBLEMS],
        )


def _check_type(job: NewJob, row: Row, place: str) -> None:
    if row["is_known"] or row["has_worker"]:
        return
    close = difflib.get_close_matches(job.job_type, row["known_types"], n=1)
    hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(row['known_types'])}"
    problem = FieldProblem(f"{place}job_type", f"nobody works jobs of type {job.job_type!r}")
    raise ProblemError("unknown_job_type", problem.message, hint, errors=[problem])


def check_time(moment: datetime | None, field: str) -> None:
    """Refuses a time that the database would not take.

    Raises:
        ProblemError: it names the field.
    """
    if moment is not None and moment.year not in YEARS:
        raise field_error(
            "invalid_body", field, f"expected a time of the years {YEARS[0]} to {YEARS[-1]}", "correct it"
        )


def _check_size(job: NewJob, size: int, row: Row, place: str) -> None:
    """Only what cannot fit any more, since blanks and escapes of JSON are not stored: the database measures exactly."""
    limit = row["payload_limit_bytes"]
    if size > 6 * limit:
        message = f"{size} bytes are over the limit of {limit} bytes"
        next_step = "leave the data in a file and put its path into the payload"
        raise field_error("refused", f"{place}payload", message, next_step)


def _payload_problems(tree: Any, schema: dict[str, Any] | None, place: str) -> Iterable[FieldProblem]:
    try:
        check_payload(tree)
    except RefusedError as error:
        return [_named(str(error), place)]
    return [_named(text, place) for text in problems(tree, schema)] if schema else []


def _named(text: str, place: str) -> FieldProblem:
    """From "payload.path is missing": the field, and what is wrong with it."""
    field, _, message = text.removeprefix("a key in ").partition(" ")
    return FieldProblem(f"{place}{field}", message)
