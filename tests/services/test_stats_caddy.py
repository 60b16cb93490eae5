"""Real Caddys serve real recordings and roll their logs: the database shows exactly the downloads that were made."""

import os
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.databases import Database
from tests.queue.stats_support import Stats
from tests.services.caddy_server import Caddy, Setup, running_caddy
from tests.waiting import wait_until

EPISODE, SHORT = "/2026/tale æ.mp3", "/kort.mp3"
ENCODED = "/2026/tale%20%C3%A6.mp3"
MINUTE = 961_000  # bytes; the recording has 123 seconds and 1,976,155 bytes
# Debian 12 and 13 ship it; `make old-caddy` unpacks the package there.
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
OLD_CADDY = _CACHE / "jobbko" / "caddy-2.6.2" / "usr" / "bin" / "caddy"
FULL = [f"Full-{number}/1" for number in range(3)]


@pytest.fixture
def stats(database: Database, tmp_path: Path, samples: Path) -> Stats:
    stats = Stats(database, tmp_path)
    database.rows("update stats.source set media_folder = '.', feed_paths = '{/feed.xml}'")
    (stats.media / "2026").mkdir()
    shutil.copy(samples / "audio" / "ljspeech-2min.mp3", stats.media / EPISODE[1:])
    shutil.copy(samples / "audio" / "npsc-medium.mp3", stats.media / SHORT[1:])
    (stats.media / "feed.xml").write_text("<rss/>")
    return stats


def listen(caddy: Caddy) -> int:
    """Everything that players, bots and people do; returns how many downloads that makes."""
    size = caddy.get(ENCODED, FULL[0])[1]
    for agent in FULL[1:]:
        assert caddy.get(f"{ENCODED}?from=feed", agent)[1] == size
    assert caddy.get(ENCODED, FULL[0])[0] == 200  # again: the same download
    assert caddy.get(ENCODED, FULL[0], host="::1")[0] == 200  # from another address: another listener
    assert caddy.get_by_http2(ENCODED, "Http2/1") == size
    status, _, headers = caddy.get(ENCODED, "Probe/1", range="bytes=0-1")
    assert status == 206
    assert caddy.get(ENCODED, "Cached/1", if_none_match=headers["Etag"])[0] == 304
    assert caddy.get(ENCODED, "Changed/1", range="bytes=100-199", if_range='"other"')[0] == 200  # the whole file
    assert caddy.get(ENCODED, "Head/1", method="HEAD")[0] == 200
    assert caddy.get(ENCODED, "Beyond/1", range=f"bytes={size}-")[0] == 416
    assert caddy.get(ENCODED, "Parts/1", range="bytes=0-99,200-299")[0] == 206
    assert caddy.get(ENCODED, "Tail/1", range=f"bytes=-{MINUTE}")[0] == 206
    assert caddy.get(ENCODED, "Short/1", range=f"bytes=0-{MINUTE // 2}")[0] == 206
    caddy.get_and_go(ENCODED, "Gone/1", 1000, range="bytes=0-99999")
    assert caddy.get(ENCODED, "Googlebot/2.1")[0] == 200
    assert caddy.get("/borte.mp3", "Lost/1")[0] == 404
    assert caddy.get("/feed.xml", "Feedbin feed-id:1 - 9 subscribers")[0] == 200
    assert caddy.get(SHORT, "Whole/1")[0] == 200
    assert caddy.get(SHORT, "Almost/1", range="bytes=1-")[0] == 206  # one byte is missing
    return len(FULL) + len(["IPv6", "Http2", "Changed", "Tail", "Whole"])


@dataclass
class Case:
    """A server, the names that it rolls its log to, and what the source has to know of it."""

    setup: Setup
    rolled: str
    whole_durations: str = "ns"


CASES = {
    "HTTP, rolled by size": Case(Setup(), "access-*-size.log.gz"),
    "TLS, rolled by time, durations in milliseconds": Case(
        Setup(is_tls=True, roll="roll_interval 2s", encoder="duration_format ms"), "access-*-time.log.gz", "ms"
    ),
    "TLS, durations in seconds, times as text": Case(
        Setup(is_tls=True, encoder="duration_format seconds\n time_format rfc3339_nano"), "access-*-size.log.gz"
    ),
    "Debian's 2.6.2, durations as text": Case(
        Setup(program=OLD_CADDY, encoder="duration_format string"), "access-*.log.gz"
    ),
}


@pytest.mark.parametrize("name", list(CASES))
def test_the_database_shows_exactly_the_downloads_that_were_made(stats: Stats, tmp_path: Path, name: str) -> None:
    case = CASES[name]
    if not case.setup.program.exists():
        pytest.skip(f"there is no {case.setup.program}. Next: make old-caddy")
    listen_and_count(stats, tmp_path, case)


@pytest.mark.long
def test_a_log_that_is_rolled_at_a_time_of_day_is_read_on(stats: Stats, tmp_path: Path) -> None:
    """`roll_at 00:00` is what the page recommends; here it is the next minute, by either clock."""
    soon = [datetime.now(zone) + timedelta(minutes=1, seconds=5) for zone in (UTC, None)]
    times = " ".join(sorted({f"{moment:%H:%M}" for moment in soon}))
    listen_and_count(stats, tmp_path, Case(Setup(roll=f"roll_at {times}"), "access-*-time.log.gz"))


def listen_and_count(stats: Stats, tmp_path: Path, case: Case) -> None:
    fillers = 0
    stats.database.rows("update stats.source set whole_durations = %s", case.whole_durations)

    def is_rolled() -> bool:
        nonlocal fillers
        fillers += 1
        caddy.get(f"/x?{fillers}-{'q' * 9000}", "Filler/1", method="HEAD")
        return bool(list(stats.logs.glob(case.rolled)))

    with running_caddy(tmp_path, stats.media, stats.logs, case.setup) as caddy:
        made = listen(caddy)
        caddy.get(ENCODED, "Rolled/1", range=f"bytes=0-{MINUTE // 2}")
        stats.run()
        first = stats.downloads()
        wait_until(is_rolled, 100, every=0.01, what="Caddy to roll its log and to compress it")
        caddy.get(ENCODED, "Rolled/1", range=f"bytes={MINUTE // 2}-{MINUTE}")
        stats.run()
    result = stats.run()

    facts = stats.database.rows("select total_size, id3_bytes, origin from stats.media where episode ~ 'tale'")
    assert facts == [{"total_size": 1_976_155, "id3_bytes": 45, "origin": "file"}]
    assert (first, stats.downloads()) == (made, made + 1)
    assert (result["bad"], result["warnings"]) == ({}, [])
    assert {state for _, state in stats.files().values()} == {"done", "live"}
    reasons = {row["reason"]: row["requests"] for row in stats.database.rows("select * from stats.accounts")}
    assert reasons == {"counted": 15, "method": 1 + fillers, "status": 3, "probe": 1, "bot": 1, "feed": 1}
    assert stats.database.value("select sum(downloads) from stats.download_day where episode = 'kort.mp3'") == 1
