"""An event as it leaves: a CloudEvents document whose data is thin, and the sentence that a page can show as it is.

Receivers order by `data.event_id` within a job and an epoch, which is the last part of `source`.
"""

import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec

from services.admin.delivery.cloud_events import document
from services.admin.messages import redacted
from sidelinja_jobs.json_text import clean_text
from sidelinja_jobs.redaction import redact_json

TYPE_PREFIX = "no.sidelinja.job."
LONGEST_ERROR = 500  # characters of a failure's first line
LONGEST_EXTRA = 16 * 1024  # bytes of a payload or result; receivers of webhooks expect bodies under 20 KB
LANGUAGES = ("nb", "en")


@dataclass(frozen=True)
class Event:
    """One change of a job's status, and how far its delivery is."""

    event_id: int
    xid: str
    job_id: UUID
    job_type: str
    old_status: str | None
    new_status: str
    attempts: int
    max_attempts: int | None  # None: the job is not there any more
    error_class: str | None
    error_msg: str | None
    at: datetime
    payload: str | None
    result: str | None
    is_new: bool
    is_wanted: bool
    is_held: bool
    tries: int
    age_seconds: float

    @property
    def attempt(self) -> int:
        """The run that the job is at, or ended with: `attempts` counts failures only."""
        return self.attempts + 1 if self.new_status in ("running", "completed") else self.attempts

    @property
    def error(self) -> str | None:
        """First line of the failure's message, without secrets."""
        if self.error_msg is None:
            return None
        lines = redacted(clean_text(self.error_msg)).strip().splitlines()
        return lines[0][:LONGEST_ERROR] if lines else None

    @property
    def time(self) -> str:
        return self.at.astimezone(UTC).isoformat().replace("+00:00", "Z")

    def text(self, language: str) -> str:
        """The event in a sentence: `Transkriberer … 2/3 forsøk`."""
        words = _texts()[language]
        known = words["types"].get(self.job_type)
        name, doing = known or (clean_text(self.job_type), words["unknown"].format(name=clean_text(self.job_type)))
        is_cancelled = self.new_status == "error" and self.error_class == "cancelled"
        most = "?" if self.max_attempts is None else self.max_attempts
        sentence: str = words["cancelled" if is_cancelled else self.new_status]
        return sentence.format(name=name, doing=doing, attempt=self.attempt, most=most)


def data(event: Event) -> dict[str, Any]:
    """What an event tells. Payload and result stand in it only where the sink asks for them and they are short."""
    facts: dict[str, Any] = {
        "event_id": event.event_id,
        "job_id": str(event.job_id),
        "job_type": clean_text(event.job_type),
        "old_status": event.old_status,
        "new_status": event.new_status,
        "attempt": event.attempt,
        "max_attempts": event.max_attempts,
        "error_class": event.error_class and clean_text(event.error_class),
        "error": event.error,
        "text": {language: event.text(language) for language in LANGUAGES},
    }
    for name, text in (("payload", event.payload), ("result", event.result)):
        if text is not None and len(text.encode()) <= LONGEST_EXTRA:
            facts[name] = msgspec.Raw(redact_json(text).encode())  # as text: Python has no such numbers and depths
        elif text is not None:
            facts[f"{name}_bytes"] = len(text.encode())
    return facts


def cloud_event(event: Event, source: str, epoch: UUID) -> bytes:
    """The event as a document."""
    return document(
        str(event.event_id),
        f"{TYPE_PREFIX}{event.new_status}",
        source=f"{source}/{epoch}",
        subject=str(event.job_id),
        at=event.time,
        data=data(event),
    )


@cache
def _texts() -> dict[str, Any]:
    with Path(__file__).with_name("texts.toml").open("rb") as file:
        return tomllib.load(file)
