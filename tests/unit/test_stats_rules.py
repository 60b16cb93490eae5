"""The counting rules R1 to R13 and R19, R21 to R27, R30 to R36, each by its name. The others need the database:
tests/queue/test_stats_rules_of_a_day.py."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from services.stats.coverage import covered_bytes, union_of
from services.stats.tally import Window
from services.stats.thresholds import threshold_of
from tests.unit.stats_support import APP, FILE_BYTES, NOON, OSLO, SHOW, counting, line, tally_of, verdicts

APPLE_PROBE = "AppleCoreMedia/1.0.0.20D67 (iPhone; U; CPU OS 16_3_1 like Mac OS X; nb_no)"


def windows(*lines: bytes, **fields: Any) -> list[tuple[tuple[Any, ...], Window]]:
    """All windows with their keys: day, episode, file size, agent, address."""
    found = tally_of(*lines, **fields).days.items()
    return [((day, *key), window) for day, today in found for key, window in today.windows.items()]


def spans(*lines: bytes, **fields: Any) -> list[tuple[int, int]]:
    """The bytes that the one window has."""
    ((_, window),) = windows(*lines, **fields)
    return union_of(window.spans)


def days(*lines: bytes) -> list[date]:
    return sorted(key[0] for key, _ in windows(*lines))


def listeners(*lines: bytes) -> int:
    """How many different keys of agent and address have a window."""
    return len({key[3:] for key, _ in windows(*lines)})


def names(*lines: bytes, **fields: Any) -> set[str]:
    return {key[1].name for key, _ in windows(*lines, **fields)}


@pytest.mark.parametrize(("version", "counted", "groups"), [("2.6.2", 21, 16), ("2.11.7", 22, 17)])
def test_the_samples_have_the_counts_that_were_worked_out_by_hand(
    samples: Path, version: str, counted: int, groups: int
) -> None:
    log = (samples / "caddy" / version / "access.log").read_bytes()
    rules = counting(totals={"ep1.mp3": FILE_BYTES})
    tally = tally_of(log, rules=rules)
    (today,) = tally.days.values()
    thresholds = {"ep1.mp3": 480_231, "episode æøå.mp3": 480_231, "ep-kort.mp3": 240_603, "ep-lang.mp3": 480_064}
    downloads = [key[0].name for key, window in today.windows.items()
                 if covered_bytes(window.spans) >= thresholds[key[0].name]]  # fmt: skip

    assert tally.by_reason() == {"method": 4, "status": 4, "no_ua": 1, "not_media": 2, "probe": 1}
    assert (tally.counted, len(today.windows), tally.bad.total()) == (counted, groups, 0)
    assert {name: downloads.count(name) for name in thresholds} == {
        "ep1.mp3": 6, "episode æøå.mp3": 1, "ep-kort.mp3": 6 + (version == "2.11.7"), "ep-lang.mp3": 2,
    }  # fmt: skip


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "POST", "PUT", "get", ""])
def test_r1_another_method_than_get_is_not_counted_whatever_it_was_answered(method: str) -> None:
    assert verdicts(line(method=method), line(method=method, status=405)) == {"method": 2}


def test_r2_an_answer_200_covers_the_file_from_its_start() -> None:
    assert spans(line(size=1000)) == [(0, 1000)]
    assert spans(line(size=FILE_BYTES + 500)) == [(0, FILE_BYTES)]


def test_r3_an_answer_206_covers_what_its_content_range_says_as_far_as_it_went() -> None:
    assert spans(line(part=(300_000, 599_999))) == [(300_000, 600_000)]
    assert spans(line(part=(300_000, 599_999), size=10)) == [(300_000, 300_010)]
    assert spans(line(part=(300_000, 599_999), size=999_999)) == [(300_000, 600_000)]


def test_r4_several_parts_are_the_ranges_that_were_asked_for_clipped_to_the_file_and_to_the_size() -> None:
    def parts(asked: str, size: int = 10**6) -> list[tuple[int, int]]:
        answered = {"resp_headers": {"Content-Type": ["multipart/byteranges; boundary=x"]}}
        return spans(line(status=206, asked=asked, size=size, **answered), totals={"ep1.mp3": 1000})

    assert parts("bytes=0-99,200-299", size=527) == [(0, 100), (200, 300)]
    assert parts("bytes=0-99, 900-5000, -50") == [(0, 100), (900, 1000)]
    assert parts("bytes=0-99,200-299", size=150) == [(0, 100), (200, 250)]
    assert parts("bytes=0-99,x-y,300-200,5000-6000") == [(0, 100)]


def test_r4_without_a_range_that_can_be_placed_nothing_is_counted() -> None:
    for asked in ("bytes=x", "lines=1-2", "bytes=-500,-100", ""):  # the file's size is not known either
        assert verdicts(line(status=206, asked=asked, resp_headers={})) == {"range": 1}
    for odd in ("bytes 5-4/10", "bytes 0-10/5", "lines 1-2/3", "bytes 0-99999999999999999999/*", ""):
        assert verdicts(line(status=206, resp_headers={"Content-Range": [odd]})) == {"range": 1}


@pytest.mark.parametrize("status", [0, 301, 302, 304, 401, 403, 404, 405, 416, 499, 500, 503, 100, 204])
def test_r5_any_other_status_is_not_counted(status: int) -> None:
    assert verdicts(line(status=status)) == {"status": 1}


@pytest.mark.parametrize("part", [(0, 1), (0, 0), (700_000, 700_001)])
def test_r6_an_answer_of_two_bytes_is_a_probe_and_opens_no_window(part: tuple[int, int]) -> None:
    assert verdicts(line(part=part)) == {"probe": 1}
    assert windows(line(part=part)) == []
    assert verdicts(line(part=(0, 2))) == {"counted": 1}


def test_r7_a_probe_that_was_answered_with_the_file_is_the_file() -> None:
    assert spans(line(asked="bytes=0-1")) == [(0, FILE_BYTES)]


def test_r8_without_a_user_agent_nothing_is_counted() -> None:
    assert verdicts(line(agent=None), line(agent=""), line(agent="  "), line(agent=[])) == {"no_ua": 4}


def test_r9_of_several_user_agents_the_first_is_taken() -> None:
    assert listeners(line(agent=[APP, "x"]), line(agent=APP), line(agent=["x", APP])) == 2


def test_r10_what_is_no_episode_is_no_download_and_feeds_are_counted_apart() -> None:
    feeds = {"feed_paths": frozenset({"/feed.xml"})}
    tally = tally_of(
        line("/feed.xml"), line("/feed.xml", status=304), line("/feed.xml", status=404), line("/cover.jpg"),
        line("/"), line("/ep1.mp3.torrent"), **feeds,
    )  # fmt: skip

    assert tally.by_reason() == {"feed": 2, "status": 1, "not_media": 3}
    (today,) = tally.days.values()
    ((feed, agent),) = today.feeds
    assert (feed.name, agent.name, today.feeds.total()) == ("/feed.xml", "AntennaPod", 2)


SPELLINGS = (
    "/mappe/ep%20%C3%A6.mp3", "/mappe/ep æ.mp3", "/mappe/ep%20æ.mp3?utm=1", "//mappe///ep æ.mp3",
    "/x/../mappe/./ep æ.mp3", "http://media.example.no/mappe/ep%20æ.mp3", "/mappe/ep æ.mp3?a?b#c",
    "/%6Dappe/ep æ.mp3", "/../mappe/ep æ.mp3",
)  # fmt: skip


def test_r11_every_spelling_of_a_path_is_the_same_episode() -> None:
    every = [*(line(uri) for uri in SPELLINGS), line("/mappe/ep æ.mp3", host="www.example.no:443")]

    assert [key[1].name for key, _ in windows(*every)] == ["mappe/ep æ.mp3"]
    assert tally_of(*every).query_dropped == 2


def test_r11_percent_signs_are_decoded_once_and_odd_names_are_no_episodes() -> None:
    assert names(line("/a%2520b.mp3")) == {"a%20b.mp3"}
    assert verdicts(line("/a%00.mp3"), line("/a%FF.mp3"), line("/" + "a" * 2000 + ".mp3")) == {"not_media": 3}


def test_r11_only_the_sources_own_sites_and_prefix_are_media() -> None:
    own = {"hosts": frozenset({"media.example.no"}), "media_prefix": "/lyd"}

    assert names(line("/lyd/a/b.mp3", host="MEDIA.example.no:8443"), **own) == {"a/b.mp3"}
    assert verdicts(line("/lyd/a.mp3", host="other.no"), line("/lydig/a.mp3"), **own) == {
        "other_host": 1,
        "not_media": 1,
    }
    assert [key[1].show for key, _ in windows(line("/A/b.mp3"), shows_by_folder=True)] == ["A"]


def test_r12_before_its_publication_an_episode_is_not_counted() -> None:
    early, late = line(at=NOON - timedelta(seconds=1), duration=5.0), line(at=NOON)

    assert verdicts(early, late, published={"ep1.mp3": NOON}) == {"pre_release": 1, "counted": 1}


def test_r13_the_denied_networks_are_not_counted_but_what_is_allowed_is() -> None:
    own = line(ip="192.0.2.7"), line(ip="2001:db8::7"), line(ip="::ffff:192.0.2.9"), line(ip="192.0.2.200")
    lists = {"deny": ["192.0.2.0/24", "2001:db8::/32"], "allow": ["192.0.2.200"]}

    assert verdicts(*own, line(), **lists) == {"deny_ip": 3, "counted": 2}


def test_r15_the_threshold_is_the_tag_and_a_minute_of_audio() -> None:
    assert threshold_of(FILE_BYTES, 180.0, 66) == 480_231
    assert threshold_of(1_000_007, 3600.0, 0) == 16_667  # rounded up
    assert threshold_of(1000, 60.0, 100) == 1000


@pytest.mark.parametrize(("duration", "id3"), [(59.999, 66), (None, 66), (180.0, None), (0.0, 0), (180.0, 10**9)])
def test_r16_a_short_or_unknown_episode_needs_every_byte(duration: float | None, id3: int | None) -> None:
    assert threshold_of(240_603, duration, id3) == 240_603


def test_r17_bytes_that_were_fetched_twice_count_once() -> None:
    twice = line(part=(0, 299_999))

    assert covered_bytes(spans(twice, twice)) == 300_000
    assert union_of([(5, 9), (0, 3), (3, 5), (8, 8), (20, 30), (21, 22)]) == [(0, 9), (20, 30)]


def test_r18_parts_join_in_any_order() -> None:
    first, second = line(part=(0, 299_999)), line(part=(300_000, 599_999))

    assert spans(first, second) == spans(second, first) == [(0, 600_000)]


def test_r19_bytes_from_the_middle_count_as_well() -> None:
    assert spans(line(part=(700_000, FILE_BYTES - 1))) == [(700_000, FILE_BYTES)]


def test_r20_ranges_of_two_versions_of_a_file_are_kept_apart() -> None:
    both = line(part=(0, 99), total=1000), line(part=(100, 199), total=2000)

    assert sorted(key[2] for key, _ in windows(*both)) == [1000, 2000]


def test_r21_more_bytes_change_the_bytes_alone() -> None:
    ((_, window),) = windows(line(), line(at=NOON + timedelta(hours=1)))

    assert (union_of(window.spans), window.byte_count) == ([(0, FILE_BYTES)], 2 * FILE_BYTES)
    assert window.first_start == pytest.approx(NOON.timestamp())


def test_r22_a_listener_is_an_address_or_the_first_half_of_one_and_the_user_agent() -> None:
    assert listeners(line(ip="192.0.2.1"), line(ip="192.0.2.2")) == 2
    assert listeners(line(ip="2001:db8:1:2::1"), line(ip="2001:db8:1:2:ffff::2")) == 1
    assert listeners(line(ip="2001:db8:1:2::1"), line(ip="2001:db8:1:3::1")) == 2
    assert listeners(line(agent=APP + " "), line(agent=APP)) == 2


def test_r23_ipv4_that_is_mapped_into_ipv6_is_ipv4() -> None:
    assert listeners(line(ip="::ffff:192.0.2.1"), line(ip="192.0.2.1"), line(ip="[::ffff:192.0.2.1]:443")) == 1


def test_r24_a_listener_has_one_window_a_day_however_often_it_asks() -> None:
    assert len(windows(*(line(at=NOON + timedelta(minutes=n)) for n in range(20)))) == 1


def test_r25_six_user_agents_behind_one_address_are_six_listeners() -> None:
    assert listeners(*(line(agent=f"App{n % 6}/1") for n in range(10))) == 6


def test_r26_the_day_is_the_local_one_of_the_requests_start() -> None:
    midnight = datetime(2026, 12, 1, tzinfo=OSLO)
    slow = line(at=midnight - timedelta(seconds=1), duration=7200.0)  # logged at 02:00

    assert days(slow) == [date(2026, 11, 30)]
    assert days(line(at=midnight)) == [date(2026, 12, 1)]
    assert days(line(at=datetime(2026, 11, 30, 23, 0, 4, tzinfo=UTC))) == [date(2026, 12, 1)]


@pytest.mark.parametrize("night", [date(2026, 3, 29), date(2026, 10, 25), date(2026, 12, 31)])
def test_r26_the_days_of_the_clock_change_and_the_year_end_keep_their_requests(night: date) -> None:
    start = datetime(night.year, night.month, night.day, tzinfo=OSLO)
    end = datetime.fromordinal(night.toordinal() + 1).replace(tzinfo=OSLO)
    hours = round((end.timestamp() - start.timestamp()) / 3600)
    every = [line(at=start.timestamp() + 1800 + 3600 * n, agent=f"App{n}/1") for n in range(-1, hours + 1)]

    found = days(*every)

    assert hours == {3: 23, 10: 25, 12: 24}[night.month]
    assert (found.count(night), found[0], found[-1]) == (hours, night - timedelta(1), night + timedelta(1))


def test_r27_around_midnight_a_listener_counts_on_both_days() -> None:
    day = datetime(2026, 11, 30, tzinfo=OSLO)
    example = [day.replace(hour=22), day.replace(day=30) + timedelta(hours=27), day + timedelta(hours=46.25),
               day + timedelta(hours=71.25)]  # fmt: skip

    assert len(days(line(at=datetime(2026, 11, 29, 23, 59, tzinfo=OSLO)), line(at=day + timedelta(minutes=1)))) == 2
    assert [found.day for found in days(*map(lambda at: line(at=at), example))] == [30, 1, 2]


def test_r30_bots_and_what_calls_itself_one_are_not_counted() -> None:
    bots = ("Googlebot/2.1", "curl/7.88.1", "python-requests/2.31", "SomethingBot/1.0", "my CRAWLER", "a-spider/2")
    people = (
        "AppleCoreMedia/1.0",
        "okhttp/4.9",
        "ExoPlayerLib/2.18",
        "stagefright/1.2 (Linux;Android 7.0)",
        "Ukjent/1",
    )

    assert verdicts(*(line(agent=agent) for agent in bots)) == {"bot": len(bots)}
    assert verdicts(*(line(agent=agent) for agent in people)) == {"counted": len(people)}


def test_r32_what_a_watch_fetches_beside_its_phone_is_not_counted_but_its_players_are() -> None:
    twice = (
        "atc/1.0 watchOS/9.4 model/Watch6,1 hwp/t8301 build/20T253 (6; dt:241)",
        "(null)/(null) watchOS/8.5 model/Watch5",
    )
    players = (
        "AppleCoreMedia/1.0.0.20T253 (Apple Watch; U; CPU OS 9_4 like Mac OS X)",
        "Overcast (+http://overcast.fm/; Apple Watch podcast app)",
    )

    assert verdicts(*(line(agent=agent) for agent in (*twice, *players))) == {"apple_watch": 2, "counted": 2}


def test_r33_spotifys_fetcher_is_a_bot_and_its_app_is_not() -> None:
    assert verdicts(line(agent="Spotify/1.0"), line(agent="Spotify/8.8.12 iOS/16 (iPhone14,5)")) == {
        "bot": 1,
        "counted": 1,
    }


def test_r34_apples_two_names_behind_one_address_are_two_listeners() -> None:
    both = line(agent="Podcasts/1650 CFNetwork/1408"), line(agent=APPLE_PROBE)

    assert sorted((key[3].name, key[3].kind, key[3].device) for key, _ in windows(*both)) == [
        ("Apple Podcasts", "app", "Apple device"), ("AppleCoreMedia", "library", "iPhone"),
    ]  # fmt: skip


def test_r36_a_list_of_data_centres_is_looked_up_whatever_its_length() -> None:
    nets = [f"10.{n // 256}.{n % 256}.0/25" for n in range(5000)]

    assert verdicts(line(ip="10.5.7.126"), line(ip="10.5.7.129"), deny=nets) == {"deny_ip": 1, "counted": 1}


def test_lines_of_other_loggers_and_of_closed_days_are_told_apart() -> None:
    other = line(logger="http.log.error"), line(logger="tls.obtain", request={"uri": "/x"})
    closed = counting(closed={NOON.date()})

    assert verdicts(*other) == {"not_access": 2}
    assert verdicts(line(), line(at=NOON + timedelta(days=1)), rules=closed) == {"late": 1, "counted": 1}


def test_an_address_that_is_none_and_an_impossible_time_make_a_bad_line_at_its_place() -> None:
    good = line()
    tally = tally_of(good, line(ip="unix:@"), line(at=12.0), line(duration=-3.0), line(size=-1))

    assert tally.bad == {"ip": 1, "ts": 2, "schema": 1}
    assert tally.bad_lines[0].offset == len(good)
    assert APP not in tally.bad_lines[0].sample


def test_a_forwarded_header_alone_never_changes_the_listener() -> None:
    forged = line(request={"headers": {"User-Agent": [APP], "X-Forwarded-For": ["198.51.100.1"]}})

    assert listeners(line(), forged) == 1
    old = line(request={"remote_ip": "", "client_ip": "", "remote_addr": "[2001:db8::1]:443"})
    assert listeners(old, line(ip="2001:db8::2")) == 1


def test_the_referrer_is_kept_as_the_host_of_the_earliest_request() -> None:
    later = line(at=NOON + timedelta(hours=1), referer="https://later.example.no/")
    first = line(referer="https://user:pw@Player.Example.no:443/secret?token=1")
    ((key, one),) = windows(first, later)
    ((_, other),) = windows(later, first)

    assert one.referrer == other.referrer == "player.example.no"
    assert key[1].show == SHOW
