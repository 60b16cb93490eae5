"""A database of its own for each test of `migrate`, init folders written for it, and real migrate processes."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psycopg

from sidelinja_jobs.job_type import JobType
from sidelinja_jobs.logins import secret_folders
from tests.databases import ROOT, Server

INIT = ROOT / "db" / "init"
FILES = len(list(INIT.glob("*.sql")))
HISTORY = """
begin;
create table schema_migrations (version integer primary key, name text not null, applied_at timestamptz default now());
insert into schema_migrations (version, name) values (1, 'first');
commit;
"""
JOB_TYPE = JobType(name="test_job", role="worker_test")


class Fresh:
    """A database of one test, at first not there."""

    def __init__(self, server: Server, name: str) -> None:
        self.server, self.name = server, name
        self.dsn = server.dsn(name)

    def rows(self, statement: str, *parameters: object) -> list[tuple[object, ...]]:
        with psycopg.connect(self.dsn, autocommit=True) as conn:
            cursor = conn.execute(statement.encode(), parameters or None)
            return cursor.fetchall() if cursor.description else []

    def versions(self) -> list[object]:
        return [version for (version,) in self.rows("select version from schema_migrations order by 1")]

    def has_table(self, name: str) -> bool:
        return self.rows("select to_regclass(%s) is not null", name) == [(True,)]

    def exists(self) -> bool:
        with psycopg.connect(self.server.dsn("postgres")) as conn:
            return conn.execute("select from pg_database where datname = %s", [self.name]).fetchone() is not None


def each_fresh(server: Server) -> Iterator[Fresh]:
    """The life of one test's database, for a fixture to yield from."""
    name = f"jobbko_migrate_{os.getpid()}_{time.monotonic_ns()}"
    yield Fresh(server, name)
    server.drop_database(name)


def write_files(folder: Path, *texts: str) -> Path:
    """An init folder whose files record themselves; a text that begins one itself is written as it is."""
    folder.mkdir(exist_ok=True)
    for version, text in enumerate((HISTORY, *texts), start=1):
        name = "first" if version == 1 else f"part{version}"
        if version > 1 and "schema_migrations" not in text:
            text = (
                f"begin;\ninsert into schema_migrations (version, name) values ({version}, '{name}');\n{text}\ncommit;"
            )
        (folder / f"{version:04}_{name}.sql").write_text(text)
    return folder


def start(
    dsn: str, init: Path = INIT, program: Sequence[str] = ("-m", "sidelinja_jobs.migrate"), **settings: str
) -> "subprocess.Popen[str]":
    """A real migrate process, without the services' job types unless SERVICES_FOLDER says so."""
    own = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT / 'shared'}:{ROOT}", "DATABASE_URL": dsn}
    environ = own | {"INIT_FOLDER": str(init), "SERVICES_FOLDER": str(init / "none")} | settings
    return subprocess.Popen(
        [sys.executable, *program],
        env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def finish(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def write_secrets(folder: Path, job_types: list[JobType], **different: str) -> dict[str, str]:
    """A secrets folder as the service `secrets` makes it; returns the passwords by role."""
    passwords = {}
    for role, name in secret_folders(job_types).items():
        passwords[role] = different.get(role, f"secret-of-{role}")
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "password").write_text(passwords[role] + "\n")
    return passwords


def can_log_in(dsn: str, role: str, password: str) -> bool:
    try:
        psycopg.connect(dsn, user=role, password=password).close()
    except psycopg.OperationalError as error:
        if "password authentication failed" not in str(error):
            raise
        return False
    return True
