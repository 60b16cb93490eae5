"""`jobs list`, `jobs workers` and `jobs types`: tables for people, documents for programs."""

import sys
from collections.abc import Iterable
from datetime import datetime

import click

from sidelinja_jobs.cli.completing import complete_ids, complete_types
from sidelinja_jobs.cli.connection import open_database
from sidelinja_jobs.cli.documents import fields, job_fields, print_document
from sidelinja_jobs.cli.durations import age, brief, parse_duration, parse_time, relative
from sidelinja_jobs.cli.exits import RefusedError
from sidelinja_jobs.cli.lookup import find_job, short
from sidelinja_jobs.cli.rows import STATUSES, WAITING, JobRow, TypeRow, WorkerRow
from sidelinja_jobs.cli.screen import Screen, screen_of
from sidelinja_jobs.cli.tables import Cell, Column, table
from sidelinja_jobs.cli.text import first_line

COLOURS = {"completed": "green", "running": "cyan", "retry": "yellow", "error": "red"}
# A worker that has been silent for longer than this is counted as gone, as in the database's functions.
GONE_SECONDS = 60

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


@click.command("list")
@click.option("--status", "statuses", type=click.Choice(STATUSES), multiple=True, help="May be given more than once.")
@click.option("--type", "job_type", metavar="TYPE", shell_complete=complete_types)
@click.option("--errors", is_flag=True, help="Only jobs that failed: in error, or waiting after a failure.")
@click.option("--since", metavar="TIME", help="Enqueued since: 2h, 3d, or 2026-12-24T18:00.")
@click.option("--before", metavar="ID", shell_complete=complete_ids, help="Only jobs enqueued before this one.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=20, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
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
            statuses=list(statuses) or None,
            job_type=job_type,
            failing=errors,
            since=moment,
            since_seconds=seconds,
            before=find_job(database, before) if before else None,
            limit=limit + 1,
        )
    jobs, has_more = rows[:limit], len(rows) > limit
    if as_json:
        print_document([job_fields(job) for job in jobs])
    elif not jobs:
        click.echo("no such jobs", err=True)
    else:
        screen = screen_of(sys.stdout)
        _print(table(_JOB_COLUMNS, [_job_cells(job, screen) for job in jobs], screen))
        if has_more and screen.is_terminal:
            click.echo(f"more: jobs list --before {short(jobs[-1].id)}", err=True)


@click.command()
@click.option("--type", "job_type", metavar="TYPE", shell_complete=complete_types)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def workers(job_type: str | None, as_json: bool) -> None:
    """List the worker processes and what they do."""
    with open_database() as database:
        rows = database.rows("list_workers", WorkerRow, job_type=job_type)
    if as_json:
        print_document([fields(row) | {"state": worker_state(row)} for row in rows])
    elif not rows:
        click.echo("no worker has registered", err=True)
    else:
        screen = screen_of(sys.stdout)
        _print(table(_WORKER_COLUMNS, [_worker_cells(row) for row in rows], screen))


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
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
        _print(table(_TYPE_COLUMNS, [_type_cells(row) for row in rows], screen_of(sys.stdout)))


def now_text(job: JobRow) -> str:
    """Where a job is at, in a few words."""
    now = job.read_at
    if job.status == "running":
        share = "" if job.progress is None else f"{job.progress:.0%} "
        note = f" {first_line(job.progress_note)}" if job.progress_note else ""
        return f"{share}{age(job.started_at, now)}{note}"
    if job.status in WAITING:
        if job.is_paused:
            return "paused"
        wait = (job.scheduled_for - now).total_seconds()
        return f"in {brief(wait)}" if wait > 0 else f"due {brief(-wait)}"
    return ", ".join(part for part in (relative(job.completed_at, now), took_text(job)) if part)


def took_text(job: JobRow) -> str:
    """How long the last run took; nothing when the two moments cannot belong to the same run."""
    if job.started_at is None or job.completed_at is None or job.completed_at < job.started_at:
        return ""
    return f"took {brief((job.completed_at - job.started_at).total_seconds())}"


def error_text(job: JobRow) -> str:
    """Class and first line of the last failure."""
    parts = [job.error_class or "", first_line(job.error_msg or "")]
    return ": ".join(part for part in parts if part)


def status_text(job: JobRow) -> str:
    """The status, and what was asked of it."""
    return "running, cancelling" if job.status == "running" and job.cancel_requested_at else job.status


def status_colour(job: JobRow) -> str | None:
    return None if job.was_cancelled else COLOURS.get(job.status)


def worker_state(row: WorkerRow) -> str:
    """busy, idle, or gone: silent for a minute."""
    if (row.read_at - row.seen_at).total_seconds() > GONE_SECONDS:
        return "gone"
    return "busy" if row.is_busy else "idle"


def _since(text: str | None) -> tuple[float | None, datetime | None]:
    """A duration before the database's now, or a moment."""
    if text is None:
        return None, None
    try:
        return parse_duration(text), None
    except RefusedError as refused:
        try:
            return None, parse_time(text, datetime.now().astimezone())
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


def _worker_cells(row: WorkerRow) -> list[Cell]:
    state = worker_state(row)
    busy = state == "busy"
    return [
        Cell(row.worker_id),
        Cell(row.job_type),
        Cell(state, {"busy": "cyan", "gone": "red"}.get(state)),
        Cell(short(row.current_job_id) if busy else ""),
        Cell(age(row.current_since, row.read_at) if busy else ""),
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


def _print(lines: Iterable[str]) -> None:
    click.echo("\n".join(lines))
