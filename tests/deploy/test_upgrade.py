"""An upgrade from the released state, as processes: its database becomes like a new one, and its workers go on.

Old code, old schema and old logins come out of git; `migrate`, the new workers and the new schema are this tree's.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from psycopg.rows import dict_row

from demo.embedded_postgres import EmbeddedPostgres, installation
from sidelinja_jobs.job_type import JobType
from sidelinja_jobs.logins import secret_folders
from sidelinja_jobs.migrate import migrate
from tests.databases import ROOT, Database, Server
from tests.deploy.released import unpack
from tests.queue.migrate_support import FILES, finish, start, write_secrets
from tests.queue.queue_laws import broken_laws
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcess, WorkerProcesses

# Job type -> jobs in a batch. Handlers that write and that do not are completed by different functions.
TYPES = {"test_job": 1, "batch_job": 20, "plain_job": 20}
HANDLER = """
import sidelinja_jobs
def handle(job, ctx):
    if job.job_type == "plain_job":
        return {"by": sidelinja_jobs.__file__}
    ctx.on_complete(lambda conn: conn.execute("insert into done (job_id) values (%s)", (job.id,)) and None)
    return {"by": sidelinja_jobs.__file__}
"""
# A program of the old release that enqueues without pause, by its package and by plain SQL; any refusal ends it.
PRODUCER = """
import os, pathlib, psycopg, time
from sidelinja_jobs import enqueue
with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as conn, open("asked", "w", buffering=1) as asked:
    while not pathlib.Path("stop").exists():
        for job_type in ("test_job", "batch_job", "plain_job"):
            plain = "insert into job_queue (job_type, payload) values (%s, '{}') returning id"
            print(enqueue(conn, job_type, {}).id, *conn.execute(plain, [job_type]).fetchone(), sep="\\n", file=asked)
        time.sleep(0.02)
"""
DONE = "select count(*) from job_queue where job_type = %s and result->>'by' like %s"
# What a next release may bring: every kind of change that has to wait for a lock of the tables in use.
NEXT = """
begin;
insert into schema_migrations (version, name) values ({version}, 'next');
set local role jobbko_owner;
alter table job_queue add column note_of_next text;
alter table job_event add column note_of_next text not null default '';
alter table worker add column note_of_next integer check (note_of_next > 0);
create index job_queue_next on job_queue (note_of_next) where note_of_next is not null;
commit;
"""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """The tree that is upgraded from, with job types of its own."""
    tree = unpack(tmp_path, "shared", "db/init", "services", "tests/worker_main.py")
    for name, batch in TYPES.items():
        folder = tmp_path / "types" / name
        folder.mkdir(parents=True)
        (folder / "job_type.toml").write_text(
            f'name = "{name}"\nrole = "worker_test"\nbatch_size = {batch}\nlease_seconds = 20\n'
        )
    return tree


def schema(postgres: EmbeddedPostgres, name: str) -> list[str]:
    """The definition of every object, without the random words with which the program fences its own commands."""
    dumped = subprocess.run(
        [installation() / "bin" / "pg_dump", "--schema-only", postgres.dsn(name)], capture_output=True, text=True
    )
    assert dumped.returncode == 0, dumped.stderr
    return [line for line in dumped.stdout.splitlines() if not line.startswith(("\\restrict", "\\unrestrict"))]


def test_an_upgraded_database_is_like_a_new_one(old: Path, own_postgres: EmbeddedPostgres) -> None:
    """A change of an old file without its counterpart in a new one shows here."""
    job_types = JobType.load_all(ROOT / "services")
    migrate(own_postgres.dsn("upgraded"), old / "db" / "init", JobType.load_all(old / "services"))
    migrate(own_postgres.dsn("upgraded"), ROOT / "db" / "init", job_types)
    migrate(own_postgres.dsn("fresh"), ROOT / "db" / "init", job_types)

    upgraded, fresh = schema(own_postgres, "upgraded"), schema(own_postgres, "fresh")
    assert sorted(set(fresh) ^ set(upgraded)) == []
    assert upgraded == fresh


@pytest.fixture
def database(old: Path, own_postgres: EmbeddedPostgres) -> Iterator[Database]:
    """A database as the old tree's own `migrate` makes it, with a table for what handlers do."""
    server, secrets = Server(own_postgres.dsn()), old / "secrets"
    job_types = JobType.load_all(old / "types")
    write_secrets(secrets, job_types, **{role: server.password(role) for role in secret_folders(job_types)})
    applied = run_migrate(server, old, old / "db" / "init", old)
    database = Database(server, "jobbko")
    database.rows("create table done (job_id uuid primary key)")
    database.rows("grant insert on done to worker_test")
    assert applied.count("migration applied") == database.value("select max(version) from schema_migrations")
    yield database
    database.close()


def run_migrate(server: Server, old: Path, init: Path, tree: Path) -> str:
    """The log of this tree's `migrate` on these files; the types and passwords are the test's."""
    settings = {"SERVICES_FOLDER": str(old / "types"), "SECRETS_FOLDER": str(old / "secrets")}
    code, out, err = finish(start(server.dsn("jobbko"), init, PYTHONPATH=path_of(tree), **settings))
    assert (code, err) == (0, "")
    return out


def path_of(tree: Path) -> str:
    return f"{tree / 'shared'}:{tree}"


def start_workers(workers: WorkerProcesses, database: Database, tree: Path) -> list[WorkerProcess]:
    """One of each type, with the code of that tree."""
    environ = {"PYTHONPATH": path_of(tree), "LOG_LEVEL": "info"}
    return [
        workers.start(database, HANDLER, job_type=name, environ=environ, drain_seconds=5) for name in TYPES
    ]  # fmt: skip


@contextmanager
def producing(database: Database, old: Path) -> Iterator["subprocess.Popen[str]"]:
    """A program of the old release that enqueues until this ends; `asked` beside it lists what it enqueued."""
    environ = {"PYTHONPATH": path_of(old), "DATABASE_URL": database.dsn("producer")}
    producer = subprocess.Popen(
        [sys.executable, "-c", PRODUCER], env=environ, cwd=old, stderr=subprocess.PIPE, text=True
    )
    try:
        yield producer
    finally:
        producer.kill()
        producer.wait()


def test_old_workers_go_on_while_the_schema_changes(
    old: Path, database: Database, worker_process: WorkerProcesses
) -> None:
    """Then new workers come beside them, and the old ones go: each job completes once, and no run fails."""

    def fewest_done(tree: Path) -> int:
        """Of each type, by workers of that tree."""
        return min(database.value(DONE, name, f"{tree}/shared/%") for name in TYPES)

    def wait_for_more(tree: Path) -> None:
        before = fewest_done(tree)
        wait_until(lambda: fewest_done(tree) >= before + 30, 30, what=f"30 more jobs of each type by {tree}")

    init = shutil.copytree(ROOT / "db" / "init", old / "next")
    (init / f"{FILES + 1:04}_next.sql").write_text(NEXT.format(version=FILES + 1))
    with producing(database, old) as producer:
        old_workers = start_workers(worker_process, database, old)
        wait_for_more(old)
        migrated = run_migrate(database.server, old, init, ROOT)
        wait_for_more(old)
        workers = old_workers + start_workers(worker_process, database, ROOT)
        codes = []
        for worker in old_workers:
            worker.terminate()
            codes.append(worker.wait())
        wait_for_more(ROOT)
        (old / "stop").touch()
        assert (producer.wait(20), producer.communicate()[1]) == (0, "")
    asked = (old / "asked").read_text().split()
    open_jobs = "select count(*) from job_queue where status <> 'completed'"
    wait_until(lambda: database.value(open_jobs) == 0, 30, what="all jobs to complete")

    assert f"{FILES + 1:04}_next.sql" in migrated
    assert codes == [0] * len(TYPES)
    assert {event["outcome"] for worker in workers for event in worker.log_events("job ended")} <= {
        "completed", "released",
    }  # fmt: skip
    assert accounts(database) == {"jobs": len(asked), "completed": len(asked), "wrote": True, "failed": 0}
    assert database.value("select count(*) from job_queue where id = any(%s::uuid[])", asked) == len(asked)
    assert broken_laws(database.connect(row_factory=dict_row)) == []


def accounts(database: Database) -> dict[str, Any]:
    """Jobs by their events, whether each handler that writes did so; failed are runs that were charged."""
    return database.row(
        """select (select count(*) from job_queue) as jobs,
                  (select count(*) from job_event where new_status = 'completed') as completed,
                  (select count(*) from done)
                      = (select count(*) from job_queue where job_type <> 'plain_job') as wrote,
                  (select count(*) from job_attempt where charged) as failed"""
    )
