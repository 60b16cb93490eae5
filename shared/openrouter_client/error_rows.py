"""What each kind of error means: tables by the error's own type and by its code, and the few texts that must be read.

Sources: OpenRouter's list of error types and its page on errors; the types of llama.cpp, vLLM, Ollama and OpenAI for
servers of one's own.
"""

import re
from dataclasses import dataclass
from enum import Enum

from openrouter_client.error_body import AnswerError


class Way(Enum):
    """What an error asks for, before it is known whether a wait was named."""

    TRANSIENT = "transient"
    TIMED_OUT = "timed_out"  # transient, but perhaps paid for: never at no cost
    PERMANENT = "permanent"
    NO_KEY = "no_key"
    NO_CREDIT = "no_credit"
    TOO_LONG = "too_long"
    TRUNCATED = "truncated"
    OTHER_FORMAT = "other_format"


@dataclass(frozen=True)
class Row:
    way: Way
    error_class: str


CONFIG = Row(Way.PERMANENT, "config")
GONE = Row(Way.PERMANENT, "model_unavailable")
FILTERED = Row(Way.PERMANENT, "policy_filtered")
REFUSED = Row(Way.PERMANENT, "refused")
TOO_LARGE = Row(Way.PERMANENT, "too_long")
TOO_LONG = Row(Way.TOO_LONG, "too_long")
TRUNCATED = Row(Way.TRUNCATED, "truncated")
NO_KEY = Row(Way.NO_KEY, "auth")
NO_CREDIT = Row(Way.NO_CREDIT, "credits")
BUSY = Row(Way.TRANSIENT, "rate_limited")
UPSTREAM = Row(Way.TRANSIENT, "upstream")
TIMED_OUT = Row(Way.TIMED_OUT, "timeout")
OTHER_FORMAT = Row(Way.OTHER_FORMAT, "invalid_output")

_TYPES: dict[Row, str] = {
    TOO_LONG: "context_length_exceeded string_too_long token_limit_exceeded exceed_context_size_error",
    TRUNCATED: "max_tokens_exceeded",
    CONFIG: "invalid_prompt wrong_endpoint precondition_failed unprocessable invalid_image image_too_large "
    "image_too_small unsupported_image_format image_not_found image_download_failed",
    GONE: "model_not_found no_endpoints model_deprecated model_unavailable_upstream free_variant_ended",
    FILTERED: "privacy_restricted constraint_filtered region_restricted",
    REFUSED: "refusal content_policy_violation content_filter",
    TOO_LARGE: "payload_too_large",
    NO_KEY: "authentication authentication_error invalid_api_key unauthorized",
    NO_CREDIT: "payment_required insufficient_quota insufficient_credits",
    BUSY: "rate_limit_exceeded rate_limit_error capacity_exhausted",
    UPSTREAM: "provider_overloaded provider_unavailable temporarily_unavailable server server_error "
    "internal_server_error overloaded_error unmapped",
    TIMED_OUT: "timeout",
}
ROW_BY_TYPE = {name: row for row, names in _TYPES.items() for name in names.split()}

_CODES: dict[Row, tuple[int, ...]] = {
    CONFIG: (400, 409, 412, 422),
    NO_KEY: (401,),
    NO_CREDIT: (402,),
    REFUSED: (403,),
    GONE: (404, 410),
    TIMED_OUT: (408, 504, 524),
    TOO_LARGE: (413,),
    BUSY: (429,),
    UPSTREAM: (425, 499),
}
ROW_BY_CODE = {code: row for row, codes in _CODES.items() for code in codes}

OUR_BAD_REQUEST = "invalid_request"  # OpenRouter's word that the fault is in the request itself, not at the provider
_MAY_BE_TOO_LONG = (400, 422, 500)  # Ollama and older llama.cpp servers answer 500
_TOO_LONG = re.compile(
    r"context.?(length|window|size)|maximum (context|prompt)|too many (input )?tokens|(prompt|input)( is)? too long",
    re.I,
)
_SCHEMA = re.compile(
    r"json.?schema|response.?format|structured.?output|\bgrammar\b|json.?(mode|object)|\bschema\b", re.I
)
_KEY_LIMIT = re.compile(r"(key|spend\w*|credit|usage|budget) limit|insufficient (credit|balance|quota|funds)", re.I)
_REGION = re.compile(r"\b(region|country|territory|geograph\w*)\b", re.I)
_POLICY = re.compile(r"data polic|privacy|\bzdr\b|zero.data|guardrail", re.I)
_MODEL = re.compile(r"\bmodel\b|\bendpoint", re.I)
_MODERATION = ("reasons", "flagged_input", "patterns")


def row_of(error: AnswerError, code: int, *, is_json: bool = True) -> Row:
    """The row of an error: by its exact type, then by what it says, then by its code."""
    exact = next((ROW_BY_TYPE[name] for name in error.types if name in ROW_BY_TYPE), None)
    if exact is not None:
        return exact
    row = _by_words(error, code, is_json=is_json)
    if row is not None:
        return row
    if code in ROW_BY_CODE:
        return ROW_BY_CODE[code]
    return UPSTREAM if code >= 500 else CONFIG


def _by_words(error: AnswerError, code: int, *, is_json: bool) -> Row | None:
    if any(error.metadata.get(name) for name in _MODERATION) and code in (400, 403):
        return REFUSED
    if code in _MAY_BE_TOO_LONG and _TOO_LONG.search(error.words):
        return TOO_LONG
    if code in (400, 422) and _is_about_the_schema(error):
        return OTHER_FORMAT
    if code == 403:
        return _forbidden(error, is_json=is_json)
    if code == 404:
        return _not_found(error)
    return None


def _is_about_the_schema(error: AnswerError) -> bool:
    if error.raw or error.provider:
        return _SCHEMA.search(error.words) is not None
    return OUR_BAD_REQUEST not in error.types and _SCHEMA.search(error.message) is not None


def _forbidden(error: AnswerError, *, is_json: bool) -> Row | None:
    if not is_json:
        return UPSTREAM  # a page of an edge in between, not the server's judgement
    if _KEY_LIMIT.search(error.words):
        return NO_CREDIT
    if _REGION.search(error.words):
        return FILTERED
    return CONFIG if "permission_denied" in error.types else None


def _not_found(error: AnswerError) -> Row:
    if error.names("excluded_by") or _POLICY.search(error.words):
        return FILTERED
    is_about_the_model = not error.message or _MODEL.search(error.words)
    return GONE if is_about_the_model else CONFIG
