"""The key leaves this package in one header and nowhere else: every text that is stored, logged or raised goes through
here first.

The key itself is looked for, and everything that looks like one: a server may repeat a key that another one was given.
"""

import json
import re
from typing import Any
from urllib.parse import quote

from openrouter_client.profile import Secret

HIDDEN = "(key hidden)"
_LONG_KEY = 8  # a shorter one ("none", "x") is replaced as a whole word only, so that it does not garble other words
# Long and with a digit, so that neither "bearer certificate" nor a hyphenated word of an answer is one. The search for
# the digit is bounded: a hostile text must not cost the square of its length.
_LOOKS_LIKE_A_KEY = re.compile(r"\b(?:sk-|(?i:(bearer)\s+))(?=[\w.~+/*=-]{0,60}[0-9])[\w.~+/*=-]{12,}", re.ASCII)


def redact(text: str, key: Secret | None = None) -> str:
    """The text without the key."""
    if key is not None:
        text = _without(text, key.reveal())
    return _LOOKS_LIKE_A_KEY.sub(lambda found: f"{found[1]} {HIDDEN}" if found[1] else HIDDEN, text)


def is_long(key: str) -> bool:
    """Whether a key can be one. A short word in its place is no secret where a model says it, only in an error."""
    return len(key.strip()) >= _LONG_KEY


def redact_value(value: Any, key: Secret | None = None) -> Any:
    """A JSON value with every text in it redacted, names of fields included."""
    if isinstance(value, str):
        return redact(value, key)
    if isinstance(value, dict):
        return {redact(name, key): redact_value(item, key) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [redact_value(item, key) for item in value]
    return value


def _without(text: str, key: str) -> str:
    stripped = key.strip()
    if not stripped:
        return text
    forms = {key, stripped, quote(stripped, safe=""), json.dumps(stripped)[1:-1]}
    for form in sorted(forms, key=len, reverse=True):
        if is_long(key):
            text = text.replace(form, HIDDEN)
        else:
            text = re.sub(rf"(?<![\w-]){re.escape(form)}(?![\w-])", HIDDEN, text)
    return text
