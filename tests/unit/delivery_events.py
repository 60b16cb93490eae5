"""Events for tests of the forwarder's parts."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec

from services.admin.delivery.events import Event

EPOCH = UUID("0c4f0b2e-6f3c-4c43-9a53-0d7f4cde2a11")
JOB = UUID("6f1c9d3e-6f3c-4c43-9a53-0d7f4cde2a11")


def event(**changes: Any) -> Event:
    """The second attempt of a transcription begins."""
    facts = {
        "event_id": 42, "xid": "800", "job_id": JOB, "job_type": "whisper_transcribe", "old_status": "retry",
        "new_status": "running", "attempts": 1, "max_attempts": 3, "error_class": None, "error_msg": None,
        "at": datetime(2026, 11, 29, 21, 45, 1, 250000, UTC), "payload": None, "result": None, "is_new": True,
        "is_wanted": True, "is_held": False, "tries": 0, "age_seconds": 0.0,
    }  # fmt: skip
    return msgspec.convert(facts | changes, Event)
