"""What forms and addresses hold, read without trust: texts, whole numbers, ids."""

from collections.abc import Container
from uuid import UUID

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException

SMALLINT = range(-32768, 32768)  # priorities
LONGEST_REASON = 1000  # characters
_MOST_DIGITS = 19  # of a bigint


def text_of(form: FormData, name: str, limit: int | None = None) -> str:
    """A field of a form, cut; a file in its place is none. NUL is in no text that the database holds."""
    value = form.get(name, "")
    return value.replace("\0", "")[:limit] if isinstance(value, str) else ""


def id_of(form: FormData, name: str = "request_id") -> UUID:
    """A field that a page has filled in.

    Raises:
        HTTPException: 400, it is none of ours.
    """
    try:
        return UUID(text_of(form, name))
    except ValueError:
        raise HTTPException(400) from None


def whole_number(text: str, allowed: Container[int]) -> int | None:
    """The number that a text writes in digits; None where it writes none, or one that is not allowed."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS):
        return None
    return int(text) if int(text) in allowed else None
