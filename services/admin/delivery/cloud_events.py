"""How events and alerts leave by a webhook: CloudEvents 1.0 in structured mode, signed as Standard Webhooks has it."""

import time
from collections.abc import Mapping
from typing import Any

import msgspec

from services.admin.delivery.signature import signature


def document(
    event_id: str, event_type: str, *, source: str, subject: str, at: str, data: Mapping[str, Any], **extensions: str
) -> bytes:
    """The body. `at` is RFC 3339; `extensions` are attributes beside those of the specification."""
    attributes = {
        "specversion": "1.0",
        "id": event_id,
        "source": source,
        "type": event_type,
        "subject": subject,
        "time": at,
        "datacontenttype": "application/json",
    }
    return msgspec.json.encode({**attributes, **extensions, "data": data})


def headers(keys: list[bytes], message_id: str, body: bytes) -> dict[str, str]:
    """Signed now, by each key; unsigned without one. The id is the same at every try, which tells a repetition."""
    content = {"Content-Type": "application/cloudevents+json; charset=utf-8"}
    if not keys:
        return content
    now = int(time.time())
    return content | {
        "webhook-id": message_id,
        "webhook-timestamp": str(now),
        "webhook-signature": signature(keys, message_id, now, body),
    }
