"""Reads what a request carries: its body as JSON, its parameters as texts, both held against the structs of shapes.

The JSON is kept as it was written beside what it means, since a payload's numbers must arrive unharmed.
"""

import asyncio
import re
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec
from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect, Request

from services.admin.api.problems import ProblemError, field_error
from sidelinja_jobs.cli import payloads
from sidelinja_jobs.cli.exits import RefusedError
from sidelinja_jobs.json_text import clean_text

S = TypeVar("S", bound=msgspec.Struct)

SECONDS = 30.0  # for a body to arrive
_LARGE = 128 * 1024  # bytes; more is parsed beside the event loop
_INTEGER = re.compile(r"-?[0-9]{1,18}")
_AT = re.compile(r"^(.*?)(?: - at `(?:key in )?\$\.?(.*)`)?$", re.DOTALL)
_NO_TEXT = "it holds a NUL character or half of a character"
_QUOTED = re.compile(r"`([^`]*)`")


@dataclass(frozen=True)
class Body(Generic[S]):
    """`value` is what was asked for; `tree` the same JSON as plain values, numbers as they were written."""

    value: S
    tree: Any


async def read_body(request: Request, kind: type[S], limit: int) -> Body[S]:
    """The body of a request.

    Raises:
        ProblemError: it is no JSON, too large, too slow, or does not fit; the problem names the field.
    """
    _check_headers(request)
    data = await _receive(request, limit)
    if len(data) > _LARGE:
        return await asyncio.to_thread(parse_body, data, kind)
    return parse_body(data, kind)


def parse_body(data: bytes, kind: type[S]) -> Body[S]:
    """The bytes of a body as `kind`.

    Raises:
        ProblemError: as `read_body`.
    """
    try:
        tree = payloads.parsed(payloads.from_bytes(data, "the body"))
        value = msgspec.json.decode(data, type=kind)
    except RefusedError as error:
        raise ProblemError("invalid_json", error.message, error.next_step) from error
    except msgspec.ValidationError as error:
        raise field_error("invalid_body", *_place_of(error), "correct the field") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProblemError("invalid_json", f"the body is not JSON: {error}", "correct it") from error
    for place, text in _texts(tree, ""):
        if clean_text(text) != text:
            raise field_error("invalid_body", place, _NO_TEXT, "remove it")
    return Body(value, tree)


def read_parameters(query: QueryParams, kind: type[S]) -> S:
    """The parameters of a query.

    Raises:
        ProblemError: one is unknown, given twice, or has a wrong value.
    """
    hints = typing.get_type_hints(kind)
    values: dict[str, Any] = {}
    for name in query:
        hint = _plain(hints.get(name))
        given = query.getlist(name)
        if hint is not list and len(given) > 1:
            raise wrong_parameter(name, f"it is given {len(given)} times, expected once")
        values[name] = given if hint is list else _value(given[0], hint)
    try:
        result = msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        raise wrong_parameter(*_place_of(error)) from error
    for place, text in _texts(values, ""):
        if clean_text(text) != text:
            raise wrong_parameter(place, _NO_TEXT)
    return result


def wrong_parameter(name: str, message: str) -> ProblemError:
    """The problem of a parameter or header that is wrong."""
    return field_error("invalid_parameter", name, message, "correct the parameter")


def _place_of(error: msgspec.ValidationError) -> tuple[str, str]:
    """Where and what, from a message such as: Expected `int`, got `str` - at `$.jobs[0].priority`."""
    match = _AT.match(str(error))
    message, place = (match[1], match[2] or "") if match else (str(error), "")
    if " field `" in message and (name := _QUOTED.search(message)):  # required or unknown: named in the message
        place = f"{place}.{name[1]}" if place else name[1]
    return place or "the body", message


def _plain(hint: Any) -> Any:
    """The type that stands behind Annotated, a union with None and the members of a list."""
    if typing.get_origin(hint) is typing.Annotated:
        return _plain(typing.get_args(hint)[0])
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        options = [option for option in typing.get_args(hint) if option not in (type(None), msgspec.UnsetType)]
        return _plain(options[0])
    return typing.get_origin(hint) or hint


def _value(text: str, hint: Any) -> Any:
    """A text as what the parameter wants; what does not fit stays text and is refused by its type."""
    if hint is int and _INTEGER.fullmatch(text):
        return int(text)
    if hint is bool and text in ("true", "false"):
        return text == "true"
    return text


def _check_headers(request: Request) -> None:
    content_type = request.headers.get("content-type", "")
    media_type, _, parameter = (part.strip().lower() for part in content_type.partition(";"))
    if media_type != "application/json" or parameter.replace('"', "") not in ("", "charset=utf-8"):
        raise ProblemError(
            "wrong_content_type",
            f"Content-Type is {content_type!r}, expected application/json",
            "send JSON in UTF-8, with the header Content-Type: application/json",
        )
    if (encoding := request.headers.get("content-encoding", "identity").lower()) != "identity":
        raise ProblemError("wrong_content_type", f"Content-Encoding is {encoding!r}, expected none", "send it as it is")


async def _receive(request: Request, limit: int) -> bytes:
    """The bytes of the body; never more than `limit` are kept."""
    parts, size = [], 0
    if int(request.headers.get("content-length", 0)) > limit:  # the server has checked that it is a number
        raise _too_large(limit)
    try:
        async with asyncio.timeout(SECONDS):
            async for part in request.stream():
                size += len(part)
                if size > limit:
                    raise _too_large(limit)
                parts.append(part)
    except TimeoutError as error:
        raise ProblemError(
            "body_too_slow", f"the body did not arrive within {SECONDS:g} seconds", "send it anew"
        ) from error
    except ClientDisconnect as error:  # nobody reads the answer
        raise ProblemError("body_too_slow", "the connection was closed within the body") from error
    return b"".join(parts)


def _too_large(limit: int) -> ProblemError:
    """The connection stays open: closed with data unread, it would take the answer away with it."""
    return ProblemError(
        "body_too_large",
        f"the body is over the limit of {limit} bytes",
        "leave the data in a file and put its path into the payload, or send fewer jobs",
    )


def _texts(tree: Any, place: str) -> Iterator[tuple[str, str]]:
    """Every text outside of payloads, which are looked at with the rules of their own."""
    if isinstance(tree, dict):
        for name, value in tree.items():
            if name != "payload":
                yield from _texts(value, f"{place}.{name}" if place else name)
    elif isinstance(tree, list):
        for index, value in enumerate(tree):
            yield from _texts(value, f"{place}[{index}]")
    elif isinstance(tree, str):
        yield place, tree
