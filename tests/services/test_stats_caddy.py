"""A real Caddy serves real recordings and rolls its log: the database shows exactly the downloads that were made."""

import shutil
from pathlib import Path

import pytest

from tests.databases import Database
from tests.queue.stats_support import Stats
from tests.services.caddy_server import Caddy, running_caddy
from tests.waiting import wait_until

EPISODE, SHORT = "/2026/tale æ.mp3", "/kort.mp3"
ENCODED = "/2026/tale%20%C3%A6.mp3"
MINUTE = 961_000  # bytes; the recording has 123 seconds and 1,976,155 bytes
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


def test_the_database_shows_exactly_the_downloads_that_were_made(stats: Stats, tmp_path: Path) -> None:
    rolled = "access-*.log.gz"
    with running_caddy(tmp_path, stats.media, stats.logs) as caddy:
        made = listen(caddy)
        caddy.get(ENCODED, "Rolled/1", range=f"bytes=0-{MINUTE // 2}")
        stats.run()
        first = stats.downloads()
        for number in range(150):  # until the log is rolled and compressed
            caddy.get(f"/x?{number}-{'q' * 9000}", "Filler/1", method="HEAD")
        wait_until(lambda: list(stats.logs.glob(rolled)), 20, what="Caddy to roll its log")
        caddy.get(ENCODED, "Rolled/1", range=f"bytes={MINUTE // 2}-{MINUTE}")
        stats.run()
    result = stats.run()

    facts = stats.database.rows("select total_size, id3_bytes, origin from stats.media where episode ~ 'tale'")
    assert facts == [{"total_size": 1_976_155, "id3_bytes": 45, "origin": "file"}]
    assert (first, stats.downloads()) == (made, made + 1)
    assert result["bad"] == {}
    assert {state for _, state in stats.files().values()} == {"done", "live"}
    reasons = {row["reason"]: row["requests"] for row in stats.database.rows("select * from stats.accounts")}
    assert reasons == {"counted": 15, "method": 151, "status": 3, "probe": 1, "bot": 1, "feed": 1}
    assert stats.database.value("select sum(downloads) from stats.download_day where episode = 'kort.mp3'") == 1
