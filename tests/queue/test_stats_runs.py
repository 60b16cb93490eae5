"""What a run does beside counting: bad input, days that end, and what is left of the listeners."""

import os
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from prometheus_client import REGISTRY

from services.stats import line_reader, parsing
from services.stats.addresses import packed_address
from services.stats.lines import LONGEST_LINE
from services.stats.store import SQL
from sidelinja_jobs import PermanentError
from tests.queue.stats_support import LONG_AGO, TODAY, Stats
from tests.sessions import refused
from tests.unit.stats_support import CLIENT, NOON, line


def failure(stats: Stats) -> PermanentError:
    with pytest.raises(PermanentError) as caught:
        stats.run()
    stats.database.rows("delete from job_queue")
    return caught.value


# ---------------------------------------------------------------- bad input


def test_bad_lines_are_counted_by_reason_and_kept_with_their_shape(stats: Stats) -> None:
    stats.write(
        line(), b"plain text from 203.0.113.9\n", b'{"ts":"\xff"}\n', line(agent="B/1"), line(at=5.0, agent="C/1")
    )
    stats.write(b'{"x":"' + b"y" * LONGEST_LINE + b'"}\n', line(agent="D/1"))

    result = stats.run()

    assert result["bad"] == {"json": 1, "utf8": 1, "ts": 1, "too_long": 1}
    assert stats.downloads() == 3
    kept = stats.database.rows("select byte_offset, reason, sample from stats.bad_line order by 1")
    assert [row["reason"] for row in kept] == ["json", "utf8", "ts", "too_long"]
    assert (kept[0]["byte_offset"], kept[0]["sample"]) == (len(line()), "aaaaa aaaa aaaa 999.9.999.9")


def test_prometheus_is_told_what_became_of_the_lines_of_this_process(stats: Stats) -> None:
    def told() -> dict[str, float]:
        results = ("counted", "excluded", "late", "bad")
        return {result: REGISTRY.get_sample_value("stats_lines_total", {"result": result}) or 0.0 for result in results}

    before = told()
    stats.write(line(), line(agent="B/1"), line(request={"method": "HEAD"}), b"plain text\n")
    stats.run()
    stats.run()

    assert {result: told()[result] - before[result] for result in before} == {
        "counted": 2, "excluded": 1, "late": 0, "bad": 1,
    }  # fmt: skip


def test_a_line_that_is_too_long_and_has_no_end_yet_is_waited_for(stats: Stats) -> None:
    stats.write(line(), b"x" * (3 * LONGEST_LINE))
    assert stats.run()["lines"] == 1
    stats.write(b"x\n", line(agent="B/1"))

    result = stats.run()

    assert (result["bad"], stats.downloads()) == ({"too_long": 1}, 2)


def test_the_console_format_is_refused_at_once_and_nothing_is_skipped(stats: Stats, samples: Path) -> None:
    console = (samples / "caddy" / "2.6.2" / "access-console.log").read_bytes()
    stats.write(console * 12)

    error = failure(stats)

    assert error.error_class == "format_error"
    assert "of 12 lines 12 cannot be read (12 json)" in str(error)
    assert "Next: let Caddy's log write" in str(error)
    assert stats.files() == {}


def test_a_format_that_changes_in_the_middle_keeps_what_was_before_and_waits_there(stats: Stats) -> None:
    good, bad = [line(agent=f"App{n}/1") for n in range(500)], [b"2026/11/29 INFO handled request\n"] * 200
    stats.write(*good)
    stats.run()
    stats.write(*bad)

    first, second = failure(stats), failure(stats)

    assert str(first) == str(second)
    assert stats.files()["access.log"] == (sum(map(len, good)), "live")
    assert stats.downloads() == 500


def test_a_file_that_cannot_be_read_fails_the_job_and_the_others_are_counted(stats: Stats) -> None:
    (stats.logs / "access-2026-11-29T11-00-00.000.log").mkdir()
    stats.write(line(), name="access-2026-11-29T12-00-00.000.log.zst")
    stats.write(line())

    error = failure(stats)

    assert error.error_class == "unreadable"
    assert f"user id {os.getuid()}" in str(error)
    assert "compressed with zstd" in str(error)
    assert stats.downloads() == 1


FORMATS = (
    "2.6.2/access-iso.log", "2.11.7/access-iso.log", "2.6.2/access-filter.log", "2.11.7/access-filter.log",
    "2.11.7/server-nop.log", "2.6.2/access-proxy.log",
)  # fmt: skip


def test_lines_of_both_captured_formats_with_filters_are_counted(stats: Stats, samples: Path) -> None:
    for number, name in enumerate(FORMATS):
        stats.write((samples / "caddy" / name).read_bytes(), name=f"access-2026-11-29T0{number}-00.log")

    result = stats.run()

    assert (result["bad"], result["lines"]) == ({}, 10)
    assert {"ua_hashed"} <= set(result["warnings"])


def test_a_proxy_before_caddy_is_told_when_most_requests_have_one_address(stats: Stats) -> None:
    stats.write(*(line(agent=f"App{n}/1") for n in range(120)))

    assert stats.run()["warnings"] == ["one_ip_over_50_percent"]


def test_durations_in_milliseconds_are_told_and_read_as_such_once_the_source_says_so(stats: Stats) -> None:
    slow = NOON.replace(hour=0, minute=30).timestamp()
    begun_yesterday = line(at=slow, duration=3_600_000, agent="Slow/1")
    stats.write(line(duration=4), begun_yesterday)
    first = stats.run()
    stats.database.rows("update stats.source set whole_durations = 'ms'")
    stats.write(line(duration=4), begun_yesterday)
    second = stats.run()

    assert (first["warnings"], list(first["days"])) == (["durations_in_ms"], [str(TODAY)])
    assert (second["warnings"], list(second["days"])) == ([], [str(TODAY - timedelta(days=1)), str(TODAY)])


def test_a_clock_that_jumps_makes_days_but_breaks_nothing(stats: Stats) -> None:
    jumps = [NOON + timedelta(days=days) for days in (0, 400, -300, 1, 0)]
    stats.write(*(line(at=at, agent=f"App{number}/1") for number, at in enumerate(jumps)))
    stats.write(line(at=2e12, agent="Far/1"), line(at=-1.0, agent="Before/1"))

    result = stats.run()

    assert result["bad"] == {"ts": 1}  # 2e12 is a time in milliseconds
    assert len(result["days"]) == 5
    assert stats.database.value("select sum(downloads) from stats.download_day") == 6


def test_bad_lines_are_kept_for_fourteen_days(stats: Stats) -> None:
    for number, age in enumerate(("13 days 23 hours", "14 days 1 hour")):
        stats.database.rows(
            "insert into stats.bad_line values ('media', %s, %s, 'json', 'x', now() - %s::interval)",
            bytes(32), number, age,
        )  # fmt: skip
    stats.write(line())

    stats.run()

    assert stats.database.rows("select byte_offset from stats.bad_line") == [{"byte_offset": 0}]


def test_a_name_for_a_source_that_is_not_there_is_refused(stats: Stats) -> None:
    with pytest.raises(PermanentError, match="no enabled log source 'other'"):
        stats.run(source="other")


# ---------------------------------------------------------------- days end


def test_a_day_that_is_over_is_closed_and_what_comes_then_is_late(stats: Stats) -> None:
    stats.write(line(at=LONG_AGO), line())
    first = stats.run()
    stats.write(line(at=LONG_AGO, agent="Late/1"), line(at=LONG_AGO, method="HEAD"))
    second = stats.run()

    assert [day["state"] for day in first["days"].values()] == ["closed", "open"]
    assert (second["late"], second["excluded"]) == (2, {})
    assert (stats.downloads(LONG_AGO.date()), stats.downloads()) == (1, 1)
    assert stats.database.value("select requests from stats.excluded_day where reason = 'late'") == 2


def test_a_day_ends_at_three_in_the_second_night_after_it(stats: Stats) -> None:
    """Of all zones, so that it is every hour of the day somewhere."""
    today = datetime.now(UTC).date()
    for back in range(-1, 6):
        stats.database.rows("insert into stats.day (day) values (%s)", today - timedelta(back))

    def over(zone: str) -> list[date]:
        now = datetime.now(ZoneInfo(zone))
        ends = {day: datetime(day.year, day.month, day.day, 3, tzinfo=now.tzinfo) + timedelta(2) for day in days}
        return [day for day, end in ends.items() if end <= now]

    conn = stats.database.connect()
    days = [row[0] for row in conn.execute("select day from stats.day order by day")]
    for zone in (f"Etc/GMT{hours:+d}" for hours in range(-14, 13)):
        before = over(zone)
        found = [row[0] for row in conn.execute(SQL["days_to_close"], {"time_zone": zone})]
        assert found in (before, over(zone)), zone
        assert 2 <= len(found) < len(days)


def test_an_old_log_that_is_read_in_several_runs_is_not_late(stats: Stats, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "BATCH_LINES", 50)
    monkeypatch.setattr(line_reader, "PIECE_BYTES", 5000)
    for number in range(3):
        stats.write(*(line(at=LONG_AGO, agent=f"App{number}-{n}/1") for n in range(80)),
                    name=f"access-2026-11-2{number}T00-00-00.000.log.gz")  # fmt: skip
    stats.worker = stats.new_worker(run_seconds=0)
    results = [stats.run()]
    while results[-1]["more"]:
        results.append(stats.run_next())

    assert len(results) >= 3
    assert (sum(result["late"] for result in results), stats.downloads(LONG_AGO.date())) == (0, 240)
    assert stats.database.value("select count(*) from job_queue where status <> 'completed'") == 0


def test_after_a_day_is_closed_a_dump_of_the_database_has_no_address_and_no_user_agent(stats: Stats) -> None:
    agents = ("SecretAgent/7.5 (Kari's phone)", "Podcasts/4022.610.1 CFNetwork/1408.0.4", "OtherSecret/1")
    addresses = (CLIENT, "2001:db8:77::1")
    stats.write(*(line(at=LONG_AGO, agent=agent, ip=ip, referer=f"https://{CLIENT}/x")
                  for agent in agents for ip in addresses))  # fmt: skip
    stats.write(line("/feed.xml", at=LONG_AGO, agent="SecretReader/2"), line(at=LONG_AGO, ip="x", agent=agents[0]))
    stats.write(b'{"request":{"remote_ip":"203.0.113.9","headers":{"User-Agent":["SecretAgent/7.5"]}}}\n')
    stats.database.rows("update stats.source set feed_paths = '{/feed.xml}'")
    stats.run()

    dump = whole_database(stats)
    assert stats.downloads(LONG_AGO.date()) == 6
    assert "ep1.mp3" in dump
    packed = [packed_address(address) or b"" for address in addresses]
    for secret in ("203.0.113", "2001:db8", "Secret", "4022", "Kari", *(key[:8].hex() for key in packed)):
        assert secret not in dump
    assert stats.database.value("select count(*) from stats.salt") == 0
    assert stats.database.value("select count(*) from stats.listener_window") == 0


def whole_database(stats: Stats) -> str:
    """Every row of every table, of the queue as well."""
    tables = stats.database.rows(
        "select format('%I.%I', schemaname, tablename) as name from pg_tables"
        " where schemaname not in ('pg_catalog', 'information_schema')"
    )
    assert {"stats.download_day", "public.job_queue", "public.job_event"} <= {table["name"] for table in tables}
    return "\n".join(
        str(row) for table in tables for row in stats.database.rows(f"select t::text from {table['name']} as t")
    )


def test_while_a_day_is_open_only_keyed_hashes_stand_beside_unknown_agents(stats: Stats) -> None:
    stats.write(line(), line(agent="Ukjent/1"))
    stats.run()

    dump = str(stats.database.rows("select t::text from stats.listener_window as t"))
    assert CLIENT not in dump
    assert "AntennaPod/3" not in dump
    for role in ("reader", "operator"):
        with refused("42501"):
            stats.database.connect(role).execute("select * from stats.salt")
