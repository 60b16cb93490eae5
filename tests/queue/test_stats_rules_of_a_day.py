"""The rules that are kept over a whole day: R14 to R18, R20, R24, R28 and R31, each by its name."""

from datetime import date, datetime, timedelta
from pathlib import Path

import pytest

from tests.databases import Database
from tests.queue.stats_support import TODAY, Stats
from tests.unit.stats_support import FILE_BYTES, NOON, OSLO, line

SAMPLE_DAY = date(2026, 11, 29)  # when the samples were written
MINUTE = 480_231  # bytes of the file that hold its first minute


@pytest.mark.parametrize(("version", "downloads"), [("2.6.2", 15), ("2.11.7", 16)])
def test_the_samples_have_the_downloads_that_were_worked_out_by_hand(
    stats: Stats, samples: Path, version: str, downloads: int
) -> None:
    stats.write((samples / "caddy" / version / "access.log").read_bytes())
    stats.know("episode æøå.mp3")
    stats.know("ep-kort.mp3", 240_603, 30.0)
    stats.know("ep-lang.mp3", 14_400_618, 1800.0, 45)

    result = stats.run()

    kort = 6 + (version == "2.11.7")
    found = {
        name: stats.downloads(SAMPLE_DAY, name) for name in ("ep1.mp3", "episode æøå.mp3", "ep-kort.mp3", "ep-lang.mp3")
    }
    assert found == {"ep1.mp3": 6, "episode æøå.mp3": 1, "ep-kort.mp3": kort, "ep-lang.mp3": 2}
    assert result["days"][str(SAMPLE_DAY)]["downloads"] == downloads
    assert result["excluded"] == {"method": 4, "status": 4, "no_ua": 1, "not_media": 2, "probe": 1}


def test_r14_a_listener_counts_once_with_the_union_of_its_ranges(stats: Stats) -> None:
    stats.write(line(part=(0, MINUTE - 1), agent="Enough/1"), line(part=(0, MINUTE - 2), agent="Short/1"))
    stats.write(line(part=(0, 299_999), agent="Twice/1"), line(part=(0, 299_999), agent="Twice/1"))  # R17
    stats.write(line(part=(0, 299_999), agent="Parts/1"), line(part=(300_000, 599_999), agent="Parts/1"))
    stats.write(line(part=(700_000, FILE_BYTES - 1), agent="Middle/1"))  # R19
    stats.run()

    counted = stats.database.rows("select agent from stats.unknown_agent order by 1")
    assert (len(counted), stats.downloads()) == (5, 3)


def test_r15_the_threshold_is_the_tag_and_a_minute_of_audio(stats: Stats) -> None:
    stats.know("a.mp3", 1_000_007, 3600.0, 0)
    stats.know("b.mp3", 1000, 60.0, 100)

    rows = stats.database.rows("select episode, threshold from stats.media order by 1")

    assert {row["episode"]: row["threshold"] for row in rows} == {"a.mp3": 16_667, "b.mp3": 1000, "ep1.mp3": MINUTE}


def test_r16_a_short_or_unknown_episode_needs_every_byte(stats: Stats) -> None:
    stats.know("kort.mp3", 1000, 59.9, 10)
    stats.know("odd.mp3", 1000, 180.0, 1000)
    for name in ("kort.mp3", "odd.mp3", "ukjent.mp3"):
        stats.write(line(f"/{name}", total=1000, size=999), line(f"/{name}", total=1000, agent="Whole/1"))

    result = stats.run()

    assert stats.downloads() == 3
    assert result["days"][str(TODAY)]["unknown_lengths"] == 1


def test_r18_parts_join_across_files_and_runs(stats: Stats) -> None:
    stats.write(line(part=(300_000, 599_999)), name="access-2026-11-29T12-00-00.000.log.gz")
    stats.run()
    assert stats.downloads() == 0
    stats.write(line(part=(0, 299_999)))
    stats.run()

    assert stats.downloads() == 1


def test_r20_two_versions_of_a_file_are_never_joined_and_count_once(stats: Stats) -> None:
    stats.know(total=FILE_BYTES + 7)
    both = {"part": (0, 299_999)}, {"part": (300_000, 599_999), "total": FILE_BYTES + 7}
    stats.write(*(line(agent="Halves/1", **half) for half in both))
    stats.write(line(), line(total=FILE_BYTES + 7))
    stats.run()

    assert stats.downloads() == 1


def test_r24_playing_and_pausing_all_day_is_one_download(stats: Stats) -> None:
    stats.write(*(line(at=NOON + timedelta(minutes=3 * n), part=(0, 600_000)) for n in range(30)))
    stats.run()

    assert stats.downloads() == 1
    assert stats.database.row("select sum(downloads) as downloads, min(hour) as hour from stats.download_hour") == {
        "downloads": 1, "hour": NOON,
    }  # fmt: skip


@pytest.mark.parametrize(("night", "hours"), [("2026-03-29", 23), ("2025-10-26", 25), ("2025-12-31", 24)])
def test_r26_a_day_of_the_clock_change_and_a_year_boundary_have_all_their_hours_in_the_tables(
    stats: Stats, night: str, hours: int
) -> None:
    day = datetime.fromisoformat(night).replace(tzinfo=OSLO)
    start = day.timestamp()
    stats.write(*(line(at=start + 1800 + 3600 * n, agent=f"App{n}/1") for n in range(-1, hours + 1)))
    stats.run()

    rows = stats.database.rows("select day, sum(downloads)::int as n, count(distinct hour) as hours"
                               " from stats.download_hour group by day order by day")  # fmt: skip
    assert [(row["day"] - day.date()).days for row in rows] == [-1, 0, 1]
    assert [(row["n"], row["hours"]) for row in rows] == [(1, 1), (hours, hours), (1, 1)]


def test_r27_a_listener_at_2359_and_at_0001_is_a_download_and_a_listener_of_both_days(stats: Stats) -> None:
    midnight = NOON.replace(hour=0)
    stats.write(line(at=midnight - timedelta(minutes=1)), line(at=midnight + timedelta(minutes=1)))
    stats.run()

    rows = stats.database.rows("select day, listeners from stats.listener_day order by 1")
    assert [(row["day"], row["listeners"]) for row in rows] == [(TODAY - timedelta(days=1), 1), (TODAY, 1)]
    assert (stats.downloads(TODAY - timedelta(days=1)), stats.downloads(TODAY)) == (1, 1)


def test_r28_the_listeners_of_a_show_are_not_the_sum_over_its_episodes(stats: Stats) -> None:
    for name in ("ep1.mp3", "ep2.mp3", "ep3.mp3"):
        stats.write(line(f"/{name}"), line(f"/{name}", agent="Other/1"))
    stats.run()

    assert (stats.downloads(), stats.database.value("select listeners from stats.listener_day")) == (6, 2)


def test_r29_listeners_are_told_by_the_day_alone_and_nothing_adds_days_up(stats: Stats) -> None:
    stats.write(line(), line(at=NOON - timedelta(days=1)))
    stats.run()

    rows = stats.database.rows("select listeners from stats.listener_day")
    told_in = stats.database.rows(
        "select table_name from information_schema.columns where table_schema = 'stats' and column_name ~ 'listeners'"
    )
    assert [row["listeners"] for row in rows] == [1, 1]  # the same person, under two keys
    assert told_in == [{"table_name": "listener_day"}]


def test_r31_an_address_with_too_many_episodes_is_told_and_only_left_out_when_configured(
    database: Database, tmp_path: Path
) -> None:
    (tmp_path / "allow").write_text("192.0.2.0/24  # the office\n")
    stats = Stats(database, tmp_path, most_episodes=3, allow_file=tmp_path / "allow")
    for number in range(5):
        stats.write(line(f"/e{number}.mp3", ip="198.51.100.7", agent=f"App{number % 2}/1"))
        stats.write(line(f"/e{number}.mp3", ip="192.0.2.7"))
    result = stats.run()
    assert (stats.downloads(), result["days"][str(TODAY)]["heavy_addresses"]) == (10, 1)

    stats.worker = stats.new_worker(most_episodes=3, allow_file=tmp_path / "allow", exclude_heavy=True)
    stats.write(line())
    stats.run()

    assert stats.downloads() == 6
    assert database.row("select sum(requests) as requests from stats.accounts")["requests"] == 11
    assert database.value("select requests from stats.excluded_day where reason = 'volume'") == 5


def test_r35_what_a_player_loads_before_it_plays_is_no_download(stats: Stats) -> None:
    stats.write(line(part=(0, 65_535), agent="Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0"))
    stats.run()

    assert stats.downloads() == 0


def test_all_lines_of_a_day_are_accounted_for(stats: Stats) -> None:
    stats.write(line(), line(method="HEAD"), line(status=404), line("/x"), line(part=(0, 1)), line(agent=None))
    stats.run()

    accounts = {row["reason"]: row["requests"] for row in stats.database.rows("select * from stats.accounts")}
    assert accounts == {"counted": 1, "method": 1, "status": 1, "not_media": 1, "probe": 1, "no_ua": 1}
