"""The PostgreSQL server under test and a fresh database for each test, cloned from a template.

The template is made by `migrate`, so that tests log in as the roles that production uses. Roles belong to the
server; their passwords are derived from the superuser's, which lets several test runs share one server.
"""

import hashlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from demo.embedded_postgres import NOT_DURABLE, EmbeddedPostgres
from sidelinja_jobs.job_type import JobType
from sidelinja_jobs.logins import FOLDERS, PASSWORD_FILE, restrict_database, secret_folders, set_up_logins
from sidelinja_jobs.migrate import RECORD_JOB_TYPE, migrate

ROOT = Path(__file__).parent.parent
# Files that lie in memory: on a disk, the 600 files of each test's database cost ten times as much (0.02 and 0.2 s of
# CPU). The largest tests need a tenth of the room that is asked for.
IN_MEMORY, ROOM_BYTES = Path("/dev/shm"), 4 << 30  # noqa: S108 - no file of a name that others know
SHORT: dict[str, Any] = {"lease_seconds": 2, "longest_run_seconds": 60, "drain_seconds": 0}
TEST_JOB_TYPES = (
    JobType(name="test_job", role="worker_test", **SHORT),
    JobType(name="other_job", role="worker_test", **SHORT),
    JobType(name="foreign_job", role="worker_foreign", **SHORT),
)


class Server:
    """A server, by its superuser's DSN; `prepare` makes the roles and the template."""

    def __init__(self, superuser_dsn: str) -> None:
        info = conninfo_to_dict(superuser_dsn)
        self.host = str(info.get("host", "127.0.0.1"))
        self.port = int(info.get("port") or 5432)
        self.superuser = str(info.get("user", "postgres"))
        self._superuser_password = str(info.get("password", ""))
        self._maintenance = str(info.get("dbname", "postgres"))
        self._template = f"jobbko_template_{secrets.token_hex(4)}"

    def prepare(self) -> None:
        """Makes the template: the schema, roles with passwords, the job types of services and tests."""
        job_types = [*JobType.load_all(ROOT / "services"), *TEST_JOB_TYPES]
        with tempfile.TemporaryDirectory() as folder:
            self._write_secrets(Path(folder), job_types)
            migrate(self.dsn(self._template), ROOT / "db" / "init", job_types, Path(folder))

    def create_database(self) -> "Database":
        """A fresh clone of the template."""
        name = f"jobbko_test_{secrets.token_hex(6)}"
        statement = sql.SQL("create database {} template {} strategy file_copy")  # by WAL it takes twice as long
        with self._administer() as conn:
            conn.execute(statement.format(sql.Identifier(name), sql.Identifier(self._template)))
        with psycopg.connect(self.dsn(name), autocommit=True) as conn:
            restrict_database(conn)
        return Database(self, name)

    def drop_database(self, name: str) -> None:
        with self._administer() as conn:
            conn.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))

    def close(self) -> None:
        self.drop_database(self._template)

    def dsn(self, database: str, role: str | None = None) -> str:
        """The URL of a database for a role; without one, for the superuser."""
        user = role or self.superuser
        return f"postgresql://{user}:{self.password(user)}@{self.host}:{self.port}/{database}"

    def password(self, role: str) -> str:
        if role == self.superuser:
            return self._superuser_password
        return hashlib.sha256(f"{self._superuser_password} {role}".encode()).hexdigest()[:32]

    def _write_secrets(self, folder: Path, job_types: Iterable[JobType]) -> None:
        for role, name in secret_folders(job_types).items():
            (folder / name).mkdir()
            (folder / name / PASSWORD_FILE).write_text(self.password(role))

    def _administer(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.dsn(self._maintenance), autocommit=True)


class Database:
    """One test's database. Connections made here are closed with it."""

    def __init__(self, server: Server, name: str) -> None:
        self.server = server
        self.name = name
        self._connections: list[psycopg.Connection[Any]] = []
        self._own: psycopg.Connection[dict[str, Any]] | None = None

    def dsn(self, role: str = "superuser") -> str:
        """URL for superuser, operator, admin, delivery, producer, plain, metrics, reader or a worker's role."""
        if role == "superuser":
            return self.server.dsn(self.name)
        return self.server.dsn(self.name, f"jobbko_{role}" if f"jobbko_{role}" in FOLDERS else role)

    def connect(self, role: str = "superuser", *, autocommit: bool = True, **options: Any) -> Any:
        """A connection of that role."""
        conn: psycopg.Connection[Any] = psycopg.connect(self.dsn(role), autocommit=autocommit, **options)
        self._connections.append(conn)
        return conn

    def rows(self, statement: str, *parameters: object) -> list[dict[str, Any]]:
        """Rows of a statement, run as superuser, whom no test looks at."""
        if self._own is None or self._own.closed:
            self._own = self.connect(row_factory=dict_row)
        try:
            cursor = self._own.execute(statement.encode(), parameters or None)
        except psycopg.OperationalError:
            if not self._own.closed:
                raise
            self._own = self.connect(row_factory=dict_row)  # the test has restarted the server meanwhile
            cursor = self._own.execute(statement.encode(), parameters or None)
        return cursor.fetchall() if cursor.description else []

    def row(self, statement: str, *parameters: object) -> dict[str, Any]:
        """The one row."""
        (only,) = self.rows(statement, *parameters)
        return only

    def value(self, statement: str, *parameters: object) -> Any:
        """The one value of the one row."""
        (only,) = self.row(statement, *parameters).values()
        return only

    def job(self, job_id: UUID) -> dict[str, Any]:
        return self.row("select * from job_queue where id = %s", job_id)

    def enqueue(self, job_type: str = "test_job", payload: object = None, **columns: object) -> UUID:
        """Inserts a job with plain SQL; returns its id."""
        values = {"job_type": job_type, "payload": Jsonb({} if payload is None else payload), **columns}
        statement = sql.SQL("insert into job_queue ({}) values ({}) returning id").format(
            sql.SQL(", ").join(map(sql.Identifier, values)),
            sql.SQL(", ").join([sql.Placeholder()] * len(values)),
        )
        conn = self.connect()
        job_id: UUID = conn.execute(statement, list(values.values())).fetchone()[0]
        conn.close()
        return job_id

    def add_job_type(self, name: str, role: str = "worker_test", **rules: Any) -> JobType:
        """Adds a job type and its role, or changes the one there is; leases are short by default."""
        job_type = JobType(name=name, role=role, **(SHORT | rules))
        with psycopg.connect(self.dsn(), autocommit=True) as conn:
            set_up_logins(conn, [job_type], {role: self.server.password(role)})
            conn.execute(RECORD_JOB_TYPE, msgspec.structs.asdict(job_type))
        return job_type

    def close(self) -> None:
        for conn in self._connections:
            conn.close()


def each_database(server: Server) -> Iterator[Database]:
    """The life of one test's database, for a fixture to yield from."""
    database = server.create_database()
    try:
        yield database
    finally:
        database.close()
        server.drop_database(database.name)


@contextmanager
def embedded_server() -> Iterator[EmbeddedPostgres]:
    """An embedded PostgreSQL in a folder that is removed again."""
    folder = Path(tempfile.mkdtemp(prefix="jobbko-postgres-", dir=memory_folder()))
    folder.chmod(0o755)  # root's server runs as another user, who has to get in
    try:
        with EmbeddedPostgres(folder / "server", settings=NOT_DURABLE) as postgres:
            yield postgres
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def memory_folder() -> Path | None:
    """Where files lie in memory, if there is room and programs may run there; None where they may not."""
    with suppress(OSError):
        found = os.statvfs(IN_MEMORY)
        if found.f_bavail * found.f_frsize >= ROOM_BYTES and not found.f_flag & os.ST_NOEXEC:
            return IN_MEMORY
    return None
