"""From one major version of PostgreSQL to the next, as docs/operations.md tells it.

The scripts behind `make backup` and `make restore`, out of a container of the stack's version into the newer server
that the tests bring along.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from psycopg.rows import dict_row

from demo.embedded_postgres import EmbeddedPostgres, installation
from sidelinja_jobs.job_type import JobType
from sidelinja_jobs.logins import secret_folders
from sidelinja_jobs.migrate import migrate
from tests.databases import ROOT, TEST_JOB_TYPES, Database, Server
from tests.deploy.containers import running_postgres
from tests.queue.migrate_support import write_secrets
from tests.queue.queue_laws import broken_laws
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcesses

pytestmark = [pytest.mark.containers, pytest.mark.slow]

JOB_TYPES = [*JobType.load_all(ROOT / "services"), *TEST_JOB_TYPES]
# For whom a restore is new, or that hold the numbers of transactions and times of `migrate`.
NOT_COMPARED = {"worker", "schema_migrations", "event_epoch", "job_type"}
TABLES = """select oid::regclass::text as name from pg_class
             where relkind = 'r' and relnamespace in ('public'::regnamespace, 'stats'::regnamespace)"""
COUNT_ROWS = (ROOT / "db" / "count_rows.sql").read_text()
# Jobs in every state, with what hangs on them; a sixth is at work while the backup is made.
LIFE = """
insert into job_queue (job_type, payload) select 'test_job', jsonb_build_object('n', n, 'text', repeat('æ', n))
  from generate_series(1, 300) as n;
update job_queue set status = 'running', started_at = now(), lease_token = gen_random_uuid(),
       lease_until = now() + interval '1 hour', worker_id = 'here:1:a' where (payload->>'n')::integer % 3 = 0;
update job_queue set status = 'completed', result = payload, completed_at = now(), lease_until = null
 where (payload->>'n')::integer % 6 = 0;
select from act_on_jobs(
    'cancel', array(select id from job_queue where (payload->>'n')::integer % 5 = 0), '{pending}', 'æ');
insert into job_schedule (name, job_type, every) values ('daily', 'other_job', '1 day');
insert into stats.source (name, show) values ('media', 'Lyd');
"""


@pytest.fixture
def older(tmp_path: Path) -> Iterator[tuple[str, Database]]:
    """A container of the stack's image, its superuser's password where the scripts look for it, and its database."""
    (tmp_path / "superuser").write_text("secret")
    tmp_path.chmod(0o755)
    with running_postgres("--volume", f"{tmp_path}:/run/secrets:ro") as (container, dsn):
        database = prepared(Server(dsn), tmp_path / "secrets")
        yield container, database
        database.close()


def prepared(server: Server, secrets: Path) -> Database:
    """The database `jobbko` on a server, with every role's password."""
    write_secrets(secrets, JOB_TYPES, **{role: server.password(role) for role in secret_folders(JOB_TYPES)})
    migrate(server.dsn("jobbko"), ROOT / "db" / "init", JOB_TYPES, secrets)
    return Database(server, "jobbko")


def back_up(container: str, file: Path) -> str:
    """What `make backup` does; returns the rows that it counted."""
    script = (ROOT / "db" / "backup.sh").read_text()
    command = ["docker", "exec", container, "bash", "-c", script, "backup", COUNT_ROWS]
    rows, _, dump = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.partition(b"\n")
    file.write_bytes(dump)
    return rows.decode()


def restore(postgres: EmbeddedPostgres, file: Path, rows: str) -> str:
    """What `make restore` does, with the newer version's own programs."""
    environ = {
        "PATH": f"{installation() / 'bin'}:{os.environ['PATH']}",
        "PGPORT": str(postgres.port),
        "PGPASSWORD": postgres.password,
    }
    with file.open("rb") as dump:
        ended = subprocess.run(
            ["bash", ROOT / "db" / "restore.sh", rows, COUNT_ROWS],
            stdin=dump, env=environ, capture_output=True, text=True,
        )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def contents(database: Database) -> dict[str, list[str]]:
    """All rows of all tables, without what is another server's."""
    names = {row["name"] for row in database.rows(TABLES)} - NOT_COMPARED
    row = "(to_jsonb(row_) - array['xid', 'lease_until'])::text as line"
    return {name: [r["line"] for r in database.rows(f"select {row} from {name} as row_ order by 1")] for name in names}


def test_a_backup_of_the_stacks_version_goes_into_the_next_one(
    older: tuple[str, Database], own_postgres: EmbeddedPostgres, tmp_path: Path, worker_process: WorkerProcesses
) -> None:
    """All rows are there as they were, dead runs begin again, and workers go on under their logins."""
    container, before = older
    before.rows(LIFE)
    kept = contents(before)
    rows = back_up(container, tmp_path / "jobbko.dump")
    after = prepared(Server(own_postgres.dsn()), tmp_path / "new-secrets")
    told = restore(own_postgres, tmp_path / "jobbko.dump", rows)
    migrate(own_postgres.dsn("jobbko"), ROOT / "db" / "init", JOB_TYPES, tmp_path / "new-secrets")
    versions = [database.connect().info.server_version // 10000 for database in (before, after)]

    assert versions[0] < versions[1]
    assert json.loads(rows)["job_queue"] == 300
    assert rows in told
    assert before.value("select epoch from event_epoch") != after.value("select epoch from event_epoch")
    found = contents(after)
    assert {line for line in found.pop("audit_entry") if "events.renew_epoch" not in line} == set(
        kept.pop("audit_entry")
    )
    assert found == kept
    worker_process.start(after, "def handle(job, ctx):\n    return {'n': job.payload['n']}\n")
    wait_until(lambda: have_ended(after), 60, what="the restored jobs to end")
    assert broken_laws(after.connect(row_factory=dict_row)) == []
    after.close()


def have_ended(database: Database) -> bool:
    """Whether the test's jobs have; nobody waits for the backoff of dead runs."""
    database.rows("update job_queue set scheduled_for = now() where status = 'retry'")
    waiting = "select count(*) from job_queue where job_type = 'test_job' and status not in ('completed', 'error')"
    return bool(database.value(waiting) == 0)
