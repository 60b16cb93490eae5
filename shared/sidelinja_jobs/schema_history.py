"""Applies the files of db/init that a database lacks, as its table schema_migrations says.

Called by `migrate` alone, under its lock. A file is one transaction that records itself, so a killed or
failed one left nothing and is run again.
"""

import time
from collections.abc import Sequence
from pathlib import Path

import psycopg
from psycopg import sql

from sidelinja_jobs.init_files import InitFile, MigrationError
from sidelinja_jobs.log import get_logger
from sidelinja_jobs.queries import load_queries

log = get_logger()
_SQL = load_queries(Path(__file__).with_name("migrate.sql"))

# A file that needs a lock of the running system gives up soon and tries again, since everything that asks for
# the table meanwhile would queue up behind it.
LOCK_TIMEOUT = "5s"
LOCK_TRIES = 5


def apply_missing(conn: psycopg.Connection, files: Sequence[InitFile]) -> list[str]:
    """Run the files that the database lacks, in order; returns their names. On an autocommit connection."""
    done = _recorded(conn)
    _check_history(done, files)
    applied = []
    for file in files:
        if file.version not in done:
            started = time.monotonic()
            _apply(conn, file)
            seconds = round(time.monotonic() - started, 2)
            log.info("migration applied", file=file.path.name, seconds=seconds)
            applied.append(file.path.name)
    if not applied:
        log.info("database is up to date", version=max(done))
    return applied


def _recorded(conn: psycopg.Connection) -> dict[int, str]:
    if conn.execute(_SQL["has_history"]).fetchone() != (True,):
        return {}
    return dict(conn.execute(_SQL["history"]).fetchall())


def _check_history(done: dict[int, str], files: Sequence[InitFile]) -> None:
    """Refuse a history that these files cannot have made; warn of one that a newer release made."""
    newest = max(done, default=0)
    missing = sorted(set(range(1, newest + 1)) - done.keys())
    if missing:
        raise MigrationError(
            f"the database is at version {newest} but lacks {', '.join(map(str, missing))}: rows of "
            "schema_migrations were lost, or files were applied out of order. Nothing was changed. Next: "
            "restore a backup, or insert the rows of those files that did run"
        )
    for file in files:
        if done.get(file.version, file.name) != file.name:
            raise MigrationError(
                f"version {file.version} of the database is called {done[file.version]!r}, the file is "
                f"{file.path.name}: this is the database of another program or branch. Nothing was changed. "
                "Next: check the address"
            )
    if newest > len(files):
        log.warning(
            "database is newer than these files: images of the release before may run against it; older "
            "ones need the backup from before the upgrade",
            database_version=newest,
            files_version=len(files),
        )


def _apply(conn: psycopg.Connection, file: InitFile) -> None:
    """Run one file; one that meets a lock of the running system is rolled back and tried again."""
    for attempt in range(1, LOCK_TRIES + 1):
        try:
            _run(conn, file)
            break
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected) as error:
            if attempt == LOCK_TRIES:
                raise MigrationError(_told(file, error)) from error
            log.warning("migration waits for a lock", file=file.path.name, attempt=attempt)
            conn.rollback()
        except psycopg.Error as error:
            raise MigrationError(_told(file, error)) from error
    if file.version not in _recorded(conn):
        raise MigrationError(
            f"{file.path.name} ran, but schema_migrations has no version {file.version}. "
            "Next: let the file insert its number"
        )


def _run(conn: psycopg.Connection, file: InitFile) -> None:
    timeout = LOCK_TIMEOUT if file.is_transactional else "0"
    conn.execute(sql.SQL("set lock_timeout = {}").format(sql.Literal(timeout)))
    for statement in file.statements:
        conn.execute(statement.encode())  # without parameters, so that one execute may hold many statements


def _told(file: InitFile, error: psycopg.Error) -> str:
    """What went wrong and where, for the person who reads the last line of the log."""
    place, diagnosis = file.path.name, error.diag
    if file.is_transactional and diagnosis.statement_position:
        place += f" line {file.text.count(chr(10), 0, int(diagnosis.statement_position)) + 1}"
    message = diagnosis.message_primary or str(error).strip()
    hint = f" ({diagnosis.message_hint})" if diagnosis.message_hint else ""
    left = "its transaction was rolled back" if file.is_transactional else "what it did stays, and runs again next time"
    return f"{place}: {message}{hint}; {left}. Next: correct the cause, then run migrate again"
