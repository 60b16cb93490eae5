"""Reads a copy of a show's RSS feed: when each episode was published, how long it is, and how large its file.

Anybody may have written the feed, so a document type is refused (no entities), and sizes are bounded.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from xml.parsers import expat

LARGEST_FEED = 64 << 20  # bytes
_MOST_ITEMS = 20_000
_LONGEST_TEXT = 4000
_ITUNES = "http://www.itunes.com/dtds/podcast-1.0.dtd "
_CLOCK = re.compile(r"(?:(\d{1,3}):)?(\d{1,4}):(\d{1,2})(?:\.\d+)?", re.ASCII)
_WANTED = frozenset(("title", "pubDate", f"{_ITUNES}duration"))


class FeedError(Exception):
    """The file is no feed that can be read."""


@dataclass
class FeedItem:
    """An episode as the feed tells it."""

    url: str = ""
    size: int = 0
    title: str = ""
    published: datetime | None = None
    duration_seconds: float | None = None


def read_feed(path: Path) -> list[FeedItem]:
    """The items that have an enclosure.

    Raises:
        FeedError: the file cannot be read, is too large, or is no XML.
    """
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FEED + 1)
    except OSError as error:
        raise FeedError(f"cannot read {path}: {error.strerror}") from error
    if len(content) > LARGEST_FEED:
        raise FeedError(f"{path} has more than {LARGEST_FEED} bytes, expected a feed")
    reader = _FeedReader()
    try:
        reader.parse(content)
    except (expat.ExpatError, FeedError) as error:
        raise FeedError(f"{path} is no feed: {error}") from error
    return [item for item in reader.items if item.url]


class _FeedReader:
    def __init__(self) -> None:
        self.items: list[FeedItem] = []
        self._item: FeedItem | None = None
        self._text: list[str] | None = None
        self._depth = 0

    def parse(self, content: bytes) -> None:
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.StartDoctypeDeclHandler = self._refuse
        parser.Parse(content, True)

    def _refuse(self, *_: object) -> None:
        raise FeedError("it has a document type, which no feed needs")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if name == "item" and len(self.items) < _MOST_ITEMS:
            self._item, self._depth = FeedItem(), 0
            self.items.append(self._item)
        elif self._item is not None and self._depth == 1:
            if name == "enclosure" and not self._item.url:
                self._item.url = attributes.get("url", "")[:_LONGEST_TEXT]
                length = attributes.get("length", "")
                self._item.size = int(length) if length.isascii() and length.isdigit() and len(length) < 16 else 0
            self._text = [] if name in _WANTED else None

    def _end(self, name: str) -> None:
        if name == "item":
            self._item = None
        elif self._item is not None and self._text is not None and self._depth == 1:
            text = "".join(self._text)[:_LONGEST_TEXT].strip()
            if name == "title":
                self._item.title = text
            elif name == "pubDate":
                self._item.published = date_of(text)
            else:
                self._item.duration_seconds = seconds_of_clock(text)
            self._text = None
        self._depth -= 1

    def _characters(self, text: str) -> None:
        if self._text is not None and len(self._text) < _LONGEST_TEXT:
            self._text.append(text)


def date_of(text: str) -> datetime | None:
    """A time of publication between 2000 and 2199."""
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return moment if 2000 <= moment.year < 2200 else None


def seconds_of_clock(text: str) -> float | None:
    """A length as 1:02:03, 62:03 or 3723."""
    if text.isascii() and text.isdigit() and len(text) < 8:
        return float(text) or None
    found = _CLOCK.fullmatch(text)
    if found is None:
        return None
    return float(int(found[1] or 0) * 3600 + int(found[2]) * 60 + int(found[3])) or None
