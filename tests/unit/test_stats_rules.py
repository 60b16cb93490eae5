"""The counting rules of requests and their bytes: R1 to R21, each by its name. Those of listeners and days stand in
test_stats_listeners.py, those that need the database in tests/queue/test_stats_rules_of_a_day.py."""

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

import pytest

from services.stats.coverage import Span, union_of
from tests.unit.stats_support import (
    APP,
    FILE_BYTES,
    NOON,
    counting,
    line,
    listeners,
    names,
    spans,
    spans_of,
    tally_of,
    verdicts,
    windows,
)


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
                 if covered_bytes(spans_of(window)) >= thresholds[key[0].name]]  # fmt: skip

    assert tally.by_reason() == {"method": 4, "status": 4, "no_ua": 1, "not_media": 2, "probe": 1}
    assert (tally.counted, len(today.windows), tally.bad.total()) == (counted, groups, 0)
    assert {name: downloads.count(name) for name in thresholds} == {
        "ep1.mp3": 6, "episode æøå.mp3": 1, "ep-kort.mp3": 6 + (version == "2.11.7"), "ep-lang.mp3": 2,
    }  # fmt: skip


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "POST", "PUT", "get", ""])
def test_r1_another_method_than_get_is_not_counted_whatever_it_was_answered(method: str) -> None:
    assert verdicts(line(method=method), line(method=method, status=405)) == {"method": 2}


def covered_bytes(spans: Iterable[Span]) -> int:
    """How many different bytes the spans cover, as 0015_podcast_figures.sql adds them up."""
    return sum(end - first for first, end in union_of(spans))


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

    assert (spans_of(window), window.byte_count) == ([(0, FILE_BYTES)], 2 * FILE_BYTES)
    assert window.first_start == pytest.approx(NOON.timestamp())
