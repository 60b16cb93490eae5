"""`jobs deliveries …`: where events are delivered to, what could not be delivered, and sending it anew."""

import base64
import functools
import secrets
import sys
from pathlib import Path
from typing import Any

import click

from services.admin.delivery.signature import PREFIX
from sidelinja_jobs.cli.connection import rows_of
from sidelinja_jobs.cli.documents import JSON_OPTION, fields, print_document
from sidelinja_jobs.cli.durations import relative
from sidelinja_jobs.cli.exits import NotFoundError, RefusedError
from sidelinja_jobs.cli.lookup import short
from sidelinja_jobs.cli.screen import screen_of
from sidelinja_jobs.cli.tables import Cell, Column, print_table
from sidelinja_jobs.cli.text import first_line, neutral
from sidelinja_jobs.queries import load_queries

Row = dict[str, Any]

SECRET_BYTES = 32
_SQL = load_queries(Path(__file__).with_name("commands.sql"))
_rows = functools.partial(rows_of, _SQL)
_SINK = click.option("--sink", metavar="NAME", help="Only of this sink.")
_COLOURS = {"delivering": "green", "waits": "yellow", "no forwarder": "yellow", "disabled": "red"}
_SINK_COLUMNS = (
    Column("SINK"),
    Column("ADDRESS", flexible=True, least=16),
    Column("STATE"),
    Column("BEHIND", right=True),
    Column("WAITING", right=True),
    Column("PARKED", right=True),
    Column("DELIVERED", right=True, leaves=2),
    Column("REASON", flexible=True, least=12, leaves=1),
)
_DELIVERY_COLUMNS = (
    Column("EVENT", right=True),
    Column("SINK", leaves=2),
    Column("JOB"),
    Column("TYPE", flexible=True, least=8, leaves=3),
    Column("CHANGE"),
    Column("TRIES", right=True),
    Column("NEXT", right=True),
    Column("ERROR", flexible=True, least=16, leaves=1),
)


@click.group()
def deliveries() -> None:
    """Events that are sent to other systems."""


@deliveries.command("sinks")
@JSON_OPTION
def list_sinks(as_json: bool) -> None:
    """List where events go, and how far each is behind."""
    rows = _rows("sinks")
    if as_json:
        print_document([fields(row) for row in rows])
    elif not rows:
        told = (
            "no sink was ever delivered to. Next: make secret NAME=webhook_url; without the stack DELIVERY_WEBHOOK_URL"
        )
        click.echo(f"jobs: {told}", err=True)
    else:
        print_table(_SINK_COLUMNS, [_sink_cells(row) for row in rows], screen_of(sys.stdout))


@deliveries.command("list")
@_SINK
@click.option("--parked", is_flag=True, help="Only those that were given up.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
@JSON_OPTION
def list_deliveries(*, sink: str | None, parked: bool, limit: int, as_json: bool) -> None:
    """List the events that could not be delivered yet, newest first."""
    rows = _rows("deliveries", sink=sink, parked=parked, limit=limit)
    if as_json:
        print_document([fields(row) for row in rows])
    elif not rows:
        click.echo("jobs: everything was delivered", err=True)
    else:
        print_table(_DELIVERY_COLUMNS, [_delivery_cells(row) for row in rows], screen_of(sys.stdout))


@deliveries.command("replay")
@click.argument("event_ids", metavar="[EVENT]...", nargs=-1, type=click.IntRange(1))
@click.option("--all", "is_all", is_flag=True, help="All that are parked.")
@_SINK
def replay(*, event_ids: tuple[int, ...], is_all: bool, sink: str | None) -> None:
    """Send parked events anew: these, or all.

    A receiver that has seen a later event of the same job since then drops an older one.
    """
    if bool(event_ids) == is_all:
        raise RefusedError("it is not said which events", "give their numbers, or --all")
    (row,) = _rows("replay", sink=sink, event_ids=list(event_ids) or None)
    if row["count"] == 0 and event_ids:
        raise NotFoundError("none of these events is parked", "jobs deliveries list --parked")
    click.echo(f"{row['count']} to be sent anew")


@deliveries.command("enable")
@click.argument("sink")
def enable(sink: str) -> None:
    """Let a sink go on at once that was disabled or waits."""
    (row,) = _rows("enable", sink=sink)
    click.echo(f"{neutral(sink)} goes on" if row["has_changed"] else f"{neutral(sink)} was going on already")


@deliveries.command("forget")
@click.argument("sink")
def forget(sink: str) -> None:
    """Remove a sink that no forwarder delivers to any more, with all that was left for it."""
    _rows("forget", sink=sink)
    click.echo(f"{neutral(sink)} is forgotten")


@deliveries.command("secret")
def make_secret() -> None:
    """Print a new secret for signatures, to be given to the forwarder and to the receiver."""
    click.echo(PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode())


def _sink_cells(row: Row) -> list[Cell]:
    return [
        Cell(row["name"]),
        Cell(row["address"]),
        Cell(row["state"], _COLOURS[row["state"]]),
        Cell(f"{row['lag_seconds']:.0f} s"),
        Cell(str(row["waiting"])),
        Cell(str(row["parked"]), "red" if row["parked"] else None),
        Cell(relative(row["delivered_at"], row["read_at"]) or "never"),
        Cell(first_line(row["reason"] or "")),
    ]


def _delivery_cells(row: Row) -> list[Cell]:
    if row["parked_at"] is not None:
        when = Cell("parked", "red")
    else:
        when = Cell(relative(row["next_at"], row["read_at"]) or "after another")
    return [
        Cell(str(row["event_id"])),
        Cell(row["sink"]),
        Cell(short(row["job_id"])),
        Cell(row["job_type"]),
        Cell(f"{row['old_status'] or 'new'} → {row['new_status']}"),
        Cell(str(row["attempts"])),
        when,
        Cell(first_line(row["last_error"] or "")),
    ]
