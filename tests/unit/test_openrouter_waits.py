"""Waits are read from every place that servers put them, on the server's clock, and bounded."""

from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openrouter_client import waits

NOW = datetime(2026, 11, 29, 12, 0, 0, tzinfo=UTC)
NORWAY = timezone(timedelta(hours=1))
DAY = 86_400.0


def hint(headers: dict[str, str] | None = None, error: dict[str, Any] | None = None) -> float | None:
    return waits.hint(headers or {}, error, NOW)


def in_ms(seconds: float) -> str:
    return str(int((NOW.timestamp() + seconds) * 1000))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7),
        ({"retry-after": " 7.5 "}, 7.5),
        ({"RETRY-AFTER": format_datetime(NOW + timedelta(seconds=90), usegmt=True)}, 90),
        ({"Retry-After": format_datetime((NOW + timedelta(seconds=90)).astimezone(NORWAY))}, 90),
        ({"Retry-After-Ms": "2500"}, 2.5),
        ({"X-RateLimit-Reset": in_ms(120)}, 120),
        ({"X-RateLimit-Reset": str(int(NOW.timestamp()) + 120)}, 120),
        ({"X-RateLimit-Reset": "45"}, 45),
        ({"Retry-After": "7", "X-RateLimit-Reset": in_ms(120), "retry-after-ms": "9000"}, 120),
        ({"Retry-After": "300", "X-RateLimit-Reset": in_ms(120)}, 300),
    ],
)
def test_a_wait_in_a_header_is_read(headers: dict[str, str], seconds: float) -> None:
    assert hint(headers) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        ({"availability": {"retry_after": 12}}, 12),
        ({"availability": {"retry_after": "12.5"}}, 12.5),
        ({"metadata": {"availability": {"retry_after": 12}}}, 12),
        ({"metadata": {"retry_after_seconds": 3}}, 3),
        ({"metadata": {"headers": {"X-RateLimit-Reset": in_ms(3600)}}}, 3600),
        ({"metadata": {"headers": {"X-RateLimit-Reset": int(in_ms(3600)), "X-RateLimit-Limit": 50}}}, 3600),
        ({"metadata": {"headers": {"retry-after": "30"}}, "availability": {"retry_after": 20}}, 30),
        ({"availability": {"retry_after": (NOW + timedelta(seconds=50)).isoformat()}}, 50),
    ],
)
def test_a_wait_in_the_body_is_read(error: dict[str, Any], seconds: float) -> None:
    assert hint(error=error) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "-5",
        "0",
        "nan",
        "inf",
        "-inf",
        "1e999",
        "12 parsecs",
        "Wed, 99 Xyz 2026 99:99:99 GMT",
        "0x10",
        "\x00",
    ],
)
def test_garbage_is_no_hint(text: str) -> None:
    assert hint({"Retry-After": text, "X-RateLimit-Reset": text, "Retry-After-Ms": text}) is None


def test_a_time_in_the_past_is_no_hint() -> None:
    assert hint({"Retry-After": format_datetime(NOW - timedelta(seconds=5), usegmt=True)}) is None
    assert hint({"X-RateLimit-Reset": in_ms(-5)}) is None


@pytest.mark.parametrize("value", [None, True, [], {}, [5], {"retry_after": []}, "x"])
def test_members_of_any_type_are_survived(value: Any) -> None:
    assert hint(error={"metadata": value, "availability": value, "retry_after": value}) is None
    assert hint(error={"metadata": {"headers": value}, "availability": {"retry_after": value}}) is None


@pytest.mark.parametrize("text", ["86400", "86401", "999999999", "9" * 400])
def test_a_hint_is_a_day_at_most(text: str) -> None:
    assert hint({"Retry-After": text}) in (DAY, None)
    assert hint({"Retry-After": "86400"}) == DAY
    assert hint({"Retry-After": "90000"}) == DAY
    assert hint({"X-RateLimit-Reset": in_ms(10 * DAY)}) == DAY


def test_the_servers_clock_counts_where_it_is_told() -> None:
    """A clock here that is an hour behind would make an hour of a wait of ten seconds."""
    ahead = NOW + timedelta(hours=1)
    headers = {"Date": format_datetime(ahead, usegmt=True)}

    assert waits.server_clock(headers, NOW) == ahead
    assert waits.server_clock({"date": "yesterday"}, NOW) == NOW
    assert waits.server_clock({}, NOW) == NOW


@given(st.dictionaries(st.sampled_from(["retry-after", "x-ratelimit-reset", "retry-after-ms", "date"]), st.text()))
@settings(deadline=None)
def test_a_hint_is_within_bounds_whatever_the_headers_say(headers: dict[str, str]) -> None:
    found = waits.hint(headers, {"metadata": {"headers": headers}}, NOW)

    assert found is None or 0 < found <= DAY


def test_jitter_is_on_top_of_the_hint_never_below() -> None:
    assert waits.spread(100, lambda: 0.0) == 100
    assert waits.spread(100, lambda: 1.0) == 120
    assert waits.spread(1, lambda: 1.0) == 6


def test_fifty_jobs_come_back_spread_out() -> None:
    """DaKheera47/job-ops PR#555: all came back in the same moment, and were all refused again."""
    times = [waits.spread(2.0) for _ in range(50)]

    assert min(times) >= 2
    assert max(times) <= 7
    assert max(times) - min(times) > 2
    assert len({round(time, 1) for time in times}) > 15


@pytest.mark.parametrize(
    ("period", "expected"),
    [
        ("daily", datetime(2026, 11, 30, tzinfo=UTC)),
        ("weekly", datetime(2026, 11, 30, tzinfo=UTC)),
        ("monthly", datetime(2026, 12, 1, tzinfo=UTC)),
        ("never", None),
        (None, None),
    ],
)
def test_a_limit_begins_anew_at_midnight_utc(period: str | None, expected: datetime | None) -> None:
    assert waits.next_reset(period, NOW) == expected


def test_a_week_and_a_month_that_just_began_last_their_whole_time() -> None:
    assert waits.next_reset("weekly", datetime(2026, 11, 30, tzinfo=UTC)) == datetime(2026, 12, 7, tzinfo=UTC)
    assert waits.next_reset("monthly", datetime(2026, 12, 31, 23, tzinfo=UTC)) == datetime(2027, 1, 1, tzinfo=UTC)
    assert waits.next_reset("monthly", datetime(2026, 1, 31, tzinfo=UTC)) == datetime(2026, 2, 1, tzinfo=UTC)
    assert waits.next_reset("daily", datetime(2026, 11, 30, 0, 30, tzinfo=NORWAY)) == datetime(2026, 11, 30, tzinfo=UTC)


def test_midnight_is_counted_from_any_time_zone() -> None:
    assert waits.seconds_to_midnight(NOW) == 12 * 3600
    assert waits.seconds_to_midnight(NOW.astimezone(NORWAY)) == 12 * 3600
