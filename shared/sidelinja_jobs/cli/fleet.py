"""`jobs workers` and `jobs types`: who works, and what waits for them."""

import sys

import click

from sidelinja_jobs.cli.completing import TYPE_OPTION
from sidelinja_jobs.cli.connection import open_database
from sidelinja_jobs.cli.documents import JSON_OPTION, fields, print_document
from sidelinja_jobs.cli.durations import age, relative
from sidelinja_jobs.cli.lookup import short
from sidelinja_jobs.cli.rows import TypeRow, WorkerRow
from sidelinja_jobs.cli.screen import screen_of
from sidelinja_jobs.cli.tables import Cell, Column, print_table
from sidelinja_jobs.cli.text import first_line

_STATE_COLOURS = {"busy": "cyan", "stuck": "red", "gone": "red"}

_WORKER_COLUMNS = (
    Column("WORKER", flexible=True, least=12),
    Column("TYPE", flexible=True, least=10),
    Column("STATE"),
    Column("JOB", leaves=4),
    Column("FOR", right=True, leaves=4),
    Column("SEEN", right=True),
    Column("UP", right=True, leaves=2),
    Column("VERSION", flexible=True, leaves=1),
    Column("HOST", flexible=True, least=8, leaves=3),
    Column("PID", right=True, leaves=3),
)
_TYPE_COLUMNS = (
    Column("TYPE", flexible=True, least=10),
    Column("WORKERS", right=True),
    Column("RUNNING", right=True),
    Column("DUE", right=True),
    Column("OLDEST", right=True, leaves=2),
    Column("LATER", right=True, leaves=1),
    Column("ERRORS", right=True),
    Column("STATE", flexible=True, least=12),
)


@click.command()
@TYPE_OPTION
@JSON_OPTION
def workers(job_type: str | None, as_json: bool) -> None:
    """List the worker processes and what they do.

    busy, idle; stuck: its run has lost the lease; gone: it has not shown itself for 35 seconds.
    """
    with open_database() as database:
        rows = database.rows("list_workers", WorkerRow, job_type=job_type)
    if as_json:
        print_document([fields(row) for row in rows])
    elif not rows:
        click.echo("no worker has registered", err=True)
    else:
        print_table(_WORKER_COLUMNS, [_worker_cells(row) for row in rows], screen_of(sys.stdout))


@click.command()
@JSON_OPTION
def types(as_json: bool) -> None:
    """List the job types and their pauses.

    Workers, unfinished and failed jobs are counted; completed ones are not.
    """
    with open_database() as database:
        rows = database.rows("list_types", TypeRow)
    if as_json:
        print_document([fields(row) for row in rows])
    elif not rows:
        click.echo("there is no job type yet; jobs migrate makes them", err=True)
    else:
        print_table(_TYPE_COLUMNS, [_type_cells(row) for row in rows], screen_of(sys.stdout))


def _worker_cells(row: WorkerRow) -> list[Cell]:
    holds_job = row.state in ("busy", "stuck")
    return [
        Cell(row.worker_id),
        Cell(row.job_type),
        Cell(row.state, _STATE_COLOURS.get(row.state)),
        Cell(short(row.current_job_id) if holds_job else ""),
        Cell(age(row.current_since, row.read_at) if holds_job else ""),
        Cell(relative(row.seen_at, row.read_at)),
        Cell(age(row.started_at, row.read_at)),
        Cell(row.version),
        Cell(row.host),
        Cell(str(row.pid)),
    ]


def _type_cells(row: TypeRow) -> list[Cell]:
    state, colour = _type_state(row)
    return [
        Cell(row.name),
        Cell(str(row.workers), None if row.workers or not row.due else "red"),
        Cell(str(row.running)),
        Cell(str(row.due)),
        Cell(age(row.oldest_due, row.read_at)),
        Cell(str(row.later)),
        Cell(str(row.errors), "red" if row.errors else None),
        Cell(state, colour),
    ]


def _type_state(row: TypeRow) -> tuple[str, str | None]:
    if row.is_paused:
        until = f" {relative(row.paused_until, row.read_at)}" if row.paused_until else ""
        reason = f": {first_line(row.pause_reason)}" if row.pause_reason else ""
        return f"paused by {row.pause_origin}{f', resumes{until}' if until else ''}{reason}", "yellow"
    if not row.is_known:
        return "unknown: no job_type row", "yellow"
    return ("no worker", "red") if not row.workers else ("", None)
