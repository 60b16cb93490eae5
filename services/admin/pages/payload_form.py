"""A form made from the JSON schema of a payload, and the payload made from what was filled in.

What was left empty is left out, so that the default of the worker's own code holds. Numbers go into the payload as they
were typed. Objects, and lists of anything but texts, are typed as JSON.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sidelinja_jobs.cli.exits import RefusedError
from sidelinja_jobs.cli.payloads import parsed
from sidelinja_jobs.cli.schemas import problems
from sidelinja_jobs.payload_schema import ORDER

_DEEPEST = 10
_LONG_TEXT = 500  # a text that may be longer than this, or of any length where its name says so, gets several lines
_LONG_NAMES = ("text", "html", "prompt", "note")
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_WHOLE = re.compile(r"-?(0|[1-9]\d*)", re.ASCII)
_PATH_NAMES = ("path",)

Schema = dict[str, Any]


@dataclass(frozen=True)
class Field:
    """A field of the form. `kind`: text, long, path, integer, number, id, boolean, choice, choices, list, json."""

    name: str
    kind: str
    help: str = ""
    default: str = ""
    is_required: bool = False
    is_on: bool = False
    choices: tuple[str, ...] = ()
    longest: int | None = None


@dataclass(frozen=True)
class Filled:
    """What came of a form: the payload as JSON text, or what is wrong, by field ("" = of the whole)."""

    payload: str
    problems: dict[str, list[str]] = field(default_factory=dict)


def fields_of(schema: Schema) -> list[Field] | None:
    """The fields of an object, in the order of the worker's code; None where the schema names none."""
    root = _resolved(schema, schema)
    properties = root.get("properties")
    if not isinstance(properties, dict):
        return None
    required = root.get("required", [])
    told = root.get(ORDER)
    order = [name for name in told if isinstance(name, str)] if isinstance(told, list) else []
    names = [name for name in dict.fromkeys([*order, *properties]) if name in properties]
    return [_field(name, properties[name], schema, name in required) for name in names]


def fill(fields: Sequence[Field], schema: Schema, given: Mapping[str, Sequence[str]]) -> Filled:
    """The payload from what was filled in. `given`: name of the field -> its values."""
    members: dict[str, str] = {}
    wrong: dict[str, list[str]] = {}
    for item in fields:
        try:
            text = _member(item, given.get(item.name, ()))
        except RefusedError as error:
            wrong[item.name] = [error.message]
            continue
        if text is not None:
            members[item.name] = text
    payload = "{" + ", ".join(f"{json.dumps(name)}: {text}" for name, text in members.items()) + "}"
    for name, told in problems_by_field(payload, schema, fields).items():
        wrong.setdefault(name, []).extend(told)
    return Filled(payload, wrong)


def problems_by_field(payload: str, schema: Schema, fields: Sequence[Field]) -> dict[str, list[str]]:
    """What the schema refuses, at the field in which it stands."""
    found: dict[str, list[str]] = {}
    names = {item.name for item in fields}
    for problem in problems(parsed(payload), schema):
        name = next((part for part in re.findall(r"^payload\.([^.\[\s]+)", problem) if part in names), "")
        found.setdefault(name, []).append(problem.removeprefix("payload."))
    return found


def _field(name: str, raw: Any, schema: Schema, is_required: bool) -> Field:
    outer = _resolved(raw, schema)
    options = [option for option in _options(outer, schema) if option.get("type") != "null"]
    inner = options[0] if len(options) == 1 else {}
    types = {str(option.get("type")) for option in options}
    default = outer.get("default")
    kind = "id" if types == {"string", "integer"} else _kind(name, inner, schema)
    choices = inner if kind == "choice" else _resolved(inner.get("items"), schema) if kind == "choices" else {}
    longest = inner.get("maxLength")
    return Field(
        name=name,
        kind=kind,
        help=str(outer.get("description") or inner.get("description") or ""),
        default=_default_text(default),
        is_required=is_required,
        is_on=default is True,
        choices=tuple(_choice_text(choice) for choice in choices.get("enum", ())),
        longest=longest if isinstance(longest, int) else None,
    )


def _kind(name: str, inner: Schema, schema: Schema) -> str:
    if inner.get("enum"):
        return "choice"
    if inner.get("type") == "string":
        return _text_kind(name, inner)
    if inner.get("type") in ("integer", "number", "boolean"):
        return str(inner["type"])
    if inner.get("type") == "array":
        items = _resolved(inner.get("items"), schema)
        if items.get("enum"):
            return "choices"
        if items.get("type") == "string":
            return "list"
    return "json"


def _text_kind(name: str, inner: Schema) -> str:
    if name in _PATH_NAMES or name.endswith("_path"):
        return "path" if name in _PATH_NAMES else "text"
    longest = inner.get("maxLength")
    if name.endswith("url"):
        return "text"
    is_long = longest > _LONG_TEXT if isinstance(longest, int) else name in _LONG_NAMES
    return "long" if is_long and "format" not in inner else "text"


def _member(item: Field, values: Sequence[str]) -> str | None:
    """One member as JSON text; None where it is left out."""
    if item.kind == "boolean":
        is_on = "on" in values
        return None if is_on == item.is_on and not item.is_required else json.dumps(is_on)
    if item.kind == "choices":
        chosen = [value for value in values if value]
        return json.dumps(chosen, ensure_ascii=False) if chosen else None
    text = values[0] if values else ""
    if item.kind != "long":
        text = text.strip()
    if not text.strip():
        return None
    if item.kind == "list":
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return json.dumps(lines, ensure_ascii=False)
    if item.kind == "json":
        parsed(text)
        return text
    if item.kind in ("integer", "number"):
        return _number(text, item.kind)
    if item.kind == "choice" or (item.kind == "id" and _WHOLE.fullmatch(text)):
        return _choice_json(text, item)
    return json.dumps(text.replace("\r\n", "\n"), ensure_ascii=False)


def _number(text: str, kind: str) -> str:
    text = text.replace(",", ".") if text.count(",") == 1 and "." not in text else text
    if not (_WHOLE if kind == "integer" else _NUMBER).fullmatch(text):
        raise RefusedError(f"{text[:40]!r} is not a {'whole ' if kind == 'integer' else ''}number", "write digits")
    return text


def _choice_json(text: str, item: Field) -> str:
    """A choice as the schema has it: numbers stay numbers."""
    return text if _WHOLE.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def _choice_text(choice: Any) -> str:
    return choice if isinstance(choice, str) else json.dumps(choice)


def _default_text(default: Any) -> str:
    if default is None or default == [] or isinstance(default, bool):
        return ""
    return default if isinstance(default, str) else json.dumps(default, ensure_ascii=False)


def _options(schema: Schema, root: Schema) -> list[Schema]:
    """The alternatives of a field; itself where it names none."""
    if isinstance(options := schema.get("anyOf"), list):
        return [_resolved(option, root) for option in options]
    return [schema]


def _resolved(schema: Any, root: Schema) -> Schema:
    """The schema behind references within the document, with what stands beside the reference."""
    beside: Schema = {}
    for _ in range(_DEEPEST):
        if not isinstance(schema, dict):
            return beside
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return schema | beside
        beside = {name: value for name, value in schema.items() if name not in ("$ref", "$defs")} | beside
        target: Any = root
        for part in reference[2:].split("/"):
            target = target.get(part, {}) if isinstance(target, dict) else {}
        schema = target
    return beside
