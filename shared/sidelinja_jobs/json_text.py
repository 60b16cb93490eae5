"""JSON at the edge of the database.

PostgreSQL's jsonb and text refuse NUL characters, lone surrogates and NaN. What comes in as a payload is refused with
the place of the fault; what is ours to record (results, error texts) is cleaned, so that recording never fails.
"""

import contextlib
import math
import re
from collections.abc import Iterator
from typing import Any

import msgspec
from psycopg.types.json import Jsonb

from sidelinja_jobs.errors import RefusedError

_SUSPECT = re.compile(rb"null|\\u0000|data:", re.IGNORECASE)
_NUL = b"\\u0000"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
REPLACEMENT = "\ufffd"
PATH_LIMIT = 1024  # characters; what is longer is no path but data
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")  # also the URL-safe alphabet
_BLOB_LENGTH = 1024
_DATA_URL = re.compile(r"\s*data:[\w.+/-]*(;[\w.+=-]*)*,", re.IGNORECASE)
_INTEGER_DIGITS = 300  # readers of JSON take such a number for infinite or refuse it
_BLOB_LINE = 60  # characters: base64 is wrapped at 64 or 76, words are shorter


def clean_text(text: str, limit: int | None = None) -> str:
    """Text that the database can hold, cut to `limit` characters (code points, so never inside one)."""
    if limit is not None and len(text) > limit:
        text = text[: limit - 1] + "…"
    return _UNSTORABLE.sub(REPLACEMENT, text)


def clean_value(value: Any) -> Any:
    """A JSON value that the database can hold: bad characters replaced, NaN and infinities as null."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {clean_text(str(key)): clean_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean_value(item) for item in value]
    return value


def as_jsonb(value: Any) -> Jsonb:
    """A value for a jsonb parameter. It must be storable (`clean_value` or `check_payload`)."""
    return Jsonb(value, dumps=msgspec.json.encode)


def encode_result(value: Any) -> msgspec.Raw:
    """What a handler returned as JSON that the database can hold: msgspec structs too, cleaned as `clean_value`.

    Raises:
        TypeError, RecursionError, OverflowError: it cannot become JSON.
    """
    try:
        text = msgspec.json.encode(value)  # NaN and infinities as null
    except UnicodeEncodeError:  # a lone surrogate
        text = _NUL
    if _NUL in text:
        text = msgspec.json.encode(clean_value(msgspec.to_builtins(value, str_keys=True)))
    return msgspec.Raw(text)


def encode_payload(value: Any) -> msgspec.Raw:
    """A payload as JSON, after `check_payload`.

    Raises:
        RefusedError: it must not enter the queue.
        TypeError, RecursionError, OverflowError: it cannot become JSON.
    """
    with contextlib.suppress(UnicodeEncodeError):  # a lone surrogate, which the check names
        text = msgspec.json.encode(value)
        # What is this short holds no blob, path or number that is too long; NaN would have become null.
        if len(text) <= _INTEGER_DIGITS and text[:1] == b"{" and not _SUSPECT.search(text):
            return msgspec.Raw(text)
    content = msgspec.to_builtins(value, str_keys=True)
    check_payload(content)
    return msgspec.Raw(msgspec.json.encode(content))


def decode_payload(text: str, decoder: msgspec.json.Decoder[Any]) -> Any:
    """The payload of a claimed job, whose text comes from the database.

    Raises:
        RefusedError, msgspec.MsgspecError, RecursionError: `check_payload` refuses it, or it does not fit the type.
    """
    # What is this short holds no blob, path or number that is too long, and jsonb neither NUL nor lone surrogates.
    if len(text) > _INTEGER_DIGITS or text[:1] != "{" or "data:" in text.lower():
        check_payload(msgspec.json.decode(text))
    return decoder.decode(text)


def check_payload(payload: Any) -> None:
    """Refuses what must not enter the queue, whatever the job type.

    Raises:
        RefusedError: no object; NUL, lone surrogate, NaN; a data: URL, a base64 blob or a path that is too long.
            The message names the place.
    """
    if not isinstance(payload, dict):
        raise RefusedError(f"payload is a {type(payload).__name__}, expected an object with named fields")
    for place, value in _walk(payload, "payload"):
        problem = _problem(place, value)
        if problem:
            raise RefusedError(f"{place} {problem}")


def _walk(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield f"a key in {place}", key
            yield from _walk(item, f"{place}.{clean_text(str(key), 100)}")
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _walk(item, f"{place}[{index}]")
    else:
        yield place, value


def _problem(place: str, value: Any) -> str | None:
    if isinstance(value, float) and not math.isfinite(value):
        return f"is {value}, which JSON cannot hold"
    if isinstance(value, int) and abs(value) >= 10**_INTEGER_DIGITS:
        return f"is a whole number of more than {_INTEGER_DIGITS} digits; put it into a string"
    if not isinstance(value, str):
        return None
    if bad := _UNSTORABLE.search(value):
        kind = "a NUL character" if bad.group() == "\x00" else "a lone surrogate"
        return f"holds {kind} at character {bad.start()}; the database cannot store it: remove it"
    if _DATA_URL.match(value):
        return "is a data: URL; put the data into a file and give its path"
    if place.rpartition(".")[2].endswith("path") and len(value) > PATH_LIMIT:
        return f"has {len(value)} characters, a path may have {PATH_LIMIT}"
    if is_blob(value):
        return f"looks like {len(value)} characters of base64; put the data into a file and give its path"
    return None


def is_blob(text: str) -> bool:
    """Whether a text is base64 data: 1,024 characters or more of its alphabet, in long unbroken lines."""
    lines = text.split()
    length = sum(map(len, lines))
    is_long = length >= _BLOB_LENGTH and length / len(lines) >= _BLOB_LINE
    return is_long and _BASE64.fullmatch("".join(lines)) is not None
