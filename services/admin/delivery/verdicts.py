"""What an answer of a receiver means for an event, and for the sink."""

import email.utils
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from sidelinja_jobs.json_text import clean_text
from sidelinja_jobs.redaction import redact_text

LONGEST_RETRY_AFTER = 86400.0  # seconds; a receiver that asks for more is asked again after a day
SHOWN_CHARACTERS = 300  # of an answer's body, in messages


class Kind(StrEnum):
    """What becomes of an event."""

    DELIVERED = "delivered"
    RETRY = "retry"  # this event is tried again later, and given up after a while
    PARK = "park"  # trying again cannot help: given up at once
    HOLD = "hold"  # no event can be delivered until somebody corrects something: the sink waits, nothing is given up
    DISABLE = "disable"  # the receiver wants no more: the sink is switched off


@dataclass(frozen=True)
class Answer:
    """What came back. Header names are in lower case; `text` is the beginning of the body."""

    status: int
    headers: Mapping[str, str]
    text: str = ""


@dataclass(frozen=True)
class Verdict:
    """The message says what happened, without secrets, for logs and for the operator."""

    kind: Kind
    message: str = ""
    retry_after_seconds: float | None = None  # as the receiver asks, on behalf of the whole sink
    most_tries: int | None = None  # parked after so many; None: as long as the settings say

    @property
    def is_receivers_trouble(self) -> bool:
        """Whether it may be the receiver that is down, and not this event that it cannot take."""
        return self.kind is Kind.RETRY


OK = Verdict(Kind.DELIVERED)


def retry_after_seconds(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """The wait that a Retry-After header asks for: seconds or a date, bounded; None where there is none to read."""
    text = headers.get("retry-after", "").strip()
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(text).timestamp() - (time.time() if now is None else now)
        except (ValueError, OverflowError):
            return None
    return min(max(seconds, 0.0), LONGEST_RETRY_AFTER) if math.isfinite(seconds) else None


def told(answer: Answer) -> str:
    """An answer in words: `500: the beginning of what it said`, on one line, without secrets."""
    said = redact_text(clean_text(" ".join(answer.text.split())))[:SHOWN_CHARACTERS]
    return f"{answer.status}: {said}" if said else str(answer.status)
