"""`jobs token …`: the programs that may use the JSON API.

A token is printed once, when it is made, on standard output, and nowhere kept but as a hash.
"""

import functools
import re
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from services.admin.access.digests import digest
from services.admin.api.tokens import SCOPES, new_token
from sidelinja_jobs.cli.connection import rows_of
from sidelinja_jobs.cli.documents import JSON_OPTION, fields, print_document
from sidelinja_jobs.cli.durations import local, parse_duration, parse_time, relative
from sidelinja_jobs.cli.exits import NotPossibleError, RefusedError
from sidelinja_jobs.cli.screen import screen_of
from sidelinja_jobs.cli.tables import Cell, Column, print_table
from sidelinja_jobs.cli.text import neutral
from sidelinja_jobs.queries import load_queries

Row = dict[str, Any]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._@-]{0,99}")
_SQL = load_queries(Path(__file__).with_name("commands.sql"))
_rows = functools.partial(rows_of, _SQL)
_COLUMNS = (
    Column("NAME", flexible=True, least=12),
    Column("SCOPES"),
    Column("STATE"),
    Column("EXPIRES", right=True, leaves=3),
    Column("USED", right=True),
    Column("MADE", right=True, leaves=2),
    Column("BY", flexible=True, leaves=1),
)


@click.group()
def token() -> None:
    """Programs that may use the JSON API."""


@token.command("list")
@click.option("--all", "with_old", is_flag=True, help="Those that expired or were revoked, too.")
@JSON_OPTION
def list_tokens(with_old: bool, as_json: bool) -> None:
    """List the tokens: names, scopes and use. The tokens themselves are nowhere kept."""
    rows = _rows("list_tokens", all=with_old)
    if as_json:
        print_document([fields(row) for row in rows])
    elif not rows:
        click.echo("there is no token; jobs token add NAME --scope read makes one", err=True)
    else:
        print_table(_COLUMNS, [_cells(row) for row in rows], screen_of(sys.stdout))


@token.command("add")
@click.argument("name")
@click.option("--scope", "scopes", type=click.Choice(SCOPES), multiple=True, required=True, help="Several times.")
@click.option("--for", "for_duration", metavar="DURATION", help="Valid for 12h, 90d; else until it is revoked.")
@click.option("--until", metavar="TIME", help="Valid until 2026-12-24T18:00.")
@JSON_OPTION
def add_token(
    *, name: str, scopes: tuple[str, ...], for_duration: str | None, until: str | None, as_json: bool
) -> None:
    """Make a token for the program NAME and print it, this once."""
    if not _NAME.fullmatch(name):
        raise RefusedError(
            f"{name!r} is no name for a token", "use letters, digits, blanks and ._@-, up to 100, a letter first"
        )
    if for_duration is not None and until is not None:
        raise RefusedError("--for and --until are both given", "use one of them")
    made, wanted = new_token(), [scope for scope in SCOPES if scope in scopes]
    expires_at = _end(for_duration, until)
    _rows("add_token", name=name, fingerprint=digest(made), scopes=wanted, expires_at=expires_at)
    if as_json:
        print_document({"name": name, "token": made, "scopes": wanted, "expires_at": expires_at})
        return
    end = f"until {local(expires_at)}" if expires_at else "until it is revoked"
    click.echo(f"jobs: {neutral(name)} may {', '.join(wanted)} {end}; the token is shown this once", err=True)
    click.echo(made)


@token.command("revoke")
@click.argument("name")
def revoke(name: str) -> None:
    """Take a token back, at once."""
    (row,) = _rows("revoke_token", name=name)
    if not row["outcome"]:
        raise NotPossibleError(f"the token {name} was revoked before", "jobs token list --all")
    click.echo(f"{neutral(name)} is revoked")


def _end(for_duration: str | None, until: str | None) -> datetime | None:
    if for_duration is None and until is None:
        return None
    (row,) = _rows("token_end", seconds=None if for_duration is None else parse_duration(for_duration))
    end: datetime = row["expires_at"] if until is None else parse_time(until, row["read_at"])
    return end


def _cells(row: Row) -> list[Cell]:
    return [
        Cell(row["name"]),
        Cell(" ".join(row["scopes"])),
        Cell("" if row["state"] == "valid" else row["state"], "yellow"),
        Cell(relative(row["expires_at"], row["read_at"])),
        Cell(relative(row["last_used_at"], row["read_at"]) or "never"),
        Cell(relative(row["created_at"], row["read_at"])),
        Cell(row["created_by"]),
    ]
