"""Times and durations as people write and read them."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidelinja_jobs.cli.durations import age, brief, local, parse_duration, parse_time, relative
from sidelinja_jobs.cli.exits import RefusedError
from sidelinja_jobs.cli.times import EARLIEST, LATEST

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _in_oslo() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "Europe/Oslo")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("10m", 600), ("1h30m", 5400), ("2d", 172_800), ("1w", 604_800), ("1.5h", 5400), (" 1H 5M ", 3900)],
)
def test_duration_is_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "10", "m", "-5m", "5x", "1h-5m", "inf", "nan", "٣m", "1e9s", "900000d"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(RefusedError):
        parse_duration(text)


def test_bare_number_is_asked_for_its_unit() -> None:
    with pytest.raises(RefusedError) as refused:
        parse_duration("10")

    assert refused.value.line() == "'10' is not a duration. Next: write 10s or 10m"


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-12-24T18:00", "2026-12-24T17:00+00:00"),
        ("2026-12-24 18:00+02:00", "2026-12-24T16:00+00:00"),
        ("2026-12-24T18:00Z", "2026-12-24T18:00+00:00"),
        ("2026-07-01", "2026-06-30T22:00+00:00"),
        ("18:00", "2026-11-29T17:00+00:00"),
        ("08:30", "2026-11-30T07:30+00:00"),
    ],
)
def test_time_is_read_on_the_local_clock_unless_it_says_otherwise(text: str, moment: str) -> None:
    assert parse_time(text, NOW) == datetime.fromisoformat(moment)


def test_clock_time_of_the_past_is_the_last_one() -> None:
    assert parse_time("12:00", NOW, looks_back=True) == datetime(2026, 11, 29, 11, 0, tzinfo=UTC)
    assert parse_time("13:00", NOW, looks_back=True) == NOW
    assert parse_time("18:00", NOW, looks_back=True) == datetime(2026, 11, 28, 17, 0, tzinfo=UTC)


def test_clock_time_over_the_night_of_the_change_is_that_of_the_day_itself() -> None:
    before_change = datetime(2026, 10, 24, 20, 0, tzinfo=UTC)  # 22:00 in Oslo; at 03:00 it becomes 02:00

    assert parse_time("08:00", before_change) == datetime(2026, 10, 25, 7, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    ["infinity", "-infinity", "now", "9999-12-31", "1999-12-31T23:59", "2200-01-01", "25:00", "", "0001-01-01", "18"],
)
def test_what_is_no_time_or_far_away_is_refused(text: str) -> None:
    with pytest.raises(RefusedError):
        parse_time(text, NOW)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3, "0s"), (0.9, "0s"), (59, "59s"), (61, "1m01s"), (660, "11m"), (3660, "1h01m"), (90_000, "1d1h"),
     (86_400 * 40, "40d"), (86_400 * 365 * 173, "173y")],
)  # fmt: skip
def test_duration_is_written_in_its_largest_units(seconds: float, text: str) -> None:
    assert brief(seconds) == text


@given(st.floats(min_value=-1e12, max_value=1e12))
def test_no_duration_is_negative(seconds: float) -> None:
    assert "-" not in brief(seconds)


def test_moments_are_told_from_the_databases_now() -> None:
    assert relative(NOW + timedelta(minutes=3), NOW) == "in 3m00s"
    assert relative(NOW - timedelta(seconds=5), NOW) == "5s ago"
    assert relative(None, NOW) == ""
    assert age(NOW - timedelta(hours=2), NOW) == "2h00m"


def test_moment_is_shown_on_the_local_clock_with_its_offset() -> None:
    assert local(NOW) == "2026-11-29 13:00:00+01:00"


@pytest.mark.parametrize("moment", [EARLIEST, LATEST])
def test_moments_at_the_ends_of_time_can_be_shown(moment: datetime) -> None:
    assert local(moment)
    assert relative(moment, NOW)
