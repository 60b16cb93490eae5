"""The OpenAPI 3.1 document and the page for people: both made from the table of operations and the structs.

Neither says anything of this installation, so both are open, as /health is.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from services.admin.api.operations import PREFIX, Operation
from services.admin.api.problems import KINDS, MEDIA_TYPE, ProblemDocument
from sidelinja_jobs.version import VERSION

Document = dict[str, Any]

_TITLE = "Jobbkø"
_ABOUT = (
    "Enqueue jobs, follow them, and operate the queue. Every request carries `Authorization: Bearer jobbko_…`; "
    "`jobs token add` makes a token. Cookies are not looked at. Requests and answers are JSON in UTF-8, numbers "
    "arrive as they were written, times are RFC 3339. Whatever goes wrong is a problem document (RFC 9457), whose "
    "`code` is stable."
)
_REFERENCE = "#/components/schemas/{name}"
_PATH_PARAMETER = re.compile(r"\{(\w+)\}")
_OF_PATH: Mapping[str, Document] = {
    "id": {"schema": {"type": "string", "format": "uuid"}, "description": "the job"},
    "name": {"schema": {"type": "string"}, "description": "the job type"},
}


def openapi(operations: Sequence[Operation], server: str = PREFIX) -> Document:
    """The whole document; `server` is the path below which the operations lie."""
    kinds = _kinds(operations)
    references, components = msgspec.json.schema_components(kinds, ref_template=_REFERENCE)
    schemas: dict[type, Document] = dict(zip(kinds, references, strict=True))
    paths: Document = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": _TITLE, "version": VERSION, "description": _ABOUT},
        "servers": [{"url": server}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "description": "jobs token add"}},
        },
    }


def parameters_of(operation: Operation) -> list[Document]:
    """The parameters of path and query, as OpenAPI has them."""
    found: list[Document] = [
        {"name": name, "in": "path", "required": True, **_OF_PATH[name]}
        for name in _PATH_PARAMETER.findall(operation.path)
    ]
    schema = _own_schema(operation.parameters)
    for name, field in schema["properties"].items():
        shown = _without_null(field)
        described = {"description": shown.pop("description")} if "description" in shown else {}
        found.append({"name": name, "in": "query", "required": name in schema["required"], "schema": shown} | described)
    return found


def _operation(operation: Operation, schemas: Mapping[type, Document]) -> Document:
    described: Document = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": parameters_of(operation),
        "responses": _responses(operation, schemas),
        "security": [{"token": [operation.scope]}] if operation.scope else [],
    }
    if operation.description:
        described["description"] = operation.description
    if operation.takes:
        described["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": schemas[operation.takes]}},
        }
    return described


def _responses(operation: Operation, schemas: Mapping[type, Document]) -> Document:
    schema = schemas[operation.gives] if operation.gives else {}
    responses: Document = {
        str(status): {
            "description": operation.summary,
            "content": {operation.media_type: {"schema": schema}},
        }
        for status in (operation.status, *operation.also)
    }
    for status, codes in _by_status(operation.all_problems).items():
        response = responses.setdefault(status, {"description": "", "content": {}})
        response["description"] = "; ".join(f"`{code}`: {KINDS[code].title}" for code in codes)
        response["content"][MEDIA_TYPE] = {"schema": schemas[ProblemDocument]}
    return responses


def _by_status(codes: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for code in codes:
        found.setdefault(str(KINDS[code].status), []).append(code)
    return dict(sorted(found.items()))


def _kinds(operations: Sequence[Operation]) -> list[type]:
    kinds: list[type] = [ProblemDocument]
    for operation in operations:
        kinds += [kind for kind in (operation.takes, operation.gives) if kind is not None]
    return list(dict.fromkeys(kinds))


@functools.cache
def _own_schema(kind: type[msgspec.Struct]) -> Document:
    _, components = msgspec.json.schema_components([kind], ref_template=_REFERENCE)
    schema: Document = components[kind.__name__]
    return {"properties": schema.get("properties", {}), "required": schema.get("required", [])}


def _without_null(field: Document) -> Document:
    """A parameter of a query that is not given is not there: it cannot be null."""
    choices = [choice for choice in field.get("anyOf", []) if choice != {"type": "null"}]
    shown = {**field, **choices[0]} if len(choices) == 1 else dict(field)
    shown.pop("anyOf", None)
    if shown.get("default") is None:
        shown.pop("default", None)
    return shown
