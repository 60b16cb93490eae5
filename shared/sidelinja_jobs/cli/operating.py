"""`jobs retry`, `cancel`, `pause` and `resume`: what an operator does to jobs and types.

Each job is a transaction of its own, so that one that cannot be changed keeps no other from it.
"""

import sys
from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

import click

from sidelinja_jobs.cli.completing import TYPE_OPTION, complete_ids, complete_types
from sidelinja_jobs.cli.connection import Database, open_database
from sidelinja_jobs.cli.documents import JSON_OPTION, print_document
from sidelinja_jobs.cli.durations import local, parse_duration, parse_time
from sidelinja_jobs.cli.exits import CommandError, ExitCode, NotPossibleError, RefusedError
from sidelinja_jobs.cli.lookup import find_job, short
from sidelinja_jobs.cli.rows import IdRow, TypeFacts

_MOST_AT_ONCE = 100_000
_WORDS = {
    "retried": "runs anew, with all its attempts",
    "pulled_forward": "waited; it is due now",
    "cancelled": "cancelled",
    "requested": "runs; its worker was asked to stop it",
}


@click.command()
@click.argument("job_ids", metavar="[ID]...", nargs=-1, shell_complete=complete_ids)
@click.option("--all-errors", is_flag=True, help="All jobs in error, of this --type and --class; no cancelled ones.")
@TYPE_OPTION
@click.option("--class", "error_class", metavar="CLASS", help="Only failures of this class; `cancelled` is one.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@JSON_OPTION
def retry(
    *,
    job_ids: tuple[str, ...],
    all_errors: bool,
    job_type: str | None,
    error_class: str | None,
    yes: bool,
    as_json: bool,
) -> int:
    """Run failed jobs anew.

    One that waits for a later time is due now instead.
    Finished parts of the work (checkpoints) are kept. A completed job is not run again: enqueue a new one.
    """
    if bool(job_ids) == all_errors:
        raise RefusedError("it is not said which jobs", "give IDs, or --all-errors")
    if job_ids and (job_type or error_class):
        raise RefusedError("--type and --class belong to --all-errors", "leave them out, or the IDs")
    with open_database() as database:
        if not all_errors:
            return _each(job_ids, _named(database, lambda job_id: database.call("retry", id=job_id)), as_json=as_json)
        ids = _failed(database, job_type, error_class, yes=yes, as_json=as_json)
        return _each(map(str, ids), lambda text: (UUID(text), database.call("retry", id=text)), as_json=as_json)


@click.command()
@click.argument("job_ids", metavar="ID...", nargs=-1, required=True, shell_complete=complete_ids)
@click.option("--reason", metavar="TEXT", help="Stands in the error message of a job that waited.")
@JSON_OPTION
def cancel(job_ids: tuple[str, ...], reason: str | None, as_json: bool) -> int:
    """Cancel jobs.

    Waiting ones end at once, running ones as soon as their worker hears of it.
    """
    with open_database() as database:
        change = _named(database, lambda job_id: database.call("cancel", id=job_id, reason=reason))
        return _each(job_ids, change, as_json=as_json)


@click.command()
@click.argument("job_type", metavar="TYPE", shell_complete=complete_types)
@click.option("--until", metavar="TIME", help="Resume by itself at 2026-12-24T18:00, or at the next 18:00.")
@click.option("--for", "for_duration", metavar="DURATION", help="Resume by itself after 10m, 1h30m, 2d.")
@click.option("--reason", required=True, metavar="TEXT", help="Why; people see it wherever the pause shows.")
@JSON_OPTION
def pause(*, job_type: str, until: str | None, for_duration: str | None, reason: str, as_json: bool) -> None:
    """Stop taking jobs of a type.

    Those that run go on.
    """
    if until is not None and for_duration is not None:
        raise RefusedError("--until and --for are both given", "use one of them")
    seconds = parse_duration(for_duration) if for_duration is not None else None
    with open_database() as database:
        now = database.row("describe_type", TypeFacts, job_type=job_type).read_at
        moment = parse_time(until, now) if until is not None else None
        if moment is not None and moment <= now:
            raise RefusedError(f"--until {until} is over", "give a time to come")
        database.call("pause", job_type=job_type, until=moment, for_seconds=seconds, reason=reason)
        end = database.row("describe_type", TypeFacts, job_type=job_type).paused_until
    if as_json:
        print_document({"job_type": job_type, "is_paused": True, "paused_until": end, "reason": reason})
    else:
        click.echo(f"{job_type} is paused {f'until {local(end)}' if end else 'until someone resumes it'}")


@click.command()
@click.argument("job_type", metavar="TYPE", shell_complete=complete_types)
@JSON_OPTION
def resume(job_type: str, as_json: bool) -> None:
    """Take jobs of a type again."""
    with open_database() as database:
        was_paused = database.call("resume", job_type=job_type)
    if not was_paused:
        raise NotPossibleError(f"{job_type} is not paused", "see jobs types")
    if as_json:
        print_document({"job_type": job_type, "is_paused": False})
    else:
        click.echo(f"{job_type} is resumed")


def _failed(
    database: Database, job_type: str | None, error_class: str | None, *, yes: bool, as_json: bool
) -> list[UUID]:
    """The jobs that were failed when they were counted: none is added after the person has agreed."""
    rows = database.rows("failed_ids", IdRow, job_type=job_type, error_class=error_class, limit=_MOST_AT_ONCE)
    filters = [f" of type {job_type}"] if job_type else []
    filters += [f" with class {error_class}"] if error_class else []
    what = f"{len(rows)} {'job' if len(rows) == 1 else 'jobs'} in error{''.join(filters)}"
    if not rows:
        click.echo(f"jobs: {what}: nothing to do", err=True)
    elif not yes:
        if as_json or not sys.stdin.isatty():
            raise RefusedError(f"this would run {what} anew, and nobody can be asked", "add --yes")
        click.confirm(f"Run {what} anew?", abort=True, err=True)
    return [row.id for row in rows]


def _named(database: Database, change: Callable[[UUID], Any]) -> Callable[[str], tuple[UUID, Any]]:
    """A change of the job that is meant by a text."""

    def change_named(text: str) -> tuple[UUID, Any]:
        job_id = find_job(database, text)
        return job_id, change(job_id)

    return change_named


def _each(texts: Iterable[str], change: Callable[[str], tuple[UUID, Any]], *, as_json: bool) -> int:
    """Changes one after the other and says what became of each; the exit code is that of the first failure."""
    code, documents = int(ExitCode.OK), []
    for text in texts:
        try:
            job_id, outcome = change(text)
        except CommandError as error:
            if error.exit_code in (ExitCode.UNREACHABLE, ExitCode.NOT_ALLOWED, ExitCode.SETUP):
                raise
            told = _state_error(error)
            told.show()
            code = code or told.exit_code
            documents.append({"id": text, "outcome": None, "error": told.message})
        else:
            documents.append({"id": str(job_id), "outcome": outcome, "error": None})
            if not as_json:
                click.echo(f"{short(job_id)} {_WORDS.get(outcome, outcome)}")
    if as_json:
        print_document(documents)
    return code


def _state_error(error: CommandError) -> CommandError:
    """A function that refuses an operation refuses it for the state that the job is in."""
    if getattr(error.__cause__, "sqlstate", None) == "JQ002":
        return NotPossibleError(error.message, error.next_step)
    return error
