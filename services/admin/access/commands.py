"""`jobs account …`: the people who may use the admin view.

A password that is made here is printed once, on standard output, and nowhere kept but as a hash.
"""

import functools
import re
import secrets
import string
import sys
from pathlib import Path
from typing import Any

import click

from services.admin.access.passwords import LONGEST, hash_password
from sidelinja_jobs.cli.connection import rows_of
from sidelinja_jobs.cli.documents import JSON_OPTION, fields, print_document
from sidelinja_jobs.cli.durations import relative
from sidelinja_jobs.cli.exits import NotFoundError, NotPossibleError, RefusedError
from sidelinja_jobs.cli.screen import screen_of
from sidelinja_jobs.cli.tables import Cell, Column, print_table
from sidelinja_jobs.cli.text import neutral
from sidelinja_jobs.queries import load_queries

Row = dict[str, Any]

SHORTEST_PASSWORD = 12  # characters, of one that a person chose
_GENERATED = 24  # letters and digits: 142 bits
_NAME = re.compile(r"[^\s\x00-\x1f\x7f/:]{1,100}")
_SQL = load_queries(Path(__file__).with_name("commands.sql"))
_rows = functools.partial(rows_of, _SQL)
_FROM_STDIN = click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
_COLUMNS = (
    Column("NAME", flexible=True, least=12),
    Column("ROLE"),
    Column("STATE"),
    Column("SESSIONS", right=True),
    Column("SEEN", right=True, leaves=2),
    Column("CHANGED", right=True, leaves=1),
)


@click.group()
def account() -> None:
    """People who may use the admin view."""


@account.command("list")
@JSON_OPTION
def list_accounts(as_json: bool) -> None:
    """List the accounts."""
    rows = _rows("list_accounts")
    if as_json:
        print_document([fields(row) for row in rows])
    elif not rows:
        click.echo("there is no account; jobs account add NAME --role operator makes one", err=True)
    else:
        print_table(_COLUMNS, [_cells(row) for row in rows], screen_of(sys.stdout))


@account.command("add")
@click.argument("name")
@click.option("--role", type=click.Choice(("viewer", "operator")), required=True, help="viewer looks, operator acts.")
@_FROM_STDIN
@JSON_OPTION
def add_account(name: str, role: str, password_stdin: bool, as_json: bool) -> None:
    """Make an account and print its password, unless it was given on standard input."""
    if not _NAME.fullmatch(name):
        raise RefusedError(f"{name!r} is no name for an account", "use up to 100 characters without blanks, / and :")
    password = _password(password_stdin)
    (row,) = _rows("add_account", name=name, role=role, password_hash=hash_password(password))
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
    _rows("change_account", name=name, role=None, password_hash=hash_password(password), disabled=None)
    _tell_password(name, None if password_stdin else password, f"{neutral(name)} has another password", as_json)


@account.command("role")
@click.argument("name")
@click.argument("role", type=click.Choice(("viewer", "operator")))
def change_role(name: str, role: str) -> None:
    """Change what an account may do; its sessions end."""
    _known_account(name)
    _rows("change_account", name=name, role=role, password_hash=None, disabled=None)
    click.echo(f"{neutral(name)} is {role}")


@account.command("disable")
@click.argument("name")
def disable(name: str) -> None:
    """Let an account log in no more; its sessions end."""
    _rows("change_account", name=name, role=None, password_hash=None, disabled=True)
    click.echo(f"{neutral(name)} may not log in any more")


@account.command("enable")
@click.argument("name")
def enable(name: str) -> None:
    """Let a disabled account log in again."""
    _rows("change_account", name=name, role=None, password_hash=None, disabled=False)
    click.echo(f"{neutral(name)} may log in")


@account.command("remove")
@click.argument("name")
def remove(name: str) -> None:
    """Remove an account; what it did stays in the audit trail."""
    _rows("remove_account", name=name)
    click.echo(f"{neutral(name)} is removed")


def _known_account(name: str) -> None:
    """A role is enough to make an account, so a slip in the name would make one."""
    if name not in {row["name"] for row in _rows("list_accounts")}:
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


def _cells(row: Row) -> list[Cell]:
    state = "disabled" if row["disabled"] else "" if row["has_password"] else "by proxy"
    return [
        Cell(row["name"]),
        Cell(row["role"]),
        Cell(state, "yellow" if row["disabled"] else None),
        Cell(str(row["sessions"] or "")),
        Cell(relative(row["seen_at"], row["read_at"])),
        Cell(relative(row["changed_at"], row["read_at"])),
    ]
