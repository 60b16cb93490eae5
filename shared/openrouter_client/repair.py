"""From the text of an answer to an object: as it stands, else out of its wrapping, else mended.

A text that was cut off at its token budget must never come here: mending closes what is open, and half a document
would look whole. `classify` has sorted such answers out, and `read_object` insists on it.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import json_repair

from openrouter_client.unicode_text import DEEPEST, sound_value

LONGEST_TEXT = 4_000_000  # characters; no answer of ours comes near it
LONGEST_MENDED = 200_000  # mending costs the square of the length where there are brackets alone
_FENCED = re.compile(r"```[ \t]{0,9}(?:json|JSON)?[ \t]{0,9}\r?\n(.*?)```", re.DOTALL)
_SHOWN = 80  # characters of an answer that a message repeats


class NoObjectError(ValueError):
    """There is no object in the text; the message says what there is."""


@dataclass(frozen=True)
class ReadObject:
    """The object; `is_repaired` when the text had to be mended or unwrapped."""

    data: dict[str, Any]
    is_repaired: bool


def read_object(text: str, *, is_whole: bool) -> ReadObject:
    """The object that a text is, or holds.

    Raises:
        NoObjectError: there is none, or the text is not whole.
    """
    if not is_whole:
        raise NoObjectError("the answer was cut off")
    if len(text) > LONGEST_TEXT:
        raise NoObjectError(f"the answer has {len(text)} characters, at most {LONGEST_TEXT} are read")
    stripped = text.strip().removeprefix("\ufeff").strip()
    exact = _load(stripped)
    if isinstance(exact, dict):
        return ReadObject(exact, is_repaired=stripped != text.strip())
    if exact is not _NOTHING:
        raise NoObjectError(f"the answer is a JSON {_kind(exact)}, expected an object")
    for read in (_load, _mend):
        for inner in _unwrapped(stripped):
            found = read(inner)
            if isinstance(found, dict) and found:
                return ReadObject(found, is_repaired=True)
    raise NoObjectError(f"the answer holds no JSON object; it begins {stripped[:_SHOWN]!r}")


_NOTHING = object()


def _load(text: str) -> Any:
    try:
        # NaN and the infinities are no JSON; what is nested too deeply is refused by `sound_value`.
        return sound_value(json.loads(text, parse_constant=lambda _: None))
    except (ValueError, RecursionError):
        return _NOTHING


def _unwrapped(text: str) -> Iterator[str]:
    """What may be the object: inside a fence, or from the first brace to the last."""
    for fenced in _FENCED.finditer(text):
        if fenced[1].lstrip().startswith("{"):
            yield fenced[1].strip()
    start, end = text.find("{"), text.rfind("}")
    if 0 <= start < end:
        yield text[start : end + 1]


def _mend(text: str) -> dict[str, Any] | None:
    """The mended object. What leaves a bracket open was cut off, whatever the server says, and is not mended."""
    if len(text) > LONGEST_MENDED or not _is_mendable(text):
        return None
    try:
        mended = sound_value(json_repair.loads(text, skip_json_loads=True))
    except (ValueError, RecursionError, IndexError):
        return None
    return mended if isinstance(mended, dict) else None


def _is_mendable(text: str) -> bool:
    """Whether every bracket outside of strings has its end, and not too many are open at once."""
    open_brackets, in_string, is_escaped = 0, False, False
    for letter in text:
        if is_escaped:
            is_escaped = False
        elif letter == "\\":
            is_escaped = in_string
        elif letter == '"':
            in_string = not in_string
        elif not in_string:
            open_brackets += (letter in "{[") - (letter in "}]")
        if open_brackets > DEEPEST:
            return False
    return open_brackets <= 0


def _kind(value: object) -> str:
    names = {list: "array", str: "string", bool: "boolean", type(None): "null"}
    return names.get(type(value), "number")
