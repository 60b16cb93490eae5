"""What goes into the cleaner and what comes out. Apart, so that the worker need not load the cleaner itself."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

Clip = dict[str, Any]


@dataclass(frozen=True)
class Paste:
    """What a clipboard held. Bytes are UTF-8: one emoji makes a str of it four times as large."""

    text: str | bytes = ""
    html: str | bytes | None = None
    source_url: str | None = None
    pasted_at: datetime | None = None


def as_text(held: str | bytes | None) -> str:
    """The text of a paste's field."""
    return held.decode() if isinstance(held, bytes) else held or ""
