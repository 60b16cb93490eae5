"""Text and JSON that can be sent as UTF-8 and stored by PostgreSQL, whatever a paste or a model's answer held."""

import json
import math
import re
from typing import Any

DEEPEST = 64  # levels of JSON; what is deeper is no answer, and would break whoever walks through it
_SURROGATE = re.compile("[\ud800-\udfff]")


def sound_text(text: str) -> str:
    """The same text; halves of a surrogate pair that stand together are joined, lone ones and NUL become U+FFFD."""
    if _SURROGATE.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\x00", "\ufffd")


def sound_value(value: Any, depth: int = 0) -> Any:
    """A JSON value with every text in it sound, names of fields included; NaN and infinities become null.

    Raises:
        ValueError: it is nested more than 64 levels deep.
    """
    if isinstance(value, str):
        return sound_text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict | list | tuple) and depth >= DEEPEST:
        raise ValueError(f"JSON is nested more than {DEEPEST} levels deep")
    if isinstance(value, dict):
        return {sound_text(str(key)): sound_value(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [sound_value(item, depth + 1) for item in value]
    return value


def parse_json(text: str | bytes) -> Any:
    """A received JSON text, its lone surrogates still in place (halves of a pair may come in two pieces).

    Raises:
        ValueError: it is not JSON, or too deep.
    """
    try:
        return json.loads(text.decode("utf-8", "replace") if isinstance(text, bytes) else text)
    except RecursionError:
        raise ValueError("JSON is nested too deeply") from None
