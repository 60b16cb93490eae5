"""Times and durations, from people and for people.

Ages are reckoned from the database's clock, which every query returns beside its rows; this machine's clock decides
nothing.
"""

import re
from datetime import datetime, timedelta

from sidelinja_jobs.cli.exits import RefusedError

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?[smhdw])+", re.ASCII)
_PART = re.compile(r"(\d+(?:\.\d+)?)([smhdw])", re.ASCII)
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})", re.ASCII)
_YEAR_SECONDS = 365 * 86_400
# The queue takes times of the years 2000 to 2199.
LONGEST_SECONDS = 200 * _YEAR_SECONDS


def parse_duration(text: str) -> float:
    """Seconds of `90s`, `10m`, `1h30m`, `2d`, `1w`.

    Raises:
        RefusedError: it is not a duration, or longer than two hundred years.
    """
    compact = text.strip().lower().replace(" ", "")
    if not _DURATION.fullmatch(compact):
        hint = f"write {compact}s or {compact}m" if compact.isdecimal() else "write for example 90s, 10m, 1h30m or 2d"
        raise RefusedError(f"{text!r} is not a duration", hint)
    seconds = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(compact))
    if seconds > LONGEST_SECONDS:
        raise RefusedError(f"the duration {text!r} is longer than 200 years", "give a shorter one")
    return seconds


def parse_time(text: str, now: datetime, *, looks_back: bool = False) -> datetime:
    """A moment from `2026-12-24T18:00`, `2026-12-24`, or `18:00`; without an offset, local time.

    A clock time is the next one there is, or the last one of who `looks_back`.

    Raises:
        RefusedError: it is not a time, or outside the years 2000 to 2199.
    """
    clock = _CLOCK.fullmatch(text.strip())
    try:
        if clock:
            return _at_clock(now.astimezone(), int(clock.group(1)), int(clock.group(2)), looks_back)
        moment = datetime.fromisoformat(text.strip())
        # astimezone() of the first and last years would leave the calendar.
        if not 2000 <= moment.year < 2200:
            raise RefusedError(
                f"the time {text!r} lies outside the years 2000 to 2199", "give a time that a worker can live to see"
            )
        return moment.astimezone() if moment.tzinfo is None else moment
    except ValueError as error:
        raise RefusedError(
            f"{text!r} is not a time", "write for example 2026-12-24T18:00, 2026-12-24T18:00+01:00 or 18:00"
        ) from error


def brief(seconds: float) -> str:
    """A duration in its one or two largest units: `42s`, `3m`, `1h20m`, `5d3h`, `2y`. Never negative."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s" if whole < 600 else f"{whole // 60}m"
    if whole < 86_400:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    if whole < 2 * _YEAR_SECONDS:
        days = whole // 86_400
        return f"{days}d{whole % 86_400 // 3600}h" if days < 10 else f"{days}d"
    return f"{whole // _YEAR_SECONDS}y"


def relative(moment: datetime | None, now: datetime) -> str:
    """`3m ago` or `in 3m`, as seen from the database's now."""
    if moment is None:
        return ""
    seconds = (moment - now).total_seconds()
    return f"in {brief(seconds)}" if seconds >= 1 else f"{brief(-seconds)} ago"


def age(moment: datetime | None, now: datetime) -> str:
    """How long ago, without the word."""
    return "" if moment is None else brief((now - moment).total_seconds())


def local(moment: datetime | None) -> str:
    """A moment on this machine's wall clock, with its offset."""
    if moment is None:
        return ""
    try:
        return moment.astimezone().isoformat(sep=" ", timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return moment.isoformat(sep=" ", timespec="seconds")


def _at_clock(now: datetime, hour: int, minute: int, looks_back: bool) -> datetime:
    today = now.replace(hour=hour, minute=minute, second=0, microsecond=0, tzinfo=None)
    # Through the naive wall clock, so that the offset is that of the day itself when the clocks change tonight.
    moment = today.astimezone()
    if looks_back:
        return moment if moment <= now else (today - timedelta(days=1)).astimezone()
    return moment if moment > now else (today + timedelta(days=1)).astimezone()
