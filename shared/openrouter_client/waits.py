"""How long a server asks to wait. It can say so in half a dozen places; the longest of them counts.

A wait is counted on the server's own clock where the answer carries one (header `Date`), so a wrong clock here moves
nothing.
"""

import math
import random
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from openrouter_client.error_body import as_mapping

LONGEST_HINT_SECONDS = 86_400.0
SPREAD_PART = 0.2
LEAST_SPREAD_SECONDS = 5.0  # after a short wait, too, fifty jobs must not come back in the same second
_EPOCH_MILLISECONDS = 1e11  # larger numbers are milliseconds since 1970, OpenRouter's way; the year 5138 in seconds
_EPOCH_SECONDS = 1e9


def hint(headers: Mapping[str, str], error: Mapping[str, Any] | None, now: datetime) -> float | None:
    """The longest wait, in seconds, that the headers or the error object name; None when there is none.

    At most a day. Garbage and times in the past are no hints.
    """
    waits = [seconds for seconds in _all(headers, error or {}, now) if seconds is not None and seconds > 0]
    return min(max(waits), LONGEST_HINT_SECONDS) if waits else None


def spread(seconds: float, chance: Callable[[], float] = random.random) -> float:
    """A wait with jitter on top: never shorter, up to a fifth or five seconds longer, whichever is more."""
    return seconds + chance() * max(SPREAD_PART * seconds, LEAST_SPREAD_SECONDS)


def server_clock(headers: Mapping[str, str], now: datetime) -> datetime:
    """The time at the server, as its answer says; `now` where it does not."""
    return _http_date(lowered(headers).get("date")) or now


def next_reset(period: str | None, now: datetime) -> datetime | None:
    """When a limit of this period ("daily", "weekly" from Monday, "monthly") begins anew, in UTC."""
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    match period:
        case "daily":
            return midnight + timedelta(days=1)
        case "weekly":
            return midnight + timedelta(days=7 - midnight.weekday())
        case "monthly":
            return (midnight.replace(day=1) + timedelta(days=32)).replace(day=1)
    return None


def seconds_to_midnight(now: datetime) -> float:
    """The seconds to the next UTC midnight."""
    midnight = next_reset("daily", now)
    return (midnight - now).total_seconds() if midnight else LONGEST_HINT_SECONDS


def lowered(headers: Mapping[str, Any]) -> dict[str, str]:
    """The headers under lower-case names."""
    return {str(name).lower(): str(value) for name, value in headers.items()}


def _all(headers: Mapping[str, str], error: Mapping[str, Any], now: datetime) -> Iterator[float | None]:
    yield from _from_headers(lowered(headers), now)
    metadata = as_mapping(error.get("metadata"))
    yield from _from_headers(lowered(as_mapping(metadata.get("headers"))), now)
    for holder in (error, metadata, as_mapping(error.get("availability")), as_mapping(metadata.get("availability"))):
        yield _moment(holder.get("retry_after"), now)
        yield _moment(holder.get("retry_after_seconds"), now)


def _from_headers(headers: Mapping[str, str], now: datetime) -> Iterator[float | None]:
    yield _moment(headers.get("retry-after"), now)
    milliseconds = _number(headers.get("retry-after-ms"))
    yield None if milliseconds is None else milliseconds / 1000
    yield _moment(headers.get("x-ratelimit-reset"), now)


def _moment(value: Any, now: datetime) -> float | None:
    """Seconds from now to a value: a number of seconds, a time since 1970, an HTTP or ISO date."""
    number = _number(value)
    if number is None:
        date = _http_date(value) or _iso_date(value)
        return None if date is None else (date - now).total_seconds()
    if number >= _EPOCH_MILLISECONDS:
        number /= 1000
    return number - now.timestamp() if number >= _EPOCH_SECONDS else number


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _http_date(value: Any) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        return _in_utc(parsedate_to_datetime(value))
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _iso_date(value: Any) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        return _in_utc(datetime.fromisoformat(value))
    except (ValueError, OverflowError):
        return None


def _in_utc(date: datetime) -> datetime:
    return date.replace(tzinfo=UTC) if date.tzinfo is None else date.astimezone(UTC)
