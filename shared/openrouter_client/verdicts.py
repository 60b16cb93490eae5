"""What an answer means. `classify` is the one place that judges; nothing reads content before it.

A status of 200 is not success: an error can be the whole body, stand beside empty fields, stand in the first choice, or
hide as a choice without content. What the answer says of itself is believed in this order: whether its availability is
retryable, the type of the error, the code in the body, the HTTP status.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum

from openrouter_client import waits
from openrouter_client.advice import advice_for, sentence
from openrouter_client.content import Finish, finish_of, first_choice, reason_for_silence, spent_nothing, text_of
from openrouter_client.error_body import (
    UNREADABLE,
    AnswerError,
    as_mapping,
    error_in_text,
    find_error,
)
from openrouter_client.error_rows import UPSTREAM, Row, Way, row_of

NO_CREDIT_SECONDS = 3600.0  # how long a type rests when nobody says when there is credit again
IN_FLIGHT_SECONDS = 60.0  # the account's own running calls use up its budget: it is free again when they end
EMPTY_SECONDS = 5.0  # a model that was just started
_AFFORDS = re.compile(r"can only afford\s+([\d.,\u00a0 ]*\d)", re.I)


class Kind(StrEnum):
    """What is to be done."""

    OK = "ok"
    RETRY = "retry"  # an ordinary failure, with the backoff of the queue
    COME_BACK = "come_back"  # the answer names a time: `wait_seconds`
    PAUSE = "pause"  # no job of this type can succeed: key or credit
    PERMANENT = "permanent"
    TOO_LONG = "too_long"  # the prompt; a shorter one may do
    TRUNCATED = "truncated"  # the answer; a larger budget may do
    AFFORDS_LESS = "affords_less"  # a budget of `affordable_tokens` may do; if not, pause for `wait_seconds`
    OTHER_FORMAT = "other_format"  # the provider cannot hold to the schema
    EMPTY = "empty"  # nothing was said


ANSWERED = (Kind.OK, Kind.TRUNCATED)


@dataclass(frozen=True)
class Verdict:
    """The judgement on one answer.

    `wait_seconds` is the shortest wait that the server named, without jitter (`waits.spread` adds it). A RETRY may have
    one, too: after a time-out, which may have been paid for and therefore costs an attempt. `is_billed` is None where
    it cannot be known. `turn`: when the job asks again, where its type stands in line.
    """

    kind: Kind
    error_class: str = ""  # empty when OK
    message: str = ""
    wait_seconds: float | None = None
    affordable_tokens: int | None = None
    http_status: int | None = None
    provider: str | None = None
    advice: str | None = None
    is_billed: bool | None = None
    turn: datetime | None = None


def classify(status: int, headers: Mapping[str, str], body: object, *, now: datetime | None = None) -> Verdict:
    """Judges one answer. `body` is the parsed JSON, or the text when it is none.

    The caller must redact the message: a server may repeat the key in it.
    """
    clock = waits.server_clock(headers, now or datetime.now(UTC))
    verdict = _judge(status, headers, body, clock)
    provider = verdict.provider or _provider(body)
    return replace(verdict, http_status=status, provider=provider)


def _judge(status: int, headers: Mapping[str, str], body: object, now: datetime) -> Verdict:
    error = find_error(body)
    if error is not None:
        code = error.code or (status if status >= 400 else 502)
        return _judge_error(error, code, headers, now)
    if 200 <= status < 300:
        return _judge_success(headers, body, now)
    if 300 <= status < 400:
        target = waits.lowered(headers).get("location", "elsewhere")
        message = f"HTTP {status}: the server sends on to {target[:200]}, and the client does not follow"
        return Verdict(Kind.PERMANENT, "config", message, advice="set OPENROUTER_BASE_URL to the address it names")
    return _judge_error(error_in_text(body), status, headers, now, is_json=isinstance(body, Mapping))


def _judge_success(headers: Mapping[str, str], body: object, now: datetime) -> Verdict:
    if not isinstance(body, Mapping):
        said = error_in_text(body).message[:200] or "nothing"
        advice = "if this goes on, look whether OPENROUTER_BASE_URL is right"
        return Verdict(Kind.RETRY, "upstream", f"the answer is not JSON: {said}", advice=advice)
    choice = first_choice(body)
    error = find_error(choice)
    if error is not None:
        verdict = _judge_error(error, error.code or 502, headers, now)
        return replace(verdict, is_billed=False)
    return _judge_choice(body, choice)


def _judge_choice(body: Mapping[str, object], choice: Mapping[str, object]) -> Verdict:
    """Length comes before all else: half a document can be mended into something that looks whole."""
    finish, native = finish_of(choice)
    text = text_of(choice)
    if finish is Finish.LENGTH:
        return Verdict(Kind.TRUNCATED, "truncated", _truncated(text, body, choice), is_billed=True)
    if finish is Finish.ERROR:
        message = "the provider broke off in the middle of the answer" + (f" ({native})" if native else "")
        return Verdict(Kind.RETRY, "upstream", message, is_billed=False)
    refusal = as_mapping(choice.get("message")).get("refusal")
    if finish is Finish.FILTERED or (refusal and not text.strip()):
        said = refusal if isinstance(refusal, str) else native or "content filter"
        return Verdict(Kind.PERMANENT, "refused", f"the model refused to answer: {said[:500]}", is_billed=True)
    if not text.strip():
        is_free = spent_nothing(body, finish)
        why = reason_for_silence(body, choice)
        return Verdict(
            Kind.EMPTY, "empty_output", why, wait_seconds=EMPTY_SECONDS, is_billed=False if is_free else None
        )
    if finish is Finish.NONE:
        return Verdict(Kind.RETRY, "upstream", "the answer broke off: it has no finish_reason")
    return Verdict(Kind.OK, is_billed=True)


def _judge_error(
    error: AnswerError, code: int, headers: Mapping[str, str], now: datetime, *, is_json: bool = True
) -> Verdict:
    row = _believe(error, row_of(error, code, is_json=is_json))
    wait = waits.hint(headers, error.fields, now)
    draft = Verdict(
        kind=Kind.PERMANENT,
        error_class=row.error_class,
        message=sentence(error, code),
        wait_seconds=wait,
        provider=error.provider,
        advice=advice_for(error, row.error_class, code),
        is_billed=None if row.way is Way.TIMED_OUT or code in (500, 499) or UNREADABLE in error.types else False,
    )
    match row.way:
        case Way.TRANSIENT:
            return _transient(draft, error, now)
        case Way.TIMED_OUT:
            return replace(draft, kind=Kind.RETRY)
        case Way.NO_KEY:
            return replace(draft, kind=Kind.PAUSE)
        case Way.NO_CREDIT:
            return _no_credit(draft, error)
        case Way.PERMANENT:
            return replace(draft, wait_seconds=None)
    return replace(draft, kind=Kind(row.way.value), wait_seconds=None)


def _believe(error: AnswerError, row: Row) -> Row:
    """The error's availability outranks what its type and code say; a missing key or credit stays what it is."""
    if error.is_retryable is True and row.way is Way.PERMANENT:
        return UPSTREAM
    if error.is_retryable is False and row.way in (Way.TRANSIENT, Way.TIMED_OUT):
        error_class = "model_unavailable" if row.error_class == "upstream" else row.error_class
        return Row(Way.PERMANENT, error_class)
    return row


def _transient(draft: Verdict, error: AnswerError, now: datetime) -> Verdict:
    wait = draft.wait_seconds
    if wait is None and "per-day" in error.words:  # free-models-per-day: no try before midnight can succeed
        wait = waits.seconds_to_midnight(now)
    return replace(draft, kind=Kind.RETRY if wait is None else Kind.COME_BACK, wait_seconds=wait)


def _no_credit(draft: Verdict, error: AnswerError) -> Verdict:
    if error.metadata.get("limit_source") == "openrouter_in_flight_budget":
        return replace(draft, kind=Kind.COME_BACK, wait_seconds=draft.wait_seconds or IN_FLIGHT_SECONDS)
    wait = draft.wait_seconds or NO_CREDIT_SECONDS
    found = _AFFORDS.search(error.words)
    affordable = int(re.sub(r"\D", "", found[1])[:12]) if found else 0
    if affordable > 0:
        return replace(draft, kind=Kind.AFFORDS_LESS, affordable_tokens=affordable, wait_seconds=wait)
    return replace(draft, kind=Kind.PAUSE, wait_seconds=wait)


def _truncated(text: str, body: Mapping[str, object], choice: Mapping[str, object]) -> str:
    if text.strip():
        return f"the answer was cut off at its token budget, after {len(text)} characters"
    return f"the token budget was used up before the answer began: {reason_for_silence(body, choice)}"


def _provider(body: object) -> str | None:
    name = as_mapping(body).get("provider")
    return name[:200] if isinstance(name, str) and name else None
