"""A payload that was shown without its secrets and comes back edited: what was hidden and left alone is put back."""

import json
from typing import Any

from services.admin.views.json_tree import pretty
from sidelinja_jobs.cli.exits import RefusedError
from sidelinja_jobs.cli.payloads import Number, check_content, parsed
from sidelinja_jobs.redaction import MASK, redact_json


def shown_for_edit(payload: str) -> str:
    """The payload as it stands in the form."""
    return pretty(redact_json(payload))


def edited_payload(text: str, original: str) -> str:
    """The JSON text of the new payload. Where nothing was hidden it is what was typed, number by number.

    Raises:
        RefusedError: it is no JSON that the queue may hold, or a mask stands where nothing was hidden.
    """
    check_content(text)
    if MASK not in text:
        return text
    value = _restored(parsed(text), parsed(redact_json(original)), parsed(original))
    restored = _as_json(value)
    if MASK in restored and MASK not in original:
        raise RefusedError(f"the payload holds {MASK}, which stands for a hidden value", "write the value itself there")
    return restored


def _restored(edited: Any, shown: Any, original: Any) -> Any:
    """The edited value; where it is what was shown, the original behind it."""
    if edited == shown and type(edited) is type(shown):
        return original
    if isinstance(edited, dict) and isinstance(shown, dict) and isinstance(original, dict):
        return {
            name: _restored(value, shown[name], original[name]) if name in shown else value
            for name, value in edited.items()
        }
    if isinstance(edited, list) and isinstance(shown, list) and isinstance(original, list):
        pairs = len(shown)
        return [
            _restored(value, shown[number], original[number]) if number < pairs else value
            for number, value in enumerate(edited)
        ]
    return edited


def _as_json(value: Any) -> str:
    """JSON text, numbers as they were written."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)}: {_as_json(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_as_json, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
