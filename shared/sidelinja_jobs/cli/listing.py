"""`jobs list`: the newest jobs, as a table for people and as a document for programs."""

import sys
from datetime import datetime

import click

from sidelinja_jobs.cli.completing import TYPE_OPTION, complete_ids
from sidelinja_jobs.cli.connection import open_database
from sidelinja_jobs.cli.documents import JSON_OPTION, job_fields, print_document
from sidelinja_jobs.cli.durations import age, parse_duration, parse_time
from sidelinja_jobs.cli.exits import RefusedError
from sidelinja_jobs.cli.lookup import find_job, short
from sidelinja_jobs.cli.rows import STATUSES, JobRow
from sidelinja_jobs.cli.screen import Screen, screen_of
from sidelinja_jobs.cli.states import error_text, now_text, status_colour, status_text
from sidelinja_jobs.cli.tables import Cell, Column, print_table

_JOB_COLUMNS = (
    Column("ID"),
    Column("TYPE", flexible=True, least=10),
    Column("STATUS"),
    Column("ATTEMPT", right=True, leaves=3),
    Column("PRIORITY", right=True, leaves=1),
    Column("AGE", right=True, leaves=2),
    Column("NOW", flexible=True, least=12, leaves=5),
    Column("ERROR", flexible=True, least=16, leaves=4),
)


@click.command("list")
@click.option("--status", "statuses", type=click.Choice(STATUSES), multiple=True, help="May be given more than once.")
@TYPE_OPTION
@click.option("--errors", is_flag=True, help="Only jobs that failed: in error, or waiting after a failure.")
@click.option("--since", metavar="TIME", help="Enqueued since: 2h, 3d, the last 18:00, or 2026-12-24T18:00.")
@click.option("--before", metavar="ID", shell_complete=complete_ids, help="Only jobs enqueued before this one.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=20, show_default=True)
@JSON_OPTION
def list_jobs(
    *,
    statuses: tuple[str, ...],
    job_type: str | None,
    errors: bool,
    since: str | None,
    before: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """List jobs, newest first.

    NOW says where a job is at: done so far, what it waits for, or how it ended.
    """
    with open_database() as database:
        seconds, moment = _since(since)
        rows = database.rows(
            "list_jobs",
            JobRow,
            ids=None,
            statuses=list(statuses) or None,
            job_type=job_type,
            failing=errors,
            since=moment,
            since_seconds=seconds,
            before=find_job(database, before) if before is not None else None,
            limit=limit + 1,
        )
    jobs, has_more = rows[:limit], len(rows) > limit
    if as_json:
        print_document([job_fields(job) for job in jobs])
    elif not jobs:
        click.echo("no such jobs", err=True)
    else:
        screen = screen_of(sys.stdout)
        print_table(_JOB_COLUMNS, [_job_cells(job, screen) for job in jobs], screen)
        if has_more and screen.is_terminal:
            click.echo(f"more: jobs list --before {short(jobs[-1].id)}", err=True)


def _since(text: str | None) -> tuple[float | None, datetime | None]:
    """A duration before the database's now, or a moment."""
    if text is None:
        return None, None
    try:
        return parse_duration(text), None
    except RefusedError as refused:
        try:
            return None, parse_time(text, datetime.now().astimezone(), looks_back=True)
        except RefusedError:
            raise RefusedError(
                f"--since {text!r} is neither a duration nor a time", "write for example 2h, 3d or 2026-12-24T18:00"
            ) from refused


def _job_cells(job: JobRow, screen: Screen) -> list[Cell]:
    colour = status_colour(job)
    return [
        Cell(short(job.id) if screen.is_terminal else str(job.id)),
        Cell(job.job_type),
        Cell(status_text(job), colour),
        Cell(f"{job.attempt}/{job.max_attempts}", "yellow" if job.attempts and not job.has_ended else None),
        Cell(str(job.priority) if job.priority else ""),
        Cell(age(job.created_at, job.read_at)),
        Cell(now_text(job)),
        Cell(error_text(job), colour),
    ]
