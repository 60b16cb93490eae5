"""The parallel week: another program's counts beside ours."""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import unquote

_DAY, _EPISODE, _DOWNLOADS = ("day", "date", "dato", "dag"), ("episode", "file", "path", "url", "fil"), (
    "downloads", "count", "hits", "antall", "nedlastinger",
)  # fmt: skip

Counts = dict[tuple[date, str], int]


@dataclass(frozen=True)
class Difference:
    """One episode on one day, as both have it."""

    day: date
    episode: str
    old: int
    new: int

    @property
    def percent(self) -> float | None:
        """By how much the new count differs from the old one."""
        return round(100 * (self.new - self.old) / self.old, 1) if self.old else None


def read_old_counts(path: Path) -> Counts:
    """A CSV with a head line; commas or semicolons.

    Raises:
        ValueError: a column is missing, or a line cannot be read; names the line.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8: {error}") from error
    lines = text.splitlines()
    rows = csv.DictReader(lines, delimiter=";" if lines and ";" in lines[0] else ",")
    heads = {str(head).strip().lower(): head for head in rows.fieldnames or []}
    columns = [next((heads[name] for name in names if name in heads), None) for names in (_DAY, _EPISODE, _DOWNLOADS)]
    if None in columns:
        raise ValueError(f"its head line is {lines[0][:200] if lines else ''!r}, expected day, episode and downloads")
    counts: Counts = {}
    for number, row in enumerate(rows, start=2):
        day, episode, downloads = (str(row[column]) for column in columns)
        try:
            key = date.fromisoformat(day.strip()[:10]), unquote(episode.strip().partition("?")[0])
            counts[key] = counts.get(key, 0) + int(downloads)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from error
    return counts


def compare_counts(old: Counts, new: Iterable[Mapping[str, Any]]) -> list[Difference]:
    """Every episode and day that either has, the largest differences first."""
    ours = {(row["day"], row["episode"]): row["downloads"] for row in new}
    names = {episode for _, episode in ours}
    theirs: Counts = {}
    for (day, episode), count in old.items():
        key = day, _our_name(episode, names)
        theirs[key] = theirs.get(key, 0) + count
    keys = theirs.keys() | ours.keys()
    found = [Difference(day, name, theirs.get((day, name), 0), ours.get((day, name), 0)) for day, name in keys]
    return sorted(found, key=lambda one: (-abs(one.new - one.old), one.day, one.episode))


def _our_name(episode: str, names: set[str]) -> str:
    """An address or path as ours, which is its end."""
    parts = episode.split("/")
    return next((name for start in range(len(parts)) if (name := "/".join(parts[start:])) in names), episode)
