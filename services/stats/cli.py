"""Commands of the stats service: `jobs stats …`, the reports and what an operator does.

They run where the command line is, without the worker's packages, so nothing else of this service is imported.
"""

import csv
import functools
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import click
from psycopg.types.json import Jsonb

from sidelinja_jobs.cli.connection import rows_of
from sidelinja_jobs.cli.documents import JSON_OPTION, print_document
from sidelinja_jobs.cli.exits import NotFoundError, RefusedError
from sidelinja_jobs.cli.screen import screen_of
from sidelinja_jobs.cli.tables import Cell, Column, print_table
from sidelinja_jobs.cli.text import neutral
from sidelinja_jobs.queries import load_queries

_SQL = load_queries(Path(__file__).with_name("cli.sql"))
_rows = functools.partial(rows_of, _SQL)
_DEFAULT_DAYS = 30
_LEAST_IN_PUBLIC = 5  # fewer downloads could be one person's
_NUMBERS = frozenset((
    "downloads", "bytes", "listeners", "requests", "first_24_hours", "first_7_days", "first_30_days", "lines", "bad",
    "byte_offset", "size_seen", "reported_subscribers", "heavy_addresses", "unknown_lengths", "old", "new",
    "difference",
))  # fmt: skip
_WIDE = frozenset(("episode", "title", "agent", "app", "host", "feed", "name", "folder", "show"))

_DAY, _EPISODE, _DOWNLOADS = ("day", "date", "dato", "dag"), ("episode", "file", "path", "url", "fil"), (
    "downloads", "count", "hits", "antall", "nedlastinger",
)  # fmt: skip

# What stands in place of an empty table.
_NOTHING = "nothing was counted there yet. Next: jobs stats files"
_NO_FILE = (
    "no log was read yet. Next: is there one in the folder (CADDY_LOG_DIR in the stack)? `jobs stats run`, then "
    "`jobs list --type stats_parse` says what a run met"
)
_NO_SOURCE = "there is no source. Next: jobs stats sources set NAME"
_AS_CSV = click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")

Row = dict[str, Any]
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
        return round(100 * (self.new - self.old) / self.old, 1) if self.old else None


@click.group()
def stats() -> None:
    """Podcast statistics from access logs.

    Modelled on the IAB Tech Lab's guidelines, not certified. Days are those of the source's time zone.
    """


def _report(name: str, text: str, *, has_days: bool = True, has_show: bool = True, has_public: bool = False) -> None:
    """A command that prints a statement's rows as a table, as JSON or as CSV."""

    def command(as_json: bool, as_csv: bool, **given: Any) -> None:
        last = given.pop("last", None) or date.today() + timedelta(1)
        first = given.pop("first", None) or last - timedelta(_DEFAULT_DAYS)
        given["least"] = _LEAST_IN_PUBLIC if given.pop("public", False) else 0
        rows = _rows(name, first=_as_date(first), last=_as_date(last), **({"show": None} | given))
        _print(rows, as_json, as_csv, empty=_NO_FILE if name == "files" else _NOTHING)

    options = [_AS_CSV, JSON_OPTION]
    if has_show:
        options.append(click.option("--show", metavar="NAME", help="One show."))
    if has_days:
        day = click.DateTime(["%Y-%m-%d"])
        options.append(click.option("--to", "last", type=day, metavar="DAY", help="The last day."))
        options.append(
            click.option("--from", "first", type=day, metavar="DAY", help="The first; 30 before, if not given.")
        )
    if has_public:
        options.append(click.option("--public", is_flag=True, help=f"Leave out rows under {_LEAST_IN_PUBLIC}."))
    for option in options:
        command = option(command)
    stats.command(name=name, help=text)(command)


_report("episodes", "Downloads of each episode: first 24 hours, 7 and 30 days, all.", has_days=False)
_report("days", "Downloads and listeners of each day and show.")
_report("downloads", "Downloads of each day and episode.")
_report("apps", "Downloads by app.", has_public=True)
_report("devices", "Downloads by kind of device.", has_public=True)
_report("countries", "Downloads by country.", has_public=True)
_report("referrers", "Downloads by the site that referred the listener.", has_public=True)
_report("excluded", "All requests by what became of them.", has_show=False)
_report("feeds", "Fetches of feeds, and the subscribers that the fetchers report.", has_show=False)
_report("unknown", "User agents of open days that the list does not know.", has_show=False)
_report("files", "How far each log file was read.", has_days=False, has_show=False)


@stats.group(name="sources", invoke_without_command=True)
@_AS_CSV
@JSON_OPTION
@click.pass_context
def sources(ctx: click.Context, as_json: bool, as_csv: bool) -> None:
    """The logs that are counted."""
    if ctx.invoked_subcommand is None:
        _print(_rows("sources"), as_json, as_csv, empty=_NO_SOURCE)


@sources.command(name="set")
@click.argument("name")
@click.option("--folder", metavar="FOLDER", help="Of the log, below STATS_LOG_ROOT.")
@click.option("--base-name", metavar="NAME", help="Of the log while it is written; access.log, if never given.")
@click.option("--host", "hosts", metavar="HOST", multiple=True, help="A site that counts; several times.")
@click.option("--media-prefix", metavar="PATH", help="Path of the site below which the episodes lie.")
@click.option("--feed", "feed_paths", metavar="PATH", multiple=True, help="Path of a feed; several times.")
@click.option("--show", metavar="NAME", help="The episodes' show.")
@click.option("--shows-by-folder/--one-show", default=None, help="The first folder below the prefix names the show.")
@click.option("--media-folder", metavar="FOLDER", help="The episodes' files, below MEDIA_ROOT.")
@click.option("--feed-file", metavar="FILE", help="A copy of the feed, below MEDIA_ROOT.")
@click.option("--time-zone", metavar="ZONE", help="Whose days are counted.")
@click.option("--whole-durations", type=click.Choice(["ns", "ms"]), help="ms for a log with duration_format ms.")
@click.option("--enable/--disable", "enabled", default=None, help="Whether it is read.")
def set_source(name: str, hosts: tuple[str, ...], feed_paths: tuple[str, ...], **given: Any) -> None:
    """Make a source, or change what is given of it.

    Hosts and feeds that are given take the place of all before; one empty text ("") takes them all away.
    """
    lists = {field: [value for value in values if value] if values else None
             for field, values in (("hosts", hosts), ("feed_paths", feed_paths))}  # fmt: skip
    _print(_rows("set_source", name=name, **lists, **given), as_json=True, as_csv=False)


@sources.command(name="remove")
@click.argument("name")
def remove_source(name: str) -> None:
    """Remove a source; its figures and positions stay."""
    if not _rows("remove_source", name=name):
        raise NotFoundError(f"there is no source {name!r}", "jobs stats sources")
    click.echo(f"{neutral(name)} is removed")


@stats.command(name="run")
@JSON_OPTION
def run_now(as_json: bool) -> None:
    """Count what is new now: the run that is planned is pulled forward."""
    waiting = _rows("waiting_run")
    if waiting:
        (row,) = _rows("run_now", id=waiting[0]["id"])
        row = waiting[0] | row
    else:
        (row,) = _rows("enqueue_run", payload=Jsonb({}), key="stats_parse: more")
    if as_json:
        print_document(row)
    else:
        click.echo(f"{row['id']}: {row['outcome']}")


@stats.command(name="reprocess")
@click.argument("first", type=click.DateTime(["%Y-%m-%d"]))
@click.argument("last", type=click.DateTime(["%Y-%m-%d"]))
@click.option("--note", metavar="TEXT", help="Why; kept with the days.")
@JSON_OPTION
def reprocess(first: datetime, last: datetime, note: str | None, as_json: bool) -> None:
    """Count the days FIRST to LAST again from the raw files, which must all be there."""
    asked = {"from": str(first.date()), "to": str(last.date())} | ({"note": note} if note else {})
    (row,) = _rows("enqueue_run", payload=Jsonb({"reprocess": asked}), key=None)
    if as_json:
        print_document(row)
    else:
        click.echo(str(row["id"]))


@stats.command(name="compare")
@click.argument("old", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_AS_CSV
@JSON_OPTION
def compare(old: Path, as_csv: bool, as_json: bool) -> None:
    """Compare with another program's counts: a CSV with the columns day, episode and downloads.

    For the week in which the old program and this one both run. An episode may be given as a path or an address.
    """
    try:
        counts = read_old_counts(old)
    except ValueError as error:
        raise RefusedError(f"{old}: {error}", "write a head line day,episode,downloads") from error
    days = [day for day, _ in counts]
    new = _rows("downloads", first=min(days), last=max(days), show=None) if days else []
    differences = compare_counts(counts, new)
    _print([vars(one) | {"difference": one.new - one.old, "percent": one.percent} for one in differences],
           as_json, as_csv)  # fmt: skip


def _print(rows: list[Row], as_json: bool, as_csv: bool, *, empty: str = _NOTHING) -> None:
    if as_json:
        print_document(rows)
    elif as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(rows[0] if rows else [])
        writer.writerows([_csv_cell(value) for value in row.values()] for row in rows)
    elif rows:
        heads = [
            Column(name.replace("_", " ").upper(), right=name in _NUMBERS, flexible=name in _WIDE) for name in rows[0]
        ]
        print_table(heads, [[Cell(_text(value)) for value in row.values()] for row in rows], screen_of(sys.stdout))
    else:
        click.echo(f"jobs: {empty}", err=True)


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M")
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def _csv_cell(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula is marked as text: names come from anybody's headers."""
    text = _text(value)
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") and not isinstance(value, int | float) else text


def _as_date(moment: Any) -> date:
    return moment.date() if isinstance(moment, datetime) else moment


# ---------------------------------------------------------------- the parallel week


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


commands: list[click.Command] = [stats]
