"""`jobs retention`: how long ended jobs, events, calls and the audit trail are kept, and what is to go next."""

import sys

import click

from sidelinja_jobs.cli.completing import complete_types
from sidelinja_jobs.cli.connection import open_database
from sidelinja_jobs.cli.documents import JSON_OPTION, fields, print_document
from sidelinja_jobs.cli.exits import RefusedError
from sidelinja_jobs.cli.rows import RetentionRow, TypeRetentionRow
from sidelinja_jobs.cli.screen import screen_of
from sidelinja_jobs.cli.tables import Cell, Column, print_table

_COLUMNS = (
    Column("TYPE", flexible=True, least=10),
    Column("COMPLETED", right=True),
    Column("ERROR", right=True),
    Column("TO GO", right=True),
    Column("RULE", leaves=1),
)
_COUNTED = 10_000  # as retention_state counts
_FOREVER = "for ever"


class Days(click.ParamType[int]):
    """A number of days, `ever`, or where a file has a rule of its own, `default`."""

    name = "days"

    def __init__(self, *, has_default: bool) -> None:
        self._has_default = has_default

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value).strip().lower()
        if text == "ever":
            return 0
        if text == "default" and self._has_default:
            return -1
        digits = text.removesuffix("d")
        if not digits.isascii() or not digits.isdecimal() or not 0 < int(digits[:6]) <= 36_500:
            others = "`ever` or `default`" if self._has_default else "or `ever`"
            self.fail(f"{value!r} is no number of days; write 1 to 36500, {others}", param, ctx)
        return int(digits)


@click.command()
@click.argument("job_type", metavar="[TYPE]", required=False, shell_complete=complete_types)
@click.option("--completed", type=Days(has_default=True), metavar="DAYS", help="Keep completed jobs of TYPE this long.")
@click.option("--errors", type=Days(has_default=True), metavar="DAYS", help="Keep failed and cancelled ones this long.")
@click.option("--events", type=Days(has_default=False), metavar="DAYS", help="Keep changes of status this long.")
@click.option(
    "--calls", type=Days(has_default=False), metavar="DAYS", help="Keep paid calls of deleted jobs this long."
)
@click.option("--audit", type=Days(has_default=False), metavar="DAYS", help="Keep what people did this long.")
@JSON_OPTION
def retention(
    *,
    job_type: str | None,
    completed: int | None,
    errors: int | None,
    events: int | None,
    calls: int | None,
    audit: int | None,
    as_json: bool,
) -> None:
    """Show or change how long things are kept.

    DAYS is a number, `ever`, or `default`: as the type's job_type.toml says. What is over goes by itself, at most a
    thousand rows at a time; TO GO says how many jobs the rules no longer keep.
    """
    changes_type = completed is not None or errors is not None
    if changes_type and job_type is None:
        raise RefusedError("--completed and --errors belong to a type", "give TYPE")
    if job_type is not None and not changes_type:
        raise RefusedError(f"it is not said how long {job_type} is kept", "add --completed or --errors")
    with open_database() as database:
        if changes_type:
            database.call("keep_jobs", job_type=job_type, completed=completed, errors=errors)
        if (events, calls, audit) != (None, None, None):
            database.call("keep_others", events=events, calls=calls, audit=audit)
        types = database.rows("retention_of_types", TypeRetentionRow)
        others = database.row("retention_of_others", RetentionRow)
    if as_json:
        print_document({"job_types": [fields(row) for row in types], **fields(others)})
        return
    print_table(_COLUMNS, [_cells(row) for row in types], screen_of(sys.stdout))
    click.echo(
        f"events {_days(others.keep_event_days)}, calls of deleted jobs {_days(others.keep_call_days)}, "
        f"audit trail {_days(others.keep_audit_days)}"
    )


def _cells(row: TypeRetentionRow) -> list[Cell]:
    over = row.completed_over + row.error_over
    is_more = _COUNTED in (row.completed_over, row.error_over)
    return [
        Cell(row.job_type),
        Cell(_days(row.keep_completed_days)),
        Cell(_days(row.keep_error_days)),
        Cell(f"{over}{'+' if is_more else ''}" if over else "", "yellow" if over else None),
        Cell("set here" if row.is_own else "job_type.toml"),
    ]


def _days(days: int) -> str:
    return f"{days} d" if days else _FOREVER
