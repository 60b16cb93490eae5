"""A new job by a form that is made from the schema of its type's payload."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

import anyio
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from services.admin.access.accounts import operator_only
from services.admin.database import Row
from services.admin.pages.form_values import SMALLINT, id_of, text_of, whole_number
from services.admin.pages.job_actions import MOST_EDITED_BYTES
from services.admin.pages.job_actions import enqueue as enqueue_once
from services.admin.pages.job_filter import moment_of
from services.admin.pages.job_source import NEWEST, OLDEST
from services.admin.pages.media import audio_files, media_problem
from services.admin.pages.payload_form import Field, Filled, fields_of, fill
from services.admin.rendering import redirect, render, speech
from services.admin.words import Speech, all_words
from sidelinja_jobs.cli.exits import RefusedError as TypedError
from sidelinja_jobs.cli.payloads import check_content
from sidelinja_jobs.errors import RefusedError

WHOLE = Field("payload", "json")  # of a type that has published no schema: the payload as JSON


@dataclass
class Rest:
    """What is not of the payload: as typed, and as read."""

    typed: dict[str, str]
    values: dict[str, Any] = field(default_factory=dict)
    problems: dict[str, list[str]] = field(default_factory=dict)


@operator_only
async def choose_type(request: Request) -> Response:
    """Which type of job."""
    types = await request.app.state.database.fetch_all("enqueueable_types")
    return render(request, "jobs/enqueue_types.html", types=types)


@operator_only
async def form_page(request: Request) -> Response:
    """The empty form."""
    facts, fields, _ = await _form_of(request)
    return await _form(request, facts, fields, {}, Rest({}), {})


async def send(request: Request) -> Response:
    """Enqueues what was filled in, or shows the form again with what is wrong at each field."""
    facts, fields, schema = await _form_of(request)
    async with request.form(max_fields=2000, max_part_size=MOST_EDITED_BYTES) as form:
        given = {item.name: _texts(form, f"p.{item.name}") for item in fields}
        rest = read_rest(form, request)
        request_id = id_of(form)
    filled = fill(fields, schema, given) if schema else Filled(next(iter(given[WHOLE.name]), ""))
    wrong = dict(filled.problems)
    says = speech(request)
    for item in fields:
        if item.kind == "path" and (path := next(iter(given[item.name]), "").strip()):
            problem = await anyio.to_thread.run_sync(media_problem, request.app.state.settings.media_root, path)
            if problem:
                wrong.setdefault(item.name, []).append(says.t(problem))
    if not wrong and not rest.problems:
        try:
            check_content(filled.payload)
            made = await enqueue_once(request, facts["name"], filled.payload, request_id, **rest.values)
            return redirect(request, "job", id=made["id"], notice=f"jobs.made_{made['outcome']}")
        except TypedError as error:
            wrong[""] = [error.message]
        except (RefusedError, RecursionError) as error:
            wrong[""] = [str(error) or "the payload is nested too deeply"]
    return await _form(request, facts, fields, given, rest, wrong, status_code=422)


def read_rest(form: FormData, request: Request) -> Rest:
    """Priority, attempts, time and key."""
    names = ("priority", "max_attempts", "scheduled_for", "unique_key")
    rest = Rest({name: text_of(form, name).strip() for name in names})
    says = speech(request)
    for name, allowed in (("priority", SMALLINT), ("max_attempts", range(1, 32768))):
        if text := rest.typed[name]:
            if (number := whole_number(text, allowed)) is not None:
                rest.values[name] = number
            else:
                rest.problems[name] = [says.t("enqueue.bad_number", low=allowed[0], high=allowed[-1])]
    if text := rest.typed["scheduled_for"]:
        moment = moment_of(text, request.app.state.settings.zone)
        if moment is None or not OLDEST <= moment < NEWEST:
            rest.problems["scheduled_for"] = [says.t("filter.bad_time")]
        rest.values["scheduled_for"] = moment
    if text := rest.typed["unique_key"]:
        rest.values["unique_key"] = text
        if len(text) > 500:
            rest.problems["unique_key"] = [says.t("filter.bad_text")]
    return rest


async def _form_of(request: Request) -> tuple[Row, list[Field], dict[str, Any] | None]:
    """The type, its fields and its schema; a type without a schema has one field for all."""
    name = request.path_params["job_type"]
    facts = None if "\0" in name else await request.app.state.database.fetch_one("job_type_facts", job_type=name)
    if facts is None:
        raise HTTPException(404)
    schema = json.loads(facts["payload_schema"]) if facts["payload_schema"] else None
    fields = fields_of(schema) if isinstance(schema, dict) else None
    return (facts, [WHOLE], None) if fields is None else (facts, fields, schema)


async def _form(
    request: Request,
    facts: Row,
    fields: list[Field],
    given: Mapping[str, list[str]],
    rest: Rest,
    problems: dict[str, list[str]],
    *,
    status_code: int = 200,
) -> Response:
    root = request.app.state.settings.media_root
    files: list[str] = []
    if any(item.kind == "path" for item in fields):
        files = await anyio.to_thread.run_sync(audio_files, root)
    return render(
        request,
        "jobs/enqueue.html",
        status_code=status_code,
        facts=facts,
        fields=[_in_words(item, facts["name"], speech(request)) for item in fields],
        given=given,
        rest=rest,
        problems=problems | rest.problems,
        files=files,
        request_id=uuid4(),
    )


def _in_words(item: Field, job_type: str, says: Speech) -> Field:
    """A field with what is said of it in the page's language; with its schema's own words where we have none."""
    key = f"field.{job_type}.{item.name}"
    return replace(item, help=says.t(key)) if key in all_words() else item


def _texts(form: FormData, name: str) -> list[str]:
    return [value for value in form.getlist(name) if isinstance(value, str)]


routes = [
    Route("/enqueue", choose_type, name="enqueue"),
    Route("/enqueue/{job_type:path}", form_page, name="enqueue_form"),
    Route("/enqueue/{job_type:path}", send, name="enqueue_send", methods=["POST"]),
]
