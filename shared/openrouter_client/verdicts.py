"""What an answer means. `classify` is the one place that judges; nothing reads content before it.

A status of 200 is not success: an error can be the whole body, stand beside empty fields, stand in the first choice, or
hide as a choice without content. What the answer says of itself is believed in this order: whether its availability is
retryable, the type of the error, the code in the body, the HTTP status.
"""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What is to be done."""

    OK = "ok"
    RETRY = "retry"  # an ordinary failure, with the backoff of the queue
    COME_BACK = "come_back"  # the answer names a time: `wait_seconds`
    PAUSE = "pause"  # no job of this type can succeed: key or credit
    PERMANENT = "permanent"
    TOO_LONG = "too_long"  # the prompt; a shorter one may do
    TRUNCATED = "truncated"  # the answer; a larger budget may do
    AFFORDS_LESS = "affords_less"  # a budget of `affordable_tokens` may do
    OTHER_FORMAT = "other_format"  # the provider cannot hold to the schema
    EMPTY = "empty"  # nothing was said


@dataclass(frozen=True)
class Verdict:
    """The judgement on one answer.

    `wait_seconds` is the shortest wait that the server named, without jitter (`waits.spread` adds it). `is_billed` is
    None where it cannot be known.
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
