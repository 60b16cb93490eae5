"""The command line's connection: one, autocommit, in UTC, and its failures in words that a person can act on."""

import contextlib
import getpass
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, LiteralString, TypeVar

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import class_row

from sidelinja_jobs import database
from sidelinja_jobs.cli.exits import (
    CommandError,
    NotAllowedError,
    NotFoundError,
    RefusedError,
    SetupError,
    UnreachableError,
)
from sidelinja_jobs.cli.rows import OutcomeRow
from sidelinja_jobs.cli.times import TolerantTimeLoader
from sidelinja_jobs.errors import SettingsError
from sidelinja_jobs.queries import load_queries
from sidelinja_jobs.settings import DatabaseSettings, load_settings

R = TypeVar("R")

ANSWER_SECONDS = 60.0  # the longest that a person waits for one answer
_SQL = load_queries(Path(__file__).with_name("queries.sql"))


class Database:
    """A connection that speaks in rows. All of its failures are CommandErrors."""

    def __init__(self, connection: database.QueueConnection) -> None:
        self._connection = connection

    def rows(self, name: str, kind: type[R], **parameters: object) -> list[R]:
        """The rows of a statement of queries.sql."""
        with told_failures(), self._connection.cursor(row_factory=class_row(kind)) as cursor:
            return cursor.execute(_SQL[name], parameters).fetchall()

    def row(self, name: str, kind: type[R], **parameters: object) -> R:
        """The one row of a statement.

        Raises:
            NotFoundError: there is none.
        """
        rows = self.rows(name, kind, **parameters)
        if not rows:
            raise NotFoundError("there is no such job", "jobs list")
        return rows[0]

    def call(self, name: str, **parameters: object) -> Any:
        """What a function of the operator answers."""
        return self.row(name, OutcomeRow, **parameters).outcome


@contextlib.contextmanager
def open_database(answer_seconds: float = ANSWER_SECONDS) -> Iterator[Database]:
    """The database that DATABASE_URL names; it is given up when one answer takes longer."""
    with contextlib.closing(connect(answer_seconds)) as connection:
        yield Database(connection)


def connect(answer_seconds: float = ANSWER_SECONDS) -> database.QueueConnection:
    """A new connection, by the environment.

    Raises:
        SetupError: the settings are missing or wrong, or there is no such database.
        UnreachableError, NotAllowedError: the server does not answer, or does not let this login in.
    """
    try:
        settings = load_settings(DatabaseSettings)
        connection = database.connect(settings, name="jobs", deadline_seconds=answer_seconds)
    except SettingsError as error:
        if isinstance(error.__cause__, psycopg.OperationalError):
            raise NotAllowedError(str(error)) from error
        raise SetupError(str(error)) from error
    except psycopg.OperationalError as error:
        raise _connect_failure(error, settings.url) from error
    connection.adapters.register_loader("timestamptz", TolerantTimeLoader)
    with told_failures():
        connection.execute(_SQL["begin_session"], {"actor": _actor()})
    return connection


def rows_of(statements: Mapping[str, LiteralString], name: str, /, **parameters: object) -> list[dict[str, Any]]:
    """The rows of one of a service's own statements, on a connection of its own; fails as `connect` does."""
    with contextlib.closing(connect()) as connection, told_failures():
        return connection.execute(statements[name], parameters).fetchall()


@contextlib.contextmanager
def told_failures() -> Iterator[None]:
    """Turns what the database refuses into an error with an exit code and a next step."""
    try:
        yield
    except psycopg.Error as error:
        raise _told(error) from error
    except UnicodeEncodeError as error:
        raise RefusedError(f"{error.object!r} is not UTF-8", "write it anew") from error


def _actor() -> str:
    """Who stands behind the login, for the timeline; a container's user has no name."""
    try:
        return f"{getpass.getuser()} (jobs)"
    except (KeyError, OSError):
        return "jobs"


def _told(error: psycopg.Error) -> CommandError:
    message = error.diag.message_primary or str(error).strip()
    hint = error.diag.message_hint or ""
    match error:
        case _ if error.sqlstate == "JQ002":
            return RefusedError(message, hint)
        case _ if error.sqlstate == "JQ004":
            return NotFoundError(message, hint or "see jobs list and jobs types")
        case errors.InsufficientPrivilege():
            return NotAllowedError(message, hint or "log in as jobbko_operator: see DATABASE_URL")
        case errors.UndefinedTable() | errors.UndefinedFunction() | errors.UndefinedColumn() | errors.UndefinedObject():
            return SetupError(f"the database has no schema of this version: {message}", "run jobs migrate")
        case errors.QueryCanceled():
            return UnreachableError(f"the database took too long: {message}", "try again, or ask for less")
        case errors.DataError() | errors.IntegrityError() | errors.ProgramLimitExceeded():
            return RefusedError(f"the database refused this: {message}", hint)
        case psycopg.OperationalError():
            return UnreachableError(f"the database went away: {message}", "is it running? try again")
    return CommandError(f"the database reported a fault: {message}", hint)


def _connect_failure(error: psycopg.OperationalError, url: str) -> CommandError:
    address = conninfo_to_dict(url)
    text = " ".join(str(error).split())
    where = f"{address.get('host') or 'the local socket'}:{address.get('port') or 5432}"
    role, name = address.get("user") or "your login", address.get("dbname") or ""
    if "permission denied for database" in text:
        return NotAllowedError(f"{role} may not connect to {name} at {where}", "run jobs migrate: it grants this")
    if "pg_hba.conf" in text or "not permitted to log in" in text:
        return NotAllowedError(f"the database at {where} does not let {role} in: {text}", "check DATABASE_URL")
    if "does not exist" in text:
        return SetupError(f"{where} has no database {name}: {text}", "run jobs migrate, or correct DATABASE_URL")
    return UnreachableError(
        f"the database at {where} cannot be reached: {text}", "is it running? is DATABASE_URL right?"
    )
