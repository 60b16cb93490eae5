"""Brings a database to the state of db/init, and sets roles, passwords and the rules of the job types.

Run by the one-shot service `migrate` at every start, by the demo and by the tests. It logs in as the
superuser, since only that one may set other roles' passwords. Safe to run twice, and by several at once: the
first one takes a lock in the maintenance database and keeps it to the end; the others then find nothing to
do. Whatever a killed start left (no database, some of the files, roles without passwords), the next run
completes.
"""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from sidelinja_jobs.errors import SettingsError
from sidelinja_jobs.init_files import MigrationError, read_init_folder
from sidelinja_jobs.job_type import JobType
from sidelinja_jobs.log import configure_logging, get_logger
from sidelinja_jobs.logins import read_passwords, set_up_logins
from sidelinja_jobs.queries import load_queries
from sidelinja_jobs.schema_history import apply_missing
from sidelinja_jobs.settings import load_settings, setting

log = get_logger()

ROOT = Path(__file__).resolve().parents[2]  # the repository; /app in an image
# Names of locks are two numbers; the first is "jobb". One is held in the maintenance database, one in our own.
SERVER_LOCK: dict[str, object] = {"space": 0x6A6F6262, "number": 1}
DATABASE_LOCK: dict[str, object] = {"space": 0x6A6F6262, "number": 2}

_SQL = load_queries(Path(__file__).with_name("migrate.sql"))
RECORD_JOB_TYPE = _SQL["record_job_type"]


class DatabaseUnreachableError(MigrationError):
    """Nothing answers, or it answers that we may not come in."""


@dataclass(frozen=True)
class MigrateSettings:
    """Which database, and where the files lie."""

    superuser_url: str | None = setting("MIGRATE_DATABASE_URL", default=None, secret=True)
    url: str | None = setting("DATABASE_URL", default=None, secret=True, help="where the first is not set")
    password: str | None = setting("DATABASE_PASSWORD", default=None, secret=True, help="overrides the URL's")
    init_folder: Path = setting("INIT_FOLDER", default=ROOT / "db" / "init", help="numbered SQL files")
    services_folder: Path = setting("SERVICES_FOLDER", default=ROOT / "services")
    secrets_folder: Path | None = setting("SECRETS_FOLDER", default=None, help="unset: set no passwords")
    wait_seconds: float = setting("MIGRATE_WAIT_SECONDS", default=60.0, minimum=0, help="for a starting database")
    log_format: str = setting("LOG_FORMAT", default="auto", choices=("auto", "json", "console"))
    log_level: str = setting("LOG_LEVEL", default="info", choices=("debug", "info", "warning", "error"))

    @property
    def dsn(self) -> str:
        """The superuser's DSN.

        Raises:
            SettingsError: there is none, or it cannot be read.
        """
        address = self.superuser_url or self.url
        if not address:
            raise SettingsError(
                "settings: neither MIGRATE_DATABASE_URL nor DATABASE_URL is set; "
                "set one to postgresql://SUPERUSER@HOST:5432/jobbko"
            )
        try:
            return make_conninfo(address, **({"password": self.password} if self.password else {}))
        except psycopg.ProgrammingError as error:
            raise SettingsError(
                "settings: the database's address cannot be read; expected postgresql://SUPERUSER@HOST:5432/jobbko"
            ) from error


def main() -> int:
    """Migrate as the environment says; returns the process's exit code."""
    try:
        settings = load_settings(MigrateSettings)
        configure_logging(settings.log_format, settings.log_level)
        migrate(
            settings.dsn,
            settings.init_folder,
            JobType.load_all(settings.services_folder),
            settings.secrets_folder,
            wait_seconds=settings.wait_seconds,
        )
    except (SettingsError, MigrationError) as error:
        print(f"migrate: {error}", file=sys.stderr, flush=True)
        return os.EX_UNAVAILABLE if isinstance(error, DatabaseUnreachableError) else os.EX_CONFIG
    except psycopg.OperationalError as error:
        print(f"migrate: the connection was lost: {error}. Next: run it again", file=sys.stderr, flush=True)
        return os.EX_UNAVAILABLE
    return 0


def migrate(
    superuser_dsn: str,
    init_folder: Path,
    job_types: Sequence[JobType] = (),
    secrets_folder: Path | None = None,
    *,
    wait_seconds: float = 60.0,
) -> list[str]:
    """Bring the database to the state of the files; returns the names of those that were applied.

    Without a secrets folder no password is set: the roles can then log in only where the server trusts them.

    Raises:
        MigrationError: what is wrong, which file or role it concerns, and what to do next.
    """
    files = read_init_folder(init_folder)
    passwords = read_passwords(secrets_folder, job_types) if secrets_folder else {}
    with _alone_on_server(superuser_dsn, wait_seconds) as server:
        _ensure_database(server, superuser_dsn)
        with _connect(superuser_dsn) as conn:
            # A killed run's server process may still be busy with a file: it holds this lock for as long.
            _wait_for_lock(conn, DATABASE_LOCK)
            conn.execute(_SQL["notice_a_dead_client"])
            applied = apply_missing(conn, files)
            with _told("the roles could not be set up"):
                set_up_logins(conn, job_types, passwords)
            _record_job_types(conn, job_types)
    return applied


@contextmanager
def _alone_on_server(dsn: str, wait_seconds: float) -> Iterator[psycopg.Connection]:
    """A connection that holds the lock, in the maintenance database: roles belong to the whole server."""
    with _connect_when_ready(make_conninfo(dsn, dbname="postgres"), wait_seconds) as server:
        if not _one_value(server, "is_superuser"):
            raise DatabaseUnreachableError(_no_superuser(server.info.user))
        _wait_for_lock(server, SERVER_LOCK)
        yield server


def _wait_for_lock(conn: psycopg.Connection, lock: dict[str, object]) -> None:
    is_told = False
    while not _one_value(conn, "try_lock", lock):
        if not is_told:
            log.info("waiting for another migrate to end")
            is_told = True
        time.sleep(0.1)


def _connect_when_ready(dsn: str, wait_seconds: float) -> psycopg.Connection:
    """Connect, trying again for a while; a refused login is told at once."""
    deadline = time.monotonic() + wait_seconds
    is_told = False
    while True:
        try:
            return _connect(dsn)
        except psycopg.OperationalError as error:
            if "password authentication failed" in str(error):
                raise DatabaseUnreachableError(_refused_password(dsn)) from error
            if "permission denied for database" in str(error):
                raise DatabaseUnreachableError(_no_superuser(conninfo_to_dict(dsn).get("user"))) from error
            if time.monotonic() > deadline:
                raise DatabaseUnreachableError(
                    f"no database at {_place(dsn)} for {wait_seconds:g} s: {str(error).strip()}. Next: see"
                    " whether the service `db` is healthy (docker compose ps) and the address is its"
                ) from error
            if not is_told:
                log.info("waiting for the database", place=_place(dsn))
                is_told = True
            time.sleep(0.5)


def _no_superuser(user: object) -> str:
    return (
        f"{user} is no superuser, so it cannot set the passwords of other roles. "
        "Next: set MIGRATE_DATABASE_URL to a superuser's address"
    )


def _refused_password(dsn: str) -> str:
    return (
        f"the database at {_place(dsn)} refused the password of {conninfo_to_dict(dsn).get('user')}. This "
        "happens when the volume `secrets` was lost or made anew while the volume `pgdata` was kept: the "
        "database remembers its first password. No data is lost. Next: `make reset-password` gives it the"
        " present one, then `make up`"
    )


def _place(dsn: str) -> str:
    parts = conninfo_to_dict(dsn)
    return f"{parts.get('host', 'the local socket')}:{parts.get('port', 5432)}"


def _connect(dsn: str) -> psycopg.Connection:
    return psycopg.connect(
        dsn, autocommit=True, connect_timeout=5, prepare_threshold=None, application_name="jobbko migrate"
    )


def _one_value(conn: psycopg.Connection, name: str, parameters: dict[str, object] | None = None) -> object:
    row = conn.execute(_SQL[name], parameters).fetchone()
    return row[0] if row else None


def _ensure_database(server: psycopg.Connection, dsn: str) -> None:
    """Make the database where the start was killed before the image had made it."""
    parts = conninfo_to_dict(dsn)
    name = str(parts.get("dbname") or parts.get("user") or "postgres")
    if not _one_value(server, "database_exists", {"name": name}):
        server.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        log.info("database created", database=name)


def _record_job_types(conn: psycopg.Connection, job_types: Sequence[JobType]) -> None:
    for job_type in job_types:
        with _told(f"the rules of {job_type.name} in its job_type.toml were refused"):
            changed = conn.execute(RECORD_JOB_TYPE, msgspec.structs.asdict(job_type)).fetchone()
        if changed:
            log.info("job type recorded", job_type=job_type.name, role=job_type.role)


@contextmanager
def _told(what: str) -> Iterator[None]:
    """What the database refuses after the files, as one line for a person."""
    try:
        yield
    except psycopg.OperationalError:
        raise  # the connection was lost
    except psycopg.Error as error:
        reason = error.diag.message_primary or str(error).strip()
        raise MigrationError(f"{what}: {reason}. Next: correct the cause, then run migrate again") from error


if __name__ == "__main__":
    sys.exit(main())
