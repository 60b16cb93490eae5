"""Command of the research service: `jobs clip`.

It runs where the command line is, without the worker's packages, so nothing else of this service is imported.
"""

import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import click

from sidelinja_jobs.cli import payloads
from sidelinja_jobs.cli.connection import Database, open_database
from sidelinja_jobs.cli.documents import print_document
from sidelinja_jobs.cli.enqueueing import SMALLINT
from sidelinja_jobs.cli.exits import ExitCode, NotPossibleError, RefusedError
from sidelinja_jobs.cli.lookup import find_job, short
from sidelinja_jobs.cli.reasons import sentence
from sidelinja_jobs.cli.rows import NO_FILTER, EnqueuedRow, JobRow, ReasonRow, TypeFacts, WholeJobRow
from sidelinja_jobs.cli.text import neutral_lines

_JOB_TYPE = "research_clip"
_MOST_TEXT_BYTES, _MOST_HTML_BYTES = 1_000_000, 5_000_000
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS, _PAUSE_GROWTH = 0.05, 1.0, 1.5
_TELL_AFTER_SECONDS = 5.0
_PAGE = 500  # jobs that are looked at at once
_BYTE_ORDER_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}


@click.command()
@click.argument("file", default="-")
@click.option("--html", is_flag=True, help="The input is HTML; told by itself for files named .html.")
@click.option("--url", metavar="URL", help="The page's address.")
@click.option("--mode", type=click.Choice(["auto", "clean_only", "full"]), default="auto", show_default=True)
@click.option("--tema", metavar="ID", help="The id of the theme that the clip belongs to.")
@click.option("--note", metavar="TEXT", help="A note that goes with the clip.")
@click.option("--priority", type=SMALLINT, default=0, show_default=True, help="Higher is more important.")
@click.option("--enrich", metavar="ID", help="Let a model describe the clip of this job, which had none.")
@click.option("--no-wait", is_flag=True, help="Print the job's id and do not wait.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole clip as JSON.")
def clip(file: str, html: bool, enrich: str | None, no_wait: bool, as_json: bool, priority: int, **fields: Any) -> int:
    """Clean a paste and print it as Markdown.

    FILE is a file with what was pasted; without one, or as -, standard input is read.
    """
    payload, key = None, None
    if enrich is None:
        is_html = html or Path(file).suffix.lower() in (".html", ".htm")
        payload = _payload(_read(file), is_html=is_html, **fields)
    elif file != "-" or html or any(fields[name] for name in ("url", "tema", "note")) or fields["mode"] != "auto":
        raise RefusedError("--enrich takes the paste of that job as it was", "leave the file and its options out")
    with open_database() as database:
        if enrich is not None:
            original = database.row("show_job", WholeJobRow, id=find_job(database, enrich))
            key = f"enrich:{original.id}"
            found = _described(database, original, key)
            if found is not None:
                return _finish(database, found, no_wait=no_wait, as_json=as_json)
            payload = json.dumps({**json.loads(original.payload), "mode": "full", "enrich_job_id": str(original.id)})
        columns = {"priority": priority, "max_attempts": 3, "key": key, "at": None, "in_seconds": None}
        enqueued = database.row("enqueue", EnqueuedRow, job_type=_JOB_TYPE, payload=payload, **columns)
        return _finish(database, enqueued.id, no_wait=no_wait, as_json=as_json)


def _described(database: Database, original: WholeJobRow, key: str) -> UUID | None:
    """The job that has described, or is to describe, a job's clip; None where there is none yet."""
    if original.job_type != _JOB_TYPE or original.status != "completed":
        raise RefusedError(
            f"{short(original.id)} is a job of {original.job_type}, {original.status}; expected a clip that is done",
            f"jobs list --type {_JOB_TYPE} shows them",
        )
    if json.loads(original.result or "{}").get("mode_used") == "llm":
        return original.id
    filters = {**NO_FILTER, "job_type": _JOB_TYPE, "since": original.created_at, "limit": _PAGE}
    while page := database.rows("list_jobs", JobRow, **filters):
        for row in page:
            if row.unique_key == key and row.status != "error":
                return row.id
        filters["before"] = page[-1].id
    return None


def _finish(database: Database, job_id: UUID, *, no_wait: bool, as_json: bool) -> int:
    """Waits for a job and prints its clip, or prints its id."""
    if no_wait:
        click.echo(str(job_id))
        return ExitCode.OK
    facts = database.row("describe_type", TypeFacts, job_type=_JOB_TYPE)
    if not facts.has_worker:
        click.echo(f"jobs: no worker of {_JOB_TYPE} is alive: the clip waits until one starts", err=True)
    return _print(_wait(database, job_id), as_json=as_json)


def _read(file: str) -> str:
    """The input as text: UTF-8, UTF-16 with its mark, else the code of older Windows programs."""
    try:
        data = sys.stdin.buffer.read(payloads.MOST_BYTES) if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise RefusedError(f"{file} cannot be read: {error.strerror}", "check the path") from error
    code = _BYTE_ORDER_MARKS.get(data[:3]) or _BYTE_ORDER_MARKS.get(data[:2]) or "utf-8"
    try:
        text = data.decode(code)
    except UnicodeDecodeError:
        text = data.decode("cp1252", "replace")
    if not text.strip():
        raise RefusedError(f"{'standard input' if file == '-' else file} is empty", "paste something")
    return text.replace("\x00", "")


def _payload(text: str, *, is_html: bool, url: str | None, mode: str, tema: str | None, note: str | None) -> str:
    size, most = len(text.encode("utf-8", "replace")), _MOST_HTML_BYTES if is_html else _MOST_TEXT_BYTES
    if size > most:
        kind = "HTML" if is_html else "text"
        raise RefusedError(f"the {kind} has {size} bytes, at most {most} are taken", "paste the part that matters")
    fields = {
        "html" if is_html else "text": text,
        "source_url": url,
        "tema_id": tema,
        "note": note,
        "mode": mode,
        "pasted_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    payload = json.dumps({name: value for name, value in fields.items() if value is not None}, ensure_ascii=False)
    payloads.check_content(payload)
    return payload


def _wait(database: Database, job_id: UUID) -> WholeJobRow:
    """The job once it has ended; says on standard error why it does not begin."""
    pause, has_told = _FIRST_PAUSE_SECONDS, False
    tell_at = time.monotonic() + _TELL_AFTER_SECONDS
    while True:
        job = database.row("show_job", WholeJobRow, id=job_id)
        if job.has_ended:
            return job
        reasons = database.rows("explain", ReasonRow, id=job_id) if job.status != "running" else []
        # In the other modes it comes back soon, and is done without a model where none answers.
        if json.loads(job.payload).get("mode") == "full" and any(row.reason == "postponed" for row in reasons):
            raise NotPossibleError(
                f"the clip waits: {sentence(reasons[0], job.read_at)}",
                f"jobs watch {short(job.id)} waits with it; --mode auto cleans without a model",
            )
        if reasons and not has_told and time.monotonic() > tell_at:
            click.echo(f"jobs: {short(job.id)} waits: {sentence(reasons[0], job.read_at)}", err=True)
            has_told = True
        time.sleep(pause)
        pause = min(_LONGEST_PAUSE_SECONDS, pause * _PAUSE_GROWTH)


def _print(job: WholeJobRow, *, as_json: bool) -> int:
    if job.status != "completed":
        click.echo(f"jobs: {short(job.id)} ended in error {job.error_class}: {job.error_msg}", err=True)
        return ExitCode.JOB_ERROR
    found = json.loads(job.result or "{}")
    if as_json:
        print_document(found)
        return ExitCode.OK
    for warning in found.get("quality", {}).get("warnings", []):
        click.echo(f"jobs: note: {warning}", err=True)
    click.echo("\n".join(neutral_lines(str(found.get("markdown", "")).rstrip("\n"))))
    return ExitCode.OK


commands: list[click.Command] = [clip]
