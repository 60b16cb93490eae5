"""Finds out what is known of episodes before and after their lines are read, and keeps it in the tables.

From the feed: titles, times of publication, lengths. From the files, where they are mounted: length and tag of the
version that is there now. What a person or program has written into the tables stays.
"""

import time
from pathlib import Path
from typing import Any

from services.stats.counting import Facts
from services.stats.feed import FeedError, read_feed
from services.stats.mp3 import read_mp3
from services.stats.paths import Kind
from services.stats.report import Report
from services.stats.sources import Source
from services.stats.store import SQL
from sidelinja_jobs import Context
from sidelinja_jobs.json_text import clean_text

_LONGEST_TITLE = 1000


def read_facts(ctx: Context, source: Source, report: Report) -> Facts:
    """What the rules need to know before lines are read; the source's feed is read first, where there is one."""
    if source.feed_file is not None:
        _take_feed(ctx, source, source.feed_file, report)
    with ctx.transaction() as conn:
        published = conn.execute(SQL["published"]).fetchall()
        totals = conn.execute(SQL["known_totals"]).fetchall()
    return Facts(
        {(row["show"], row["episode"]): row["published"] for row in published},
        {(row["show"], row["episode"]): row["total_size"] for row in totals},
    )


def measure_new_files(ctx: Context, sources: list[Source], deadline: float) -> None:
    """Reads the files of versions that were fetched and are not known yet."""
    with ctx.transaction() as conn:
        rows = conn.execute(SQL["versions_without_facts"]).fetchall()
    for row in rows:
        if time.monotonic() > deadline:
            return
        path = next((path for source in sources if (path := _file_of(source, row["show"], row["episode"]))), None)
        if path is not None:
            _measure(ctx, path, row)


def _measure(ctx: Context, path: Path, row: dict[str, Any]) -> None:
    try:
        facts = read_mp3(path)
    except (OSError, ValueError):
        return
    if facts.total != row["total_size"] or facts.duration_seconds is None:
        return  # another version than the one that was fetched
    values = {"duration_seconds": facts.duration_seconds, "id3_bytes": facts.id3_bytes, "origin": "file"}
    with ctx.transaction() as conn:
        conn.execute(SQL["put_media"], row | values)


def _file_of(source: Source, show: str, episode: str) -> Path | None:
    if source.media_folder is None or not episode.lower().endswith(".mp3"):
        return None
    if source.layout.target_of(f"{source.layout.media_prefix.rstrip('/')}/{episode}").show != show:
        return None
    root = source.media_folder.resolve()
    path = (root / episode).resolve()
    return path if path.is_relative_to(root) and path.is_file() else None


def _take_feed(ctx: Context, source: Source, feed_file: Path, report: Report) -> None:
    try:
        items = read_feed(feed_file)
    except FeedError as error:
        report.warn("feed_unreadable")
        ctx.log.warning("feed not read", source=source.name, problem=str(error))
        return
    with ctx.transaction() as conn:
        for item in items:
            target = source.layout.target_of(item.url)
            if target.kind is not Kind.EPISODE:
                continue
            values = {"show": target.show, "episode": target.name}
            title = clean_text(item.title, _LONGEST_TITLE)
            conn.execute(SQL["put_episode"], values | {"title": title, "published_at": item.published})
            if item.size and item.duration_seconds:
                # The feed does not tell the tag's size; without one the threshold is a little lower.
                known = {"total_size": item.size, "duration_seconds": item.duration_seconds, "id3_bytes": 0}
                conn.execute(SQL["put_media"], values | known | {"origin": "feed"})
