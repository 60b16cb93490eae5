"""`jobs watch`: a live line per job until the jobs end.

The database sends no notification about progress, so a watch asks: soon after its start, for the sake of short jobs,
then once a second. A database that goes away is waited for.
"""

import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import TypeVar
from uuid import UUID

import click

from sidelinja_jobs.cli.completing import complete_ids, complete_types
from sidelinja_jobs.cli.connection import Database, connect, open_database
from sidelinja_jobs.cli.exits import ExitCode, RefusedError, UnreachableError
from sidelinja_jobs.cli.interrupts import Interrupted
from sidelinja_jobs.cli.lookup import find_jobs, short
from sidelinja_jobs.cli.painters import Painter, painter_for
from sidelinja_jobs.cli.reasons import sentence
from sidelinja_jobs.cli.rows import NO_FILTER, WAITING, IdRow, JobRow, ReasonRow

R = TypeVar("R")

_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS, _PAUSE_GROWTH = 0.1, 1.0, 1.5
_PATIENCE_SECONDS = 300.0
_MOST_JOBS = 500


@click.command()
@click.argument("job_ids", metavar="[ID]...", nargs=-1, shell_complete=complete_ids)
@click.option("--type", "job_type", metavar="TYPE", shell_complete=complete_types, help="Unfinished jobs of this type.")
@click.option("--follow", "-f", "follows", is_flag=True, help="Go on with jobs that come later, until Ctrl-C.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document on a line for each change.")
def watch(job_ids: tuple[str, ...], job_type: str | None, follows: bool, as_json: bool) -> int:
    """Watch jobs until they end.

    Each has a line with its status, attempt, progress and the time left. Without an ID, all unfinished jobs are
    watched. The exit code is 1 if one of them ended in error.
    """
    if job_ids and (job_type or follows):
        raise RefusedError("an ID is given together with --type or --follow", "use one of them")
    with open_database() as database:
        found = find_jobs(database, job_ids) if job_ids else _unfinished(database, job_type)
    if not found and not follows:
        click.echo("jobs: no unfinished job to watch", err=True)
        return ExitCode.OK
    return follow(found, as_json=as_json, newcomers=job_type if follows else None, takes_newcomers=follows)


def follow(
    job_ids: Sequence[UUID], *, as_json: bool, newcomers: str | None = None, takes_newcomers: bool = False
) -> int:
    """Shows the jobs until all have ended; returns the exit code."""
    painter = painter_for(as_json)
    reader = _Reader(painter)
    live, has_failed, is_missing = list(job_ids), False, False
    try:
        for _ in _looks():
            if takes_newcomers:
                live = _with_newcomers(live, reader.unfinished(newcomers))
            jobs = reader.jobs(live)
            ended = [job for job in jobs if job.has_ended]
            going = [job for job in jobs if not job.has_ended]
            is_missing = is_missing or _tell_missing(live, jobs, painter)
            has_failed = has_failed or any(job.status == "error" for job in ended)
            painter.paint(going, ended, reader.hint(going))
            live = [job.id for job in going]
            if not live and not takes_newcomers:
                break
    except (Interrupted, KeyboardInterrupt):
        click.echo("jobs: stopped watching; the jobs go on", err=True)
        return ExitCode.INTERRUPTED
    finally:
        reader.close()
    if has_failed:
        return ExitCode.JOB_ERROR
    return ExitCode.NOT_FOUND if is_missing else ExitCode.OK


class _Reader:
    """Asks the database, and waits for it when it goes away."""

    def __init__(self, painter: Painter) -> None:
        self._painter = painter
        self._closing = contextlib.ExitStack()
        self._database: Database | None = None

    def jobs(self, ids: Sequence[UUID]) -> list[JobRow]:
        """The jobs in the order of the ids."""
        found = {
            row.id: row for row in self._rows("list_jobs", JobRow, **{**NO_FILTER, "ids": list(ids), "limit": len(ids)})
        }
        return [found[job_id] for job_id in ids if job_id in found]

    def unfinished(self, job_type: str | None) -> list[UUID]:
        rows = self._rows("unfinished_ids", IdRow, job_type=job_type, limit=_MOST_JOBS)
        return [row.id for row in rows]

    def hint(self, live: Sequence[JobRow]) -> str:
        """Why the only job that is left waits, if it does."""
        if len(live) != 1 or live[0].status not in WAITING:
            return ""
        reasons = self._rows("explain", ReasonRow, id=live[0].id)
        blocking = [row for row in reasons if row.reason not in ("ready", "scheduled", "waiting_after_error")]
        return sentence(blocking[0], live[0].read_at) if blocking else ""

    def close(self) -> None:
        self._closing.close()
        self._database = None

    def _rows(self, name: str, kind: type[R], **parameters: object) -> list[R]:
        end = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                if self._database is None:
                    connection = self._closing.enter_context(contextlib.closing(connect()))
                    self._database = Database(connection)
                return self._database.rows(name, kind, **parameters)
            except UnreachableError as error:
                self.close()
                if time.monotonic() > end:
                    raise
                self._painter.say(f"{error.message}; trying again")
                time.sleep(_LONGEST_PAUSE_SECONDS)


def _looks() -> Iterator[None]:
    """The moments to look at: at once, soon again, then once a second."""
    pause = _FIRST_PAUSE_SECONDS
    while True:
        yield
        time.sleep(pause)
        pause = min(_LONGEST_PAUSE_SECONDS, pause * _PAUSE_GROWTH)


def _unfinished(database: Database, job_type: str | None) -> list[UUID]:
    return [row.id for row in database.rows("unfinished_ids", IdRow, job_type=job_type, limit=_MOST_JOBS)]


def _with_newcomers(live: Sequence[UUID], found: Sequence[UUID]) -> list[UUID]:
    """Jobs that were watched and have left the list have ended: one more look shows how."""
    return list(dict.fromkeys([*found, *live]))


def _tell_missing(wanted: Sequence[UUID], jobs: Sequence[JobRow], painter: Painter) -> bool:
    missing = set(wanted) - {job.id for job in jobs}
    for job_id in missing:
        painter.say(f"job {short(job_id)} is gone: it was deleted")
    return bool(missing)
