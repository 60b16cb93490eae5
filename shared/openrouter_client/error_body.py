"""Reading an error out of an answer's body, wherever it stands and whichever members it lacks."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from openrouter_client.unicode_text import sound_text

UNREADABLE = "unreadable_stream"  # our own word, for an answer that a model has worked for
LONGEST_PART = 500  # characters of a server's or provider's text that a message repeats
_HTML_TAG = re.compile(r"<[^<>]{0,300}>")


@dataclass(frozen=True)
class AnswerError:
    """An error object. Every member may be missing or of another type than documented."""

    fields: Mapping[str, Any]

    @cached_property
    def metadata(self) -> Mapping[str, Any]:
        return as_mapping(self.fields.get("metadata"))

    @cached_property
    def availability(self) -> Mapping[str, Any]:
        return as_mapping(self.fields.get("availability")) or as_mapping(self.metadata.get("availability"))

    @property
    def is_retryable(self) -> bool | None:
        value = self.availability.get("retryable")
        return value if isinstance(value, bool) else None

    @property
    def types(self) -> list[str]:
        """What the error calls itself, the most exact name first."""
        candidates = (
            self.metadata.get("error_type"),
            self.fields.get("error_type"),
            self.availability.get("error_type"),
            self.availability.get("code"),
            self.fields.get("code"),
            self.fields.get("type"),
        )
        return [value for value in candidates if isinstance(value, str) and value and not value.isdecimal()]

    @property
    def code(self) -> int | None:
        """The status that the body names."""
        for holder, name in ((self.fields, "code"), (self.fields, "http_status"), (self.availability, "http_status")):
            value = holder.get(name)
            if isinstance(value, str) and value.isdecimal() and len(value) == 3:
                value = int(value)
            if isinstance(value, int) and not isinstance(value, bool) and 300 <= value <= 599:
                return value
        return None

    @property
    def message(self) -> str:
        return _text(self.fields.get("message"))

    @property
    def raw(self) -> str:
        """The provider's own words, which the message often hides."""
        return _text(self.metadata.get("raw"))

    @property
    def provider(self) -> str | None:
        name = self.metadata.get("provider_name")
        return _text(name) or None

    @property
    def words(self) -> str:
        """All that the error says, to search in."""
        reasons = " ".join(_texts(self.metadata.get("reasons")))
        return " ".join(part for part in (self.message, self.raw, reasons) if part)

    def names(self, member: str) -> list[str]:
        """The texts of a list such as `excluded_by`, which stands in the availability or the metadata."""
        for holder in (self.availability, self.metadata, self.fields):
            if texts := _texts(holder.get(member)):
                return texts
        return []


def find_error(body: object) -> AnswerError | None:
    """The error at the top of a body, or of a choice beside what it said; also a bare text, as some servers send it."""
    value = as_mapping(body).get("error")
    if isinstance(value, str) and value:
        return AnswerError({"message": value})
    return AnswerError(value) if isinstance(value, Mapping) and value else None


def error_in_text(body: object) -> AnswerError:
    """An error from a body without an error object: a page of HTML, plain text, FastAPI's `detail`, nothing."""
    if isinstance(body, Mapping):
        return AnswerError({"message": body.get("message") or body.get("detail"), "code": body.get("code")})
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
    if not isinstance(text, str):
        return AnswerError({})
    return AnswerError({"message": _HTML_TAG.sub(" ", text[:20_000]) if text.lstrip().startswith("<") else text})


def as_mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str:
    if value is None or isinstance(value, bool):
        return ""
    text = " ".join(sound_text(str(value)[: 8 * LONGEST_PART]).split())
    return text if len(text) <= LONGEST_PART else text[: LONGEST_PART - 1] + "…"


def _texts(value: object) -> list[str]:
    items = value if isinstance(value, list | tuple) else [value]
    return [_text(item) for item in items[:20] if isinstance(item, str | int | float) and _text(item)]
