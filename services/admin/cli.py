"""Commands of the admin service: `jobs account …` and `jobs token …`, who may use the admin view and its API.

A password or token that is made here is printed once, on standard output, and nowhere kept but as a hash.
"""

import functools
import re
import secrets
import string
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from services.admin.access.digests import digest
from services.admin.access.passwords import LONGEST, hash_password
from services.admin.api.tokens import SCOPES, new_token
from services.admin.delivery.commands import deliveries
from sidelinja_jobs.cli.connection import rows_of
from sidelinja_jobs.cli.documents import JSON_OPTION, print_document
from sidelinja_jobs.cli.durations import local, parse_duration, parse_time, relative
from sidelinja_jobs.cli.exits import NotFoundError, NotPossibleError, RefusedError
from sidelinja_jobs.cli.screen import screen_of
from sidelinja_jobs.cli.tables import Cell, Column, print_table
from sidelinja_jobs.cli.text import neutral
from sidelinja_jobs.queries import load_queries

Row = dict[str, Any]

SHORTEST_PASSWORD = 12  # characters, of one that a person chose
_GENERATED = 24  # letters and digits: 142 bits
_ACCOUNT_NAME = re.compile(r"[^\s\x00-\x1f\x7f/:]{1,100}")
_TOKEN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._@-]{0,99}")
_SQL = load_queries(Path(__file__).with_name("cli.sql"))
_rows = functools.partial(rows_of, _SQL)
_FROM_STDIN = click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")

_ACCOUNT_COLUMNS = (
    Column("NAME", flexible=True, least=12),
    Column("ROLE"),
    Column("STATE"),
    Column("SESSIONS", right=True),
    Column("SEEN", right=True, leaves=2),
    Column("CHANGED", right=True, leaves=1),
)
_TOKEN_COLUMNS = (
    Column("NAME", flexible=True, least=12),
    Column("SCOPES"),
    Column("STATE"),
    Column("EXPIRES", right=True, leaves=3),
    Column("USED", right=True),
    Column("MADE", right=True, leaves=2),
    Column("BY", flexible=True, leaves=1),
)


# ---------------------------------------------------------------- accounts


@click.group()
def account() -> None:
    """People who may use the admin view."""


@account.command("list")
@JSON_OPTION
def list_accounts(as_json: bool) -> None:
    """List the accounts."""
    rows = _rows("cli_list_accounts")
    if as_json:
        print_document([_without_moment(row) for row in rows])
    elif not rows:
        click.echo("there is no account; jobs account add NAME --role operator makes one", err=True)
    else:
        print_table(_ACCOUNT_COLUMNS, [_account_cells(row) for row in rows], screen_of(sys.stdout))


@account.command("add")
@click.argument("name")
@click.option("--role", type=click.Choice(("viewer", "operator")), required=True, help="viewer looks, operator acts.")
@_FROM_STDIN
@JSON_OPTION
def add_account(name: str, role: str, password_stdin: bool, as_json: bool) -> None:
    """Make an account and print its password, unless it was given on standard input."""
    if not _ACCOUNT_NAME.fullmatch(name):
        raise RefusedError(f"{name!r} is no name for an account", "use up to 100 characters without blanks, / and :")
    password = _password(password_stdin)
    (row,) = _rows("cli_add_account", name=name, role=role, password_hash=hash_password(password))
    if row["outcome"] == "exists":
        raise NotPossibleError(f"there is an account {name} already", f"jobs account password {name}")
    _tell_password(name, None if password_stdin else password, f"{neutral(name)} may log in as {role}", as_json)


@account.command("password")
@click.argument("name")
@_FROM_STDIN
@JSON_OPTION
def change_password(name: str, password_stdin: bool, as_json: bool) -> None:
    """Give an account another password and print it, unless it was given; its sessions end."""
    password = _password(password_stdin)
    _rows("cli_change_account", name=name, role=None, password_hash=hash_password(password), disabled=None)
    _tell_password(name, None if password_stdin else password, f"{neutral(name)} has another password", as_json)


@account.command("role")
@click.argument("name")
@click.argument("role", type=click.Choice(("viewer", "operator")))
def change_role(name: str, role: str) -> None:
    """Change what an account may do; its sessions end."""
    _known_account(name)
    _rows("cli_change_account", name=name, role=role, password_hash=None, disabled=None)
    click.echo(f"{neutral(name)} is {role}")


@account.command("disable")
@click.argument("name")
def disable(name: str) -> None:
    """Let an account log in no more; its sessions end."""
    _rows("cli_change_account", name=name, role=None, password_hash=None, disabled=True)
    click.echo(f"{neutral(name)} may not log in any more")


@account.command("enable")
@click.argument("name")
def enable(name: str) -> None:
    """Let a disabled account log in again."""
    _rows("cli_change_account", name=name, role=None, password_hash=None, disabled=False)
    click.echo(f"{neutral(name)} may log in")


@account.command("remove")
@click.argument("name")
def remove(name: str) -> None:
    """Remove an account; what it did stays in the audit trail."""
    _rows("cli_remove_account", name=name)
    click.echo(f"{neutral(name)} is removed")


def _known_account(name: str) -> None:
    """A role is enough to make an account, so a slip in the name would make one."""
    if name not in {row["name"] for row in _rows("cli_list_accounts")}:
        raise NotFoundError(f"there is no account {name!r}", "jobs account list")


def _password(from_stdin: bool) -> str:
    if not from_stdin:
        return "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(_GENERATED))
    password = sys.stdin.readline().rstrip("\r\n")
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST:
        raise RefusedError(
            f"the password has {len(password)} characters, expected {SHORTEST_PASSWORD} to {LONGEST}",
            "choose another one, or leave --password-stdin out and get one",
        )
    return password


def _tell_password(name: str, password: str | None, done: str, as_json: bool) -> None:
    if as_json:
        print_document({"name": name, "password": password})
    elif password is None:
        click.echo(done)
    else:
        click.echo(f"jobs: {done}; the password is shown this once", err=True)
        click.echo(password)


def _account_cells(row: Row) -> list[Cell]:
    state = "disabled" if row["disabled"] else "" if row["has_password"] else "by proxy"
    return [
        Cell(row["name"]),
        Cell(row["role"]),
        Cell(state, "yellow" if row["disabled"] else None),
        Cell(str(row["sessions"] or "")),
        Cell(relative(row["seen_at"], row["read_at"])),
        Cell(relative(row["changed_at"], row["read_at"])),
    ]


# ---------------------------------------------------------------- tokens


@click.group()
def token() -> None:
    """Programs that may use the JSON API."""


@token.command("list")
@click.option("--all", "with_old", is_flag=True, help="Those that expired or were revoked, too.")
@JSON_OPTION
def list_tokens(with_old: bool, as_json: bool) -> None:
    """List the tokens: names, scopes and use. The tokens themselves are nowhere kept."""
    rows = _rows("cli_list_tokens", all=with_old)
    if as_json:
        print_document([_without_moment(row) for row in rows])
    elif not rows:
        click.echo("there is no token; jobs token add NAME --scope read makes one", err=True)
    else:
        print_table(_TOKEN_COLUMNS, [_token_cells(row) for row in rows], screen_of(sys.stdout))


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
    if not _TOKEN_NAME.fullmatch(name):
        raise RefusedError(
            f"{name!r} is no name for a token", "use letters, digits, blanks and ._@-, up to 100, a letter first"
        )
    if for_duration is not None and until is not None:
        raise RefusedError("--for and --until are both given", "use one of them")
    made, wanted = new_token(), [scope for scope in SCOPES if scope in scopes]
    expires_at = _end(for_duration, until)
    _rows("cli_add_token", name=name, fingerprint=digest(made), scopes=wanted, expires_at=expires_at)
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
    (row,) = _rows("cli_revoke_token", name=name)
    if not row["outcome"]:
        raise NotPossibleError(f"the token {name} was revoked before", "jobs token list --all")
    click.echo(f"{neutral(name)} is revoked")


def _end(for_duration: str | None, until: str | None) -> datetime | None:
    if for_duration is None and until is None:
        return None
    (row,) = _rows("cli_token_end", seconds=None if for_duration is None else parse_duration(for_duration))
    end: datetime = row["expires_at"] if until is None else parse_time(until, row["read_at"])
    return end


def _token_cells(row: Row) -> list[Cell]:
    return [
        Cell(row["name"]),
        Cell(" ".join(row["scopes"])),
        Cell("" if row["state"] == "valid" else row["state"], "yellow"),
        Cell(relative(row["expires_at"], row["read_at"])),
        Cell(relative(row["last_used_at"], row["read_at"]) or "never"),
        Cell(relative(row["created_at"], row["read_at"])),
        Cell(row["created_by"]),
    ]


def _without_moment(row: Row) -> Row:
    return {name: value for name, value in row.items() if name != "read_at"}


commands: list[click.Command] = [account, token, deliveries]
