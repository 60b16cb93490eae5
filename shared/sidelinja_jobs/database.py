"""Connections to the database that never hang for ever.

A half-open connection (the server gone without a word) shows neither an error nor an answer. TCP keepalives find it
within a minute; the deadline of each statement finds it sooner. After a deadline the connection is closed: what its
statement did is unknown, and the fence decides.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from math import ceil
from pathlib import Path
from typing import Any

import msgspec
import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.rows import dict_row
from psycopg.types.json import set_json_loads

from sidelinja_jobs.errors import SchemaError, SettingsError
from sidelinja_jobs.queries import load_queries
from sidelinja_jobs.settings import DatabaseSettings

SCHEMA_VERSION = 29  # the newest file of db/init that this code needs
LOGIN_REFUSED_TEXTS = ("password authentication failed", "no password supplied")  # where libpq gives no SQLSTATE
PASSING_CLASSES = ("08", "53", "57")  # connection, insufficient resources, operator intervention
READ_ONLY = "25006"  # after a failover to a standby
PREPARE_AFTER = 5  # executions of a statement, psycopg's own default
CANCEL_SECONDS = 2.0  # for the request to cancel a statement
LOGIN_REFUSED = ("28P01", "28000")  # invalid_password, invalid_authorization_specification

_SQL = load_queries(Path(__file__).with_name("queries.sql"))
_KEEPALIVE = {
    "keepalives_idle": "15",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}


class QueueConnection(psycopg.Connection[dict[str, Any]]):
    """A connection whose statements have a deadline, None for none."""

    deadline_seconds: float | None = None
    is_pooled = False  # a pooler stands between: nothing holds for longer than a transaction

    # psycopg runs every exchange with the server through wait(), which knows a timeout but is never given one.
    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        if timeout is not None or self.deadline_seconds is None:
            return super().wait(gen, interval, timeout)
        started = time.monotonic()
        try:
            return super().wait(gen, interval, self.deadline_seconds)
        except psycopg.OperationalError:
            if time.monotonic() - started >= self.deadline_seconds:
                self.pgconn.finish()
                raise psycopg.OperationalError(
                    f"the database did not answer within {self.deadline_seconds:g} s; connection closed"
                ) from None
            raise

    @contextlib.contextmanager
    def deadline(self, seconds: float | None) -> Iterator[None]:
        """Another deadline for a while."""
        before, self.deadline_seconds = self.deadline_seconds, seconds
        try:
            yield
        finally:
            self.deadline_seconds = before


def connect(settings: DatabaseSettings, *, name: str, deadline_seconds: float | None = None) -> QueueConnection:
    """Opens an autocommit connection; `name` is what the server's lists show.

    Raises:
        SettingsError: the URL cannot be read, or the login is refused.
        psycopg.OperationalError: the database is not there.
    """
    deadline_seconds = deadline_seconds or settings.timeout_seconds
    overrides = dict(_KEEPALIVE, application_name=name, connect_timeout=str(max(2, min(5, ceil(deadline_seconds)))))
    if settings.password is not None:
        overrides["password"] = settings.password
    try:
        conninfo = make_conninfo(settings.url, **overrides)
    except psycopg.Error as error:
        raise SettingsError(
            "DATABASE_URL is no connection string; expected postgresql://ROLE@HOST:5432/NAME"
        ) from error
    try:
        conn = QueueConnection.connect(
            conninfo,
            autocommit=True,
            row_factory=dict_row,
            # A prepared statement belongs to a session, which behind a pooler is another one with each transaction.
            prepare_threshold=None if settings.is_pooled else PREPARE_AFTER,
        )
    except psycopg.OperationalError as error:
        if error.sqlstate in LOGIN_REFUSED or any(text in str(error) for text in LOGIN_REFUSED_TEXTS):
            raise SettingsError(
                f"the database refused the login: {error}. Next: check DATABASE_PASSWORD or its file, and run migrate, "
                "which sets the passwords of all roles"
            ) from error
        raise
    set_json_loads(msgspec.json.decode, conn)
    conn.deadline_seconds = deadline_seconds
    conn.is_pooled = settings.is_pooled
    return conn


def is_passing(error: psycopg.Error, is_open: bool) -> bool:
    """Whether waiting may help: the connection is gone, or the server is short of something, ending or read-only."""
    state = error.sqlstate
    if state is None:
        return not is_open or isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return not is_open or state[:2] in PASSING_CLASSES or state == READ_ONLY


def has_ended(conn: QueueConnection, error: BaseException) -> bool:
    """Whether the connection is gone, or the server has said that it ends it (the socket may still look open)."""
    state = error.sqlstate if isinstance(error, psycopg.Error) else None
    return conn.closed or (state or "").startswith(("08", "57P"))


def check_schema(conn: QueueConnection) -> None:
    """Raises SchemaError when the database is older than this code needs."""
    try:
        row = conn.execute(_SQL["schema_version"]).fetchone()
    except psycopg.errors.UndefinedTable:
        row = None
    version = row["version"] if row else 0
    if version < SCHEMA_VERSION:
        raise SchemaError(
            f"the database's schema is at version {version}, this code needs {SCHEMA_VERSION}. Next: run migrate"
        )


class Link:
    """A connection that is opened anew when it is lost. Belongs to one thread."""

    def __init__(self, connect: Callable[[], QueueConnection], on_reconnect: Callable[[], None]) -> None:
        self._connect, self._on_reconnect = connect, on_reconnect
        self._conn: QueueConnection | None = None

    @property
    def is_open(self) -> bool:
        return self._conn is not None and not self._conn.closed

    @property
    def is_busy(self) -> bool:
        """Whether the connection is inside a statement or a transaction."""
        idle = psycopg.pq.TransactionStatus.IDLE
        return self._conn is not None and self.is_open and self._conn.info.transaction_status is not idle

    def open(self) -> QueueConnection:
        """The open connection, made when there is none.

        Raises:
            psycopg.OperationalError: the database is not there.
        """
        if self._conn is None:
            self._conn = self._connect()
        elif self._conn.closed:
            self._conn = self._connect()
            self._on_reconnect()
        return self._conn

    def close(self) -> None:
        """Closes the connection; the next `open` makes a new one."""
        if self._conn is not None:
            with contextlib.suppress(psycopg.Error):
                self._conn.close()

    def tidy(self) -> None:
        """After an interruption: ends a statement that still runs, whose locks would stay, and its connection."""
        if self._conn is not None and self.is_busy:
            with contextlib.suppress(psycopg.Error):
                self._conn.cancel_safe(timeout=CANCEL_SECONDS)
            self.close()
