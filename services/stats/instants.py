"""Points in time as Caddy writes them, in whatever of its formats, and the local calendar day they fall on.

`ts` is written when a response ends, so a request began at `ts - duration` (R26). Both come as numbers by default;
`time_format` and `duration_format` turn them into other units or into text.
"""

import re
from bisect import bisect_right
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

EARLIEST = 946_684_800.0  # 2000-01-01; a time outside of 2000 to 2199 is a fault of the clock or of the format
LATEST = 7_258_118_400.0
LONGEST_DURATION = 864_000.0  # seconds; a response of ten days is a fault, too
NANOSECOND, MILLISECOND = 1e-9, 1e-3
SHORTEST_NANOSECONDS = 1000  # no response takes less; shorter ones are of another unit
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}
_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(h|ms|µs|μs|us|ns|m|s)")
_WHOLE_DURATION = re.compile(rf"[+-]?(?:{_DURATION.pattern})+")
_LAYOUT = "%d/%b/%Y:%H:%M:%S %z"  # of the common log, which Caddy has a name for
_FRACTION = re.compile(r"\.(\d+)")
_LONGEST_TEXT = 64

Moment = float | int | str | None


def seconds_of(moment: Moment) -> float | None:
    """Seconds since 1970; None when it is no time between 2000 and 2199."""
    if moment is None:
        return None
    seconds = _of_text(moment) if isinstance(moment, str) else _of_number(moment)
    return seconds if seconds is not None and EARLIEST <= seconds < LATEST else None


def duration_of(length: Moment, whole: float = NANOSECOND) -> float | None:
    """Seconds; None when it is no length of time.

    A whole number is of the unit `whole`: Caddy's `nano` and `ms` look alike, so the log's source has to say.
    """
    if isinstance(length, str):
        if len(length) > _LONGEST_TEXT or not _WHOLE_DURATION.fullmatch(length):
            return 0.0 if length == "0" else None
        seconds = sum(float(number) * _UNITS[unit] for number, unit in _DURATION.findall(length))
    elif length is None:
        return 0.0
    else:
        seconds = length * whole if isinstance(length, int) else length
    return seconds if 0 <= seconds < LONGEST_DURATION else None


def _of_number(number: float) -> float:
    """Seconds, milliseconds, microseconds or nanoseconds: for the years 2000 to 2199 their ranges are apart."""
    if number < 1e11:
        return float(number)
    for unit in (1e3, 1e6, 1e9):
        if number / unit < 1e11:
            return number / unit
    return float("inf")


def _of_text(text: str) -> float | None:
    if len(text) > _LONGEST_TEXT:
        return None
    # Python's own reader takes at most six digits of a second, Caddy writes up to nine.
    shortened = _FRACTION.sub(lambda found: "." + found[1][:6].ljust(6, "0"), text.replace("/", "-", 2), count=1)
    for reader in (datetime.fromisoformat, lambda _: datetime.strptime(text, _LAYOUT)):
        try:
            moment = reader(shortened)
        except (ValueError, OverflowError):
            continue
        # A layout without a zone (`wall`) is of UTC, where servers run.
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return None


class Days:
    """The calendar days of a time zone: which one an instant falls on (R26). Days of 23 and 25 hours included."""

    def __init__(self, zone: str) -> None:
        self._zone = ZoneInfo(zone)
        self._starts: list[float] = []
        self._days: list[date] = []

    def bounds_of(self, seconds: float) -> tuple[float, float, date]:
        """Start and end of the day around an instant, in seconds since 1970, and its date."""
        index = bisect_right(self._starts, seconds) - 1
        if index >= 0 and seconds < (end := self.start_of(self._days[index] + timedelta(1))):
            return self._starts[index], end, self._days[index]
        day = datetime.fromtimestamp(seconds, self._zone).date()
        start = self.start_of(day)
        at = bisect_right(self._starts, start)
        self._starts.insert(at, start)
        self._days.insert(at, day)
        return start, self.start_of(day + timedelta(1)), day

    def start_of(self, day: date) -> float:
        """When a day begins: its midnight, or the first instant after one that the clocks leave out."""
        midnight = datetime(day.year, day.month, day.day, tzinfo=self._zone)
        return midnight.astimezone(UTC).timestamp()
