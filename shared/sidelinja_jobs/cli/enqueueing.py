"""`jobs enqueue`: a payload from key=value, JSON or a file, checked before it is sent."""

import difflib
import json
import sys
from pathlib import Path
from typing import Any

import click

from sidelinja_jobs.cli import payloads
from sidelinja_jobs.cli.completing import complete_types
from sidelinja_jobs.cli.connection import open_database
from sidelinja_jobs.cli.documents import JSON_OPTION, fields, print_document
from sidelinja_jobs.cli.durations import parse_duration, parse_time
from sidelinja_jobs.cli.exits import ExitCode, RefusedError
from sidelinja_jobs.cli.rows import EnqueuedRow, TypeFacts
from sidelinja_jobs.cli.schemas import problems
from sidelinja_jobs.cli.watching import follow

SMALLINT = click.IntRange(-32768, 32767)
KEY_CHARACTERS = 500  # as sidelinja_jobs.enqueue takes them
_MOST_PROBLEMS = 5


@click.command()
@click.argument("job_type", metavar="TYPE", shell_complete=complete_types)
@click.argument("pairs", metavar="[KEY=VALUE]...", nargs=-1)
@click.option("--payload", metavar="JSON", help="The whole payload, in place of KEY=VALUE.")
@click.option("--payload-file", metavar="FILE", help="Read the whole payload from a file; - reads standard input.")
@click.option("--priority", type=SMALLINT, default=0, show_default=True, help="Higher is more important.")
@click.option("--at", "at_time", metavar="TIME", help="Not before 2026-12-24T18:00, or before the next 18:00.")
@click.option("--in", "in_duration", metavar="DURATION", help="Not before 10m, 1h30m or 2d have passed.")
@click.option("--max-attempts", type=click.IntRange(1, 32767), default=3, show_default=True)
@click.option("--key", metavar="KEY", help="At most one waiting or running job of the type has this key.")
@click.option("--no-check", is_flag=True, help="Send it even if the worker's published fields say otherwise.")
@click.option("--wait", is_flag=True, help="Watch the job until it ends; exit code 1 if it ends in error.")
@JSON_OPTION
def enqueue(
    *,
    job_type: str,
    pairs: tuple[str, ...],
    payload: str | None,
    payload_file: str | None,
    at_time: str | None,
    in_duration: str | None,
    no_check: bool,
    wait: bool,
    as_json: bool,
    **columns: Any,
) -> int:
    """Enqueue a job and print its id.

    A VALUE that is JSON is taken as JSON (language=no is text, word_timestamps=true is a boolean), unless the worker
    wants text in that field.
    """
    in_seconds = parse_duration(in_duration) if in_duration is not None else None
    _check_usage(pairs, payload, payload_file, at_time, in_duration, columns["key"])
    given = _given_payload(payload, payload_file)
    with open_database() as database:
        facts = database.row("describe_type", TypeFacts, job_type=job_type)
        enqueued = database.row(
            "enqueue",
            EnqueuedRow,
            job_type=job_type,
            payload=_checked_payload(given, pairs, None if no_check else job_type, facts),
            at=parse_time(at_time, facts.read_at) if at_time is not None else None,
            in_seconds=in_seconds,
            **columns,
        )
    _tell_doubts(job_type, facts, enqueued)
    if wait:
        click.echo(f"jobs: enqueued {enqueued.id}", err=True)
        return follow([enqueued.id], as_json=as_json)
    if as_json:
        print_document(fields(enqueued))
    else:
        click.echo(str(enqueued.id))
    return ExitCode.OK


def _check_usage(
    pairs: tuple[str, ...],
    payload: str | None,
    payload_file: str | None,
    at_time: str | None,
    in_duration: str | None,
    key: str | None,
) -> None:
    """Refuses options that contradict each other."""
    if sum([bool(pairs), payload is not None, payload_file is not None]) > 1:
        raise RefusedError("the payload is given in more than one way", "use KEY=VALUE, --payload or --payload-file")
    if at_time is not None and in_duration is not None:
        raise RefusedError("--at and --in are both given", "use one of them")
    if key is not None and not 1 <= len(key) <= KEY_CHARACTERS:
        raise RefusedError(f"--key has {len(key)} characters, expected 1 to {KEY_CHARACTERS}", "give another key")


def _given_payload(payload: str | None, payload_file: str | None) -> str | None:
    if payload is not None:
        return payloads.from_json(payload, "--payload")
    if payload_file is None:
        return None
    if payload_file == "-":
        return payloads.from_bytes(sys.stdin.buffer.read(payloads.MOST_BYTES + 1), "standard input")
    try:
        with Path(payload_file).open("rb") as file:
            return payloads.from_bytes(file.read(payloads.MOST_BYTES + 1), payload_file)
    except OSError as error:
        raise RefusedError(f"{payload_file} cannot be read: {error.strerror}", "check the path") from error


def _checked_payload(given: str | None, pairs: tuple[str, ...], job_type: str | None, facts: TypeFacts) -> str:
    """The payload as JSON text; its fields are held against the schema if the job type is named."""
    schema = json.loads(facts.payload_schema) if facts.payload_schema else None
    text = payloads.from_pairs(pairs, schema) if given is None else given
    payloads.check_content(text)
    found = problems(payloads.parsed(text), schema) if schema and job_type else []
    if found:
        shown = "; ".join(found[:_MOST_PROBLEMS]) + ("; …" if len(found) > _MOST_PROBLEMS else "")
        raise RefusedError(f"{job_type} would refuse this: {shown}", "correct it, or send it anyway with --no-check")
    return text


def _tell_doubts(job_type: str, facts: TypeFacts, enqueued: EnqueuedRow) -> None:
    """Says on standard error what keeps the job from running soon."""
    if enqueued.outcome == "exists":
        click.echo("jobs: a job with this key waits already; nothing was added", err=True)
    elif enqueued.outcome == "rerun":
        click.echo("jobs: a job with this key runs; one more, with this payload, follows it", err=True)
    if facts.is_paused:
        click.echo(f"jobs: {job_type} is paused; jobs why {str(enqueued.id)[:8]} tells more", err=True)
    elif not facts.is_known and not facts.has_worker:
        close = difflib.get_close_matches(job_type, facts.known_types, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        click.echo(f"jobs: nobody here works jobs of type {job_type!r}: it waits until someone does{hint}", err=True)
    elif not facts.has_worker:
        click.echo(f"jobs: no worker of {job_type} is alive: the job waits until one starts", err=True)
