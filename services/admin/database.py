"""The admin view's connections: a small pool, named queries, and what changes something in one transaction.

Queries stand in .sql files beside the code that asks them (`-- name: NAME` blocks); a name stands once in all of
them, so that it is enough to name it. Every statement has a deadline; a failure of the database arrives as the
queue's own error where it is one (sidelinja_jobs.errors).
"""

import asyncio
import contextlib
import select
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, LiteralString, TypeAlias

import msgspec
import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.rows import DictRow, dict_row
from psycopg.types.json import set_json_loads
from psycopg_pool import AsyncConnectionPool

from sidelinja_jobs.cli.times import TolerantTimeLoader
from sidelinja_jobs.errors import JobQueueError, SettingsError, translate
from sidelinja_jobs.queries import load_queries
from sidelinja_jobs.settings import DatabaseSettings

Row: TypeAlias = dict[str, Any]
_Connection: TypeAlias = psycopg.AsyncConnection[DictRow]

FOLDER = Path(__file__).parent
CONNECTIONS = 4
TROUBLE = (psycopg.Error, JobQueueError)  # what a query may end with
_KEEPALIVE = {"keepalives_idle": "15", "keepalives_interval": "5", "keepalives_count": "3", "tcp_user_timeout": "20000"}


def all_queries(folder: Path = FOLDER) -> dict[str, LiteralString]:
    """Every query of the view and its API by name.

    Raises:
        ValueError: a name stands twice.
    """
    found: dict[str, LiteralString] = {}
    for path in sorted([*folder.glob("*.sql"), *(path for part in ("access", "pages", "api")
                                                 for path in folder.glob(f"{part}/**/*.sql"))]):  # fmt: skip
        for name, statement in load_queries(path).items():
            if name in found:
                raise ValueError(f"{path}: the query {name} stands in another file, too")
            found[name] = statement
    return found


class Session:
    """Named queries on one connection."""

    def __init__(self, connection: _Connection, queries: dict[str, LiteralString], seconds: float) -> None:
        self._connection, self._queries, self._seconds = connection, queries, seconds

    async def fetch_all(self, name: str, /, **parameters: object) -> list[Row]:
        """The rows of a query; none for a statement that answers with none."""
        try:
            async with asyncio.timeout(self._seconds):
                cursor = await self._connection.execute(self._queries[name], parameters)
                return await cursor.fetchall() if cursor.description else []
        except TimeoutError:
            await self._connection.close()
            raise psycopg.OperationalError(f"{name}: no answer within {self._seconds:g} s") from None
        except psycopg.Error as error:
            raise translate(error) or error from error

    async def fetch_one(self, name: str, /, **parameters: object) -> Row | None:
        """The first row, None where there is none."""
        rows = await self.fetch_all(name, **parameters)
        return rows[0] if rows else None

    async def fetch_value(self, name: str, /, **parameters: object) -> Any:
        """The first column of the first row, None where there is none."""
        row = await self.fetch_one(name, **parameters)
        return next(iter(row.values())) if row else None


class Database:
    """The pool. Each read is a statement of its own; `acting_as` is for what changes something."""

    def __init__(self, settings: DatabaseSettings) -> None:
        self._queries = all_queries()
        self._seconds = settings.timeout_seconds
        self._pool: AsyncConnectionPool[_Connection] = AsyncConnectionPool(
            conninfo(settings, "jobbko admin"),
            min_size=1,
            max_size=CONNECTIONS,
            open=False,
            timeout=settings.timeout_seconds,
            reconnect_timeout=0,
            configure=_configure,
            check=_check,
            # Filters of lists are planned with their values: a plan for all values would read whole tables.
            kwargs={"autocommit": True, "row_factory": dict_row, "prepare_threshold": None},
        )

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """The pool is there while this is entered; no connection has to be."""
        await self._pool.open()
        try:
            yield
        finally:
            await self._pool.close(timeout=2)

    @contextlib.asynccontextmanager
    async def session(self) -> AsyncIterator[Session]:
        """One connection for several reads."""
        async with self._pool.connection() as connection:
            yield Session(connection, self._queries, self._seconds)

    @contextlib.asynccontextmanager
    async def acting_as(self, actor: str) -> AsyncIterator[Session]:
        """One transaction in which a person acts: that name stands in job_event and audit_entry."""
        async with self._pool.connection() as connection, connection.transaction():
            session = Session(connection, self._queries, self._seconds)
            await session.fetch_all("set_actor", actor=actor)
            yield session

    async def fetch_all(self, name: str, /, **parameters: object) -> list[Row]:
        """The rows of a query."""
        async with self.session() as session:
            return await session.fetch_all(name, **parameters)

    async def fetch_one(self, name: str, /, **parameters: object) -> Row | None:
        """The first row, None where there is none."""
        async with self.session() as session:
            return await session.fetch_one(name, **parameters)

    async def fetch_value(self, name: str, /, **parameters: object) -> Any:
        """The first column of the first row, None where there is none."""
        async with self.session() as session:
            return await session.fetch_value(name, **parameters)


def conninfo(settings: DatabaseSettings, name: str) -> str:
    """The connection string, with the password and limits for connections that hang.

    Raises:
        SettingsError: DATABASE_URL cannot be read.
    """
    overrides: dict[str, str] = dict(_KEEPALIVE, application_name=name, connect_timeout="5")
    if settings.password is not None:
        overrides["password"] = settings.password
    try:
        return make_conninfo(settings.url, **overrides)
    except psycopg.Error as error:
        raise SettingsError(
            "DATABASE_URL is no connection string; expected postgresql://ROLE@HOST:5432/NAME"
        ) from error


async def _check(connection: _Connection) -> None:
    """Asks a connection whether it lives where there is a doubt: the server says nothing to one that asks nothing.

    A server that ends a connection sends why, so there is something to read. Asking each time would be a third of what
    the database is waited for.
    """
    waiting = select.poll()
    waiting.register(connection.fileno(), select.POLLIN | select.POLLHUP)
    if waiting.poll(0):
        await AsyncConnectionPool.check_connection(connection)


async def _configure(connection: _Connection) -> None:
    set_json_loads(msgspec.json.decode, connection)
    connection.adapters.register_loader("timestamptz", TolerantTimeLoader)
