"""Length and tag of MP3s, and what a feed says of its episodes; files that somebody made to do harm."""

import random
from datetime import UTC, datetime
from pathlib import Path

import pytest

from services.stats.feed import FeedError, date_of, read_feed, seconds_of_clock
from services.stats.mp3 import Mp3Facts, read_mp3

# MPEG 1 layer III, 128 kbit/s, 44.1 kHz, stereo: 417 bytes and 1152 samples a frame.
FRAME = b"\xff\xfb\x90\x00" + b"\0" * 413
ID3 = b"ID3\x04\0\0\0\0\0\x14" + b"\0" * 20


def facts(tmp_path: Path, content: bytes) -> Mp3Facts:
    path = tmp_path / "a.mp3"
    path.write_bytes(content)
    return read_mp3(path)


def test_a_real_recording_has_its_length_and_tag(samples: Path) -> None:
    found = read_mp3(samples / "audio" / "ljspeech-2min.mp3")

    assert (found.total, found.id3_bytes) == (1_976_155, 45)
    assert found.duration_seconds == pytest.approx(123.48, abs=0.05)


def test_frames_are_counted_where_the_encoder_did_not(tmp_path: Path) -> None:
    found = facts(tmp_path, ID3 + FRAME * 1000 + b"TAG" + b"\0" * 125)

    assert found.id3_bytes == 30
    assert found.duration_seconds == pytest.approx(1000 * 1152 / 44100)


def test_the_encoders_count_is_taken_before_any_walk(tmp_path: Path) -> None:
    head = FRAME[:36] + b"Xing\0\0\0\x01" + (5000).to_bytes(4, "big") + FRAME[48:]

    assert facts(tmp_path, head + FRAME * 3).duration_seconds == pytest.approx(5000 * 1152 / 44100)


def test_nothing_breaks_or_hangs_the_reader(tmp_path: Path) -> None:
    draw = random.Random(5)  # noqa: S311 - the same files each time
    contents = [
        b"",
        b"I",
        b"ID3",
        ID3[:9],
        b"ID3\x04\0\0\x7f\x7f\x7f\x7f",
        b"\xff" * 5000,
        FRAME,
        FRAME[:3],
        b"\0" * 9000,
    ]
    contents += [draw.randbytes(draw.randrange(3000)) for _ in range(100)]
    contents += [bytes(byte if draw.random() > 0.02 else draw.randrange(256) for byte in FRAME * 8) for _ in range(50)]

    for content in contents:
        found = facts(tmp_path, content)
        assert found.total == len(content)
        assert 0 <= found.id3_bytes <= len(content)
        assert found.duration_seconds is None or found.duration_seconds > 0


FEED = """<?xml version="1.0" encoding="UTF-8"?>
<rss version="2.0" xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"><channel><title>Lyd</title>
<item><title>Første &amp; beste</title><pubDate>Sun, 29 Nov 2026 06:00:00 +0100</pubDate>
<enclosure url="https://media.example.no/ep%20æ.mp3?from=feed" length="1440561" type="audio/mpeg"/>
<itunes:duration>00:03:00</itunes:duration><itunes:image href="x"/></item>
<item><title>Uten lyd</title></item>
<item><title>Odd</title><pubDate>once</pubDate><enclosure url="/b.mp3" length="-1"/>
<itunes:duration>long</itunes:duration></item></channel></rss>"""


def test_a_feed_tells_title_time_length_and_size(tmp_path: Path) -> None:
    path = tmp_path / "feed.xml"
    path.write_text(FEED)

    first, odd = read_feed(path)

    assert (first.title, first.size, first.duration_seconds) == ("Første & beste", 1_440_561, 180.0)
    assert first.published == datetime(2026, 11, 29, 5, tzinfo=UTC)
    assert first.url == "https://media.example.no/ep%20æ.mp3?from=feed"
    assert (odd.title, odd.size, odd.published, odd.duration_seconds) == ("Odd", 0, None, None)


BOMB = '<!DOCTYPE r [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><rss><item><title>&b;</title></item></rss>'


@pytest.mark.parametrize("text", [BOMB, "<rss>", "", "{}", "<rss>\0</rss>"])
def test_what_is_no_feed_or_holds_a_document_type_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "feed.xml"
    path.write_text(text)

    with pytest.raises(FeedError, match="is no feed"):
        read_feed(path)


def test_a_feed_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FeedError, match="cannot read"):
        read_feed(tmp_path / "feed.xml")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("3723", 3723), ("1:02:03", 3723), ("62:03", 3723), ("0", None), ("", None), ("1:2:3:4", None), ("٣", None)],
)
def test_a_length_is_read_however_it_is_written(text: str, seconds: float | None) -> None:
    assert seconds_of_clock(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "x", "Sun, 99 Nov 2026 06:00:00 +0100", "Sun, 29 Nov 1026 06:00:00 +0100", "1 Jan 9999"]
)
def test_an_impossible_time_of_publication_is_none(text: str) -> None:
    assert date_of(text) is None
