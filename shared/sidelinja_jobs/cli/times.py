"""Reading times that Python cannot hold."""

from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg.types.datetime import TimestamptzLoader

EARLIEST = datetime.min.replace(tzinfo=UTC)
LATEST = datetime.max.replace(tzinfo=UTC)


class TolerantTimeLoader(TimestamptzLoader):
    """Reads infinity and years beyond 9999 as the last moment there is, so that one odd row breaks no listing.

    The jobs' own columns are bounded by the database; pauses, workers and attempts are written by other hands.
    """

    def load(self, data: Any) -> datetime:
        try:
            return super().load(data).astimezone(UTC)
        except (psycopg.DataError, OverflowError):
            text = bytes(data)
            return EARLIEST if text.startswith(b"-") or text.endswith(b"BC") else LATEST
