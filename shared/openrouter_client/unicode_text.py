"""Text that can be sent as UTF-8 and stored by PostgreSQL, whatever a paste or a model's answer held."""

import re
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")


def sound_text(text: str) -> str:
    """The same text; halves of a surrogate pair that stand together are joined, lone ones and NUL become U+FFFD."""
    if _SURROGATE.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\x00", "\ufffd")


def sound_value(value: Any) -> Any:
    """A JSON value with every text in it sound, names of fields included. Numbers are left as they are."""
    if isinstance(value, str):
        return sound_text(value)
    if isinstance(value, dict):
        return {sound_text(str(key)): sound_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [sound_value(item) for item in value]
    return value
