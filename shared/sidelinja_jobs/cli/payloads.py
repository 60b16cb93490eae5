"""From what a person typed to the JSON text of a payload.

The text is sent as it was written: it is parsed only to be checked, so numbers of any size arrive unharmed.
"""

import json
from collections.abc import Iterable
from typing import Any

from sidelinja_jobs import errors, json_text
from sidelinja_jobs.cli.exits import RefusedError
from sidelinja_jobs.cli.schemas import wants_text

# Above the largest limit of any type; protects this process from endless input.
MOST_BYTES = 64 * 1024 * 1024


class Number(str):
    """A JSON number as it was written."""

    __slots__ = ()


def from_json(text: str, source: str) -> str:
    """The text itself, once it is known to be one JSON value without doubtful parts.

    Raises:
        RefusedError: it is not JSON; the message names line and column.
    """
    _parse(text, source)
    return text


def from_bytes(data: bytes, source: str) -> str:
    """The JSON text of a file."""
    if len(data) > MOST_BYTES:
        raise RefusedError(
            f"{source} is larger than {MOST_BYTES} bytes", "leave the data in a file and put its path into the payload"
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RefusedError(
            f"{source} is not UTF-8: byte {error.start} is 0x{data[error.start]:02x}", "convert the file to UTF-8"
        ) from error
    return from_json(text, source)


def from_pairs(pairs: Iterable[str], schema: dict[str, Any] | None) -> str:
    """One JSON object from `key=value` arguments.

    A value that is JSON is taken as JSON, anything else as text. Where the type's schema wants text, it is text.

    Raises:
        RefusedError: not a pair, a key given twice, or a value that begins like JSON and is not.
    """
    members: dict[str, str] = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator or not key:
            raise RefusedError(f"{pair!r} is not key=value", "write for example path=episode.mp3, or use --payload")
        if key in members:
            raise RefusedError(f"the key {key!r} is given twice", "give it once")
        members[key] = _value(key, value, schema)
    return "{" + ", ".join(f"{json.dumps(key)}: {value}" for key, value in members.items()) + "}"


def check_content(payload: str) -> None:
    """Refuses what the queue must not hold: NUL, lone surrogates, `data:` URLs, base64 blobs, endless paths.

    Raises:
        RefusedError: names the place in the payload.
    """
    try:
        json_text.check_payload(parsed(payload))
    except errors.RefusedError as error:
        raise RefusedError(str(error)) from error
    except RecursionError as error:
        raise RefusedError("the payload is nested too deeply", "make it flatter") from error


def parsed(payload: str) -> Any:
    """The payload as Python values, numbers as they were written."""
    return _parse(payload, "payload")


def _value(key: str, value: str, schema: dict[str, Any] | None) -> str:
    if wants_text(schema, key, value) and not _is_json_text(value):
        return json.dumps(value)
    try:
        _parse(value, key)
    except RefusedError as error:
        if value.lstrip()[:1] in ("{", "["):
            raise RefusedError(
                f"the value of {key} begins like JSON and is not: {error.message}",
                f"correct it, or give text as a JSON string: {key}='\"…\"'",
            ) from error
        return json.dumps(value)
    return value


def _is_json_text(value: str) -> bool:
    try:
        return type(_parse(value, "value")) is str
    except RefusedError:
        return False


def _parse(text: str, source: str) -> Any:
    try:
        return json.loads(
            text,
            parse_int=Number,
            parse_float=Number,
            parse_constant=_refuse_constant,
            object_pairs_hook=_object,
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        near = text[max(0, error.pos - 15) : error.pos + 15]
        raise RefusedError(
            f"{source} is not JSON: {error.msg.lower()} at {where}, near {near!r}", "correct it and try again"
        ) from error
    except RecursionError as error:
        raise RefusedError(f"{source} is nested too deeply", "make it flatter") from error


def _refuse_constant(name: str) -> Any:
    raise RefusedError(f"{name} is not a JSON number", "use null or leave the field out")


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(members)
    if len(result) < len(members):
        seen: set[str] = set()
        for key, _ in members:
            if key in seen:
                raise RefusedError(f"the key {key!r} stands twice in one object", "keep one of them")
            seen.add(key)
    return result
