"""`jobs show` and `jobs why`: everything that is known of one job."""

import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace

import click

from sidelinja_jobs.cli.completing import complete_ids
from sidelinja_jobs.cli.connection import open_database
from sidelinja_jobs.cli.documents import JSON_OPTION, pretty, print_document, reason_fields, whole_job_fields
from sidelinja_jobs.cli.durations import age, local, relative
from sidelinja_jobs.cli.lookup import find_job, short
from sidelinja_jobs.cli.reasons import sentence
from sidelinja_jobs.cli.rows import AttemptRow, EventRow, ReasonRow, WholeJobRow
from sidelinja_jobs.cli.screen import Screen, screen_of
from sidelinja_jobs.cli.states import COLOURS, status_colour, status_text
from sidelinja_jobs.cli.tables import Cell, Column, table
from sidelinja_jobs.cli.text import columns, cut, first_line, neutral, neutral_lines
from sidelinja_jobs.redaction import redact_json

# How much of a text is shown unless --full is given.
_PAYLOAD_LINES, _RESULT_LINES, _ERROR_LINES = 60, 25, 25
_ROWS = 30  # of the runs and of the timeline, the last ones
_LINE_COLUMNS = 2000
_LABEL_COLUMNS = 12

_RUN_COLUMNS = (
    Column("RUN", right=True),
    Column("OUTCOME"),
    Column("CHARGED", leaves=1),
    Column("BEGUN", leaves=3),
    Column("AFTER", right=True),
    Column("DONE", right=True, leaves=2),
    Column("WORKER", flexible=True, least=10, leaves=4),
    Column("ERROR", flexible=True, least=16, leaves=5),
)
_EVENT_COLUMNS = (
    Column("WHEN"),
    Column("AGO", right=True, leaves=2),
    Column("CHANGE"),
    Column("BY", flexible=True, least=8),
    Column("WORKER", flexible=True, least=10, leaves=3),
    Column("CLASS", flexible=True, leaves=4),
)


@click.command()
@click.argument("job_id", metavar="ID", shell_complete=complete_ids)
@click.option("--full", is_flag=True, help="Show texts whole, and the tracebacks.")
@click.option("--reveal", is_flag=True, help="Show values whose names say that they are secret.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, whole.")
def show(job_id: str, full: bool, reveal: bool, as_json: bool) -> None:
    """Show everything that is known of a job.

    ID may be the first six or more characters.
    """
    with open_database() as database:
        found = find_job(database, job_id)
        job = database.row("show_job", WholeJobRow, id=found)
        runs = database.rows("read_attempts", AttemptRow, id=found)
        events = database.rows("read_events", EventRow, id=found)
        reasons = database.rows("explain", ReasonRow, id=found)
    if as_json:
        print_document(whole_job_fields(job, runs, events, reasons, reveal=reveal))
        return
    screen = screen_of(sys.stdout)
    sections = (
        _facts(job, reasons, screen),
        _json_section("payload", job.payload, None if full else _PAYLOAD_LINES, screen, reveal=reveal),
        _json_section("result", job.result, None if full else _RESULT_LINES, screen, reveal=reveal),
        _error_section(job, screen, full=full),
        _runs_section(job, runs, screen, full=full),
        _events_section(job, events, screen, full=full),
    )
    click.echo("\n".join("\n".join(lines) for lines in map(list, sections) if lines))


@click.command()
@click.argument("job_id", metavar="ID", shell_complete=complete_ids)
@JSON_OPTION
def why(job_id: str, as_json: bool) -> None:
    """Say why a job is not running."""
    with open_database() as database:
        found = find_job(database, job_id)
        job = database.row("show_job", WholeJobRow, id=found)
        reasons = database.rows("explain", ReasonRow, id=found)
    if as_json:
        print_document({"id": job.id, "status": job.status, "reasons": [reason_fields(row) for row in reasons]})
        return
    click.echo(neutral(f"{job.job_type} {short(job.id)}: {status_text(job)}"))
    for row in reasons:
        click.echo(f"- {neutral(sentence(row, job.read_at))}")


def _facts(job: WholeJobRow, reasons: Sequence[ReasonRow], screen: Screen) -> Iterator[str]:
    """The head: one line a fact, without those that say nothing."""
    now = job.read_at
    yield screen.paint(neutral(f"{job.job_type} {job.id}"), None, bold=True)
    status = screen.paint(status_text(job), status_colour(job))
    yield _fact("status", f"{status}, attempt {job.attempt}/{job.max_attempts}")
    for row in reasons:
        yield from _wrapped("why", neutral(sentence(row, now)), screen)
    yield _fact("priority", str(job.priority))
    for label, moment in (
        ("enqueued", job.created_at),
        ("scheduled", job.scheduled_for if job.scheduled_for > job.created_at else None),
        ("begun", job.started_at),
        ("ended", job.completed_at),
        ("lease until", job.lease_until),
    ):
        if moment is not None:
            yield _fact(label, f"{local(moment)} ({relative(moment, now)})")
    for label, value in (
        ("worker", job.worker_id),
        ("key", job.unique_key),
        ("parent", str(job.parent_id) if job.parent_id else None),
        ("checkpoints", str(job.checkpoints) if job.checkpoints else None),
        ("postponed", str(job.postponements) if job.postponements else None),
        ("rerun", "one more run follows this one" if job.rerun_requested_at and job.status == "running" else None),
    ):
        if value is not None:
            yield _fact(label, _cut(value, screen))


def _json_section(title: str, text: str | None, most: int | None, screen: Screen, *, reveal: bool) -> Iterator[str]:
    if text is not None:
        yield _title(title, screen)
        yield from _some(neutral_lines(pretty(text if reveal else redact_json(text))), most, screen)


def _error_section(job: WholeJobRow, screen: Screen, *, full: bool) -> Iterator[str]:
    if job.error_msg or job.error_class:
        yield _title(f"error {neutral(job.error_class or '')}".rstrip(), screen)
        yield from _some(neutral_lines(job.error_msg or ""), None if full else _ERROR_LINES, screen)


def _runs_section(job: WholeJobRow, runs: Sequence[AttemptRow], screen: Screen, *, full: bool) -> Iterator[str]:
    """The runs that did not complete; the present one stands in the head."""
    if not runs:
        return
    yield _title("runs that did not complete", screen)
    rows = [_run_cells(run) for run in runs]
    yield from _last_rows(_RUN_COLUMNS, rows, screen, full=full)
    for run in runs if full else ():
        if run.traceback:
            yield _title(f"traceback of run {run.attempt}", screen)
            yield from _some(neutral_lines(run.traceback), None, screen)


def _events_section(job: WholeJobRow, events: Sequence[EventRow], screen: Screen, *, full: bool) -> Iterator[str]:
    if events:
        yield _title("timeline", screen)
        rows = [_event_cells(event, job) for event in events]
        yield from _last_rows(_EVENT_COLUMNS, rows, screen, full=full)


def _last_rows(shown: Sequence[Column], rows: list[list[Cell]], screen: Screen, *, full: bool) -> Iterator[str]:
    """A job that was put off for a day has run some thousand times."""
    left = 0 if full else max(len(rows) - _ROWS, 0)
    if left:
        yield f"  … {left} earlier; --full shows all"
    yield from _indented(table(shown, rows[left:], _narrower(screen)))


def _run_cells(run: AttemptRow) -> list[Cell]:
    error = ": ".join(part for part in (run.error_class, first_line(run.error_msg or "")) if part)
    return [
        Cell(str(run.attempt)),
        Cell(run.outcome, "red" if run.outcome in ("failed", "lost") else None),
        Cell("yes" if run.charged else "no"),
        Cell(local(run.started_at)),
        Cell(age(run.started_at, run.ended_at)),
        Cell("" if run.progress is None else f"{run.progress:.0%}"),
        Cell(run.worker_id or ""),
        Cell(error),
    ]


def _event_cells(event: EventRow, job: WholeJobRow) -> list[Cell]:
    change = f"{event.old_status} -> {event.new_status}" if event.old_status else f"enqueued {event.new_status}"
    return [
        Cell(local(event.at)),
        Cell(age(event.at, job.read_at)),
        Cell(change, COLOURS.get(event.new_status)),
        Cell(event.actor),
        Cell(event.worker_id or ""),
        Cell(event.error_class or ""),
    ]


def _some(lines: list[str], most: int | None, screen: Screen) -> Iterator[str]:
    """The first lines, indented; what was left out is counted."""
    kept = lines if most is None else lines[:most]
    for line in kept:
        yield f"  {line if most is None else _cut(line, _narrower(screen))}"
    left = len(lines) - len(kept)
    was_cut = most is not None and any(columns(line) > (screen.width or _LINE_COLUMNS) - 2 for line in kept)
    if left:
        yield f"  … {left} more {'line' if left == 1 else 'lines'}; --full shows all"
    elif was_cut:
        yield "  … lines were cut; --full shows all"


def _fact(label: str, value: str) -> str:
    return f"  {label:<{_LABEL_COLUMNS}}{value}"


def _wrapped(label: str, text: str, screen: Screen) -> Iterator[str]:
    """A fact in as many lines as it needs."""
    width = max(_LABEL_COLUMNS, (screen.width or _LINE_COLUMNS) - _LABEL_COLUMNS - 2)
    for line in textwrap.wrap(text, width, break_on_hyphens=False):
        yield _fact(label, line)
        label = ""


def _title(text: str, screen: Screen) -> str:
    return f"\n{screen.paint(text, None, bold=True)}"


def _cut(text: str, screen: Screen) -> str:
    return cut(neutral(text), screen.width or _LINE_COLUMNS)


def _narrower(screen: Screen) -> Screen:
    """The screen beside an indentation."""
    return replace(screen, width=None if screen.width is None else screen.width - 2)


def _indented(lines: Iterator[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)
