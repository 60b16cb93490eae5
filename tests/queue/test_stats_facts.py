"""What is known of episodes: by the file, by the feed, by a person; and what that changes."""

import shutil
from datetime import datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

from services.stats.paths import Layout
from services.stats.sources import Source
from tests.queue.stats_support import Stats
from tests.unit.stats_support import NOON, OSLO, SHOW, line

ITEM = """<item><title>{title}</title><pubDate>{at}</pubDate><enclosure url="https://media.example.no/{name}"
length="{size}" type="audio/mpeg"/><itunes:duration>{duration}</itunes:duration></item>"""
RSS = '<rss xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"><channel>{items}</channel></rss>'


def item(name: str, at: datetime = NOON, size: int = 1_000_000, duration: str = "1000") -> str:
    return ITEM.format(title=f"Om {name}", at=format_datetime(at), name=name, size=size, duration=duration)


def write_feed(stats: Stats, *items: str) -> None:
    (stats.media / "feed.xml").write_text(RSS.format(items="".join(items)))
    stats.database.rows("update stats.source set feed_file = 'feed.xml'")


def media(stats: Stats, name: str) -> dict[str, Any]:
    return stats.database.row("select * from stats.media where episode = %s", name)


def test_a_file_that_was_fetched_is_measured_where_it_lies(stats: Stats, samples: Path) -> None:
    recording = samples / "audio" / "ljspeech-2min.mp3"
    (stats.media / "lyd" / "2026").mkdir(parents=True)
    shutil.copy(recording, stats.media / "lyd" / "2026" / "tale.mp3")
    stats.database.rows("update stats.source set media_folder = 'lyd'")
    total = recording.stat().st_size
    stats.write(
        line("/2026/tale.mp3", total=total, size=1_000_000), line("/2026/tale.mp3", agent="B/1", total=total - 1)
    )

    result = stats.run()

    found = media(stats, "2026/tale.mp3")
    assert (found["total_size"], found["id3_bytes"], found["origin"]) == (total, 45, "file")
    assert 955_000 < found["threshold"] < 965_000  # a minute of 123 seconds
    assert stats.downloads() == 2  # the whole of the version that is not there any more as well
    assert result["days"][str(NOON.date())]["unknown_lengths"] == 1


def test_the_feed_gives_titles_times_and_lengths_and_hides_what_is_not_published(stats: Stats) -> None:
    write_feed(stats, item("a.mp3"), item("b.mp3", at=NOON + timedelta(hours=3)), item("cover.jpg"))
    stats.write(line("/a.mp3", total=1_000_000, size=60_001), line("/b.mp3", total=1_000_000))
    stats.write(line("/b.mp3", at=NOON + timedelta(hours=4), total=1_000_000, agent="B/1"))

    result = stats.run()

    assert result["excluded"] == {"pre_release": 1}
    assert (stats.downloads(name="a.mp3"), stats.downloads(name="b.mp3")) == (1, 1)
    assert media(stats, "a.mp3")["threshold"] == 60_000
    episodes = stats.database.rows("select episode, title, published_at from stats.episode order by 1")
    assert [(row["episode"], row["title"]) for row in episodes] == [("a.mp3", "Om a.mp3"), ("b.mp3", "Om b.mp3")]
    assert episodes[0]["published_at"].astimezone(OSLO) == NOON


def test_what_a_person_wrote_is_never_overwritten(stats: Stats) -> None:
    stats.know("a.mp3", 1_000_000, 100.0, 0)
    stats.database.connect("operator").execute("insert into stats.episode values (%s, 'a.mp3', 'Mitt')", [SHOW])
    write_feed(stats, item("a.mp3", at=NOON + timedelta(days=1)))
    stats.write(line("/a.mp3", total=1_000_000))
    stats.run()

    assert (media(stats, "a.mp3")["duration_seconds"], stats.downloads()) == (100.0, 1)
    assert stats.database.value("select title from stats.episode") == "Mitt"


def test_a_length_that_is_learned_later_counts_for_the_open_day(stats: Stats) -> None:
    stats.write(line("/a.mp3", total=1_000_000, size=100_000))
    stats.run()
    assert stats.downloads() == 0
    write_feed(stats, item("a.mp3"))
    stats.run()
    assert stats.downloads() == 1
    stats.database.connect("operator").execute(
        "update stats.media set duration_seconds = 300, origin = 'manual' where episode = 'a.mp3'"
    )
    stats.run()

    assert stats.downloads() == 0


def test_what_turns_out_to_be_known_of_another_file_no_longer_counts_for_the_open_day(stats: Stats) -> None:
    stats.know("a.mp3", total=1_000_000, duration=1000)
    stats.write(line("/a.mp3", total=1_000_000, size=100_000))
    stats.run()
    assert stats.downloads() == 1

    stats.database.connect("operator").execute("update stats.media set episode = 'b.mp3' where episode = 'a.mp3'")
    stats.run()

    assert stats.downloads() == 0


def test_a_feed_that_cannot_be_read_is_a_warning(stats: Stats) -> None:
    write_feed(stats, "<broken>")
    stats.write(line())

    assert (stats.run()["warnings"], stats.downloads()) == (["feed_unreadable"], 1)


def test_an_answer_that_does_not_say_the_files_size_is_taken_for_the_known_one(stats: Stats) -> None:
    """The header filter of Caddy can leave all response headers out."""
    stats.write(line(resp_headers={}), line("/other.mp3", resp_headers={}))
    stats.run()

    assert (stats.downloads(name="ep1.mp3"), stats.downloads(name="other.mp3")) == (1, 0)


def test_the_same_name_in_another_show_is_another_episode(stats: Stats) -> None:
    (stats.logs / "to").mkdir()
    stats.database.rows("insert into stats.source (name, folder, show) values ('to', 'to', 'To')")
    stats.write(line())
    stats.write(line(), name="to/access.log")
    stats.run()

    assert stats.database.rows("select show, downloads from stats.download_day order by 1") == [
        {"show": "Lyd", "downloads": 1}, {"show": "To", "downloads": 1},
    ]  # fmt: skip


def test_no_path_of_a_log_leads_out_of_the_media_folder(stats: Stats, tmp_path: Path) -> None:
    from services.stats.facts import _file_of

    (tmp_path / "secret.mp3").write_bytes(b"x")
    (stats.media / "link.mp3").symlink_to(tmp_path / "secret.mp3")
    source = Source("m", stats.logs, "access.log", Layout(SHOW), "Europe/Oslo", stats.media, None)

    assert [_file_of(source, SHOW, name) for name in ("../secret.mp3", "link.mp3", "borte.mp3")] == [None] * 3
