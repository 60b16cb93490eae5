"""`migrate`: from nothing, from half, from old to new; several at once; roles, passwords and the rules of job types."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from demo.embedded_postgres import EmbeddedPostgres
from sidelinja_jobs.errors import SettingsError
from sidelinja_jobs.init_files import MigrationError, read_init_folder, split_statements
from sidelinja_jobs.job_type import JobType
from sidelinja_jobs.logins import secret_folders, verifies
from sidelinja_jobs.migrate import MigrateSettings, migrate
from tests.databases import ROOT, Server
from tests.waiting import wait_until

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


@pytest.fixture
def fresh(server: Server) -> Iterator[Fresh]:
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


def start(dsn: str, init: Path = INIT, **settings: str) -> "subprocess.Popen[str]":
    """A real migrate process, without the services' job types unless SERVICES_FOLDER says so."""
    own = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT / 'shared'}:{ROOT}", "DATABASE_URL": dsn}
    environ = own | {"INIT_FOLDER": str(init), "SERVICES_FOLDER": str(init / "none")} | settings
    return subprocess.Popen(
        [sys.executable, "-m", "sidelinja_jobs.migrate"],
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


def test_four_at_once_fill_an_empty_server(own_postgres: EmbeddedPostgres, tmp_path: Path) -> None:
    """No database, no roles: each file is applied once, and every role can log in with its secret."""
    services = ROOT / "services"
    passwords = write_secrets(tmp_path, JobType.load_all(services))
    dsn = own_postgres.dsn("jobbko")
    running = [start(dsn, SERVICES_FOLDER=str(services), SECRETS_FOLDER=str(tmp_path)) for _ in range(4)]
    ended = [finish(process) for process in running]

    assert [(code, err) for code, _, err in ended] == [(0, "")] * 4
    assert "".join(out for _, out, _ in ended).count("migration applied") == FILES
    assert all(can_log_in(dsn, role, password) for role, password in passwords.items())
    with psycopg.connect(dsn) as conn:
        assert conn.execute("select count(*) from job_type").fetchone() == (len(JobType.load_all(services)),)


def test_four_at_once_complete_a_half_made_database(fresh: Fresh, server: Server) -> None:
    """The image was killed after three files."""
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as conn:
        conn.execute(sql.SQL("create database {}").format(sql.Identifier(fresh.name)))
    for file in read_init_folder(INIT)[:3]:
        fresh.rows(file.text)
    ended = [finish(process) for process in [start(fresh.dsn) for _ in range(4)]]

    assert [(code, err) for code, _, err in ended] == [(0, "")] * 4
    assert "".join(out for _, out, _ in ended).count("migration applied") == FILES - 3
    assert fresh.versions() == list(range(1, FILES + 1))


def test_a_killed_migrate_leaves_nothing_of_its_file(fresh: Fresh, tmp_path: Path) -> None:
    """Killed in the second file: the server gives that up, and four started at once run it once."""
    slow = write_files(tmp_path / "slow", "create table half (); select pg_sleep(60); create table other_half ();")
    quick = write_files(tmp_path / "quick", "create table half (); create table other_half ();")
    process = start(fresh.dsn, slow)
    sleeping = """select exists (select from pg_stat_activity
                   where datname = current_database() and pid <> pg_backend_pid() and query ~ 'pg_sleep')"""
    wait_until(lambda: is_there(fresh) and fresh.rows(sleeping) == [(True,)], what="the second file runs")
    process.kill()
    finish(process)
    ended = [finish(process) for process in [start(fresh.dsn, quick) for _ in range(4)]]

    assert [code for code, _, _ in ended] == [0] * 4
    assert "".join(out for _, out, _ in ended).count("migration applied") == 1
    assert fresh.versions() == [1, 2]
    assert fresh.has_table("other_half")


def is_there(fresh: Fresh) -> bool:
    with psycopg.connect(fresh.server.dsn("postgres")) as conn:
        return conn.execute("select from pg_database where datname = %s", [fresh.name]).fetchone() is not None


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("create table second ();\nselekt 1;", "line 4: syntax error"),
        ("create table second ();\nselect 1 / 0;", ": division by zero"),
    ],
    ids=["broken", "fails in the middle"],
)
def test_a_bad_file_leaves_nothing_and_is_run_again(fresh: Fresh, tmp_path: Path, text: str, line: str) -> None:
    bad = write_files(tmp_path / "bad", text, "create table third ();")
    code, _, err = finish(start(fresh.dsn, bad))
    good = write_files(tmp_path / "good", "create table second ();", "create table third ();")

    assert code == 78
    assert f"0002_part2.sql{' ' if line[0] == 'l' else ''}{line}" in err
    assert err.count("\n") == 1, "one line, for the end of a log"
    assert fresh.versions() == [1]
    assert not fresh.has_table("second")
    assert migrate(fresh.dsn, good) == ["0002_part2.sql", "0003_part3.sql"]


def test_what_the_image_ran_itself_is_not_run_again(fresh: Fresh, server: Server) -> None:
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as conn:
        conn.execute(sql.SQL("create database {}").format(sql.Identifier(fresh.name)))
    for file in read_init_folder(INIT):
        fresh.rows(file.text)

    assert migrate(fresh.dsn, INIT) == []


def test_with_nothing_to_do_it_is_fast_and_writes_nothing(fresh: Fresh, tmp_path: Path) -> None:
    job_types = JobType.load_all(ROOT / "services")
    write_secrets(tmp_path, job_types, **{role: fresh.server.password(role) for role in secret_folders(job_types)})
    tables = ("pg_authid", "pg_auth_members", "pg_database", "pg_db_role_setting", "job_type")
    written = " union all ".join(f"select max(xmin::text::bigint) from {table}" for table in tables)
    migrate(fresh.dsn, INIT, job_types, tmp_path)
    before = fresh.rows(written)
    started = time.monotonic()
    code, out, _ = finish(start(fresh.dsn, SERVICES_FOLDER=str(ROOT / "services"), SECRETS_FOLDER=str(tmp_path)))

    assert (code, fresh.rows(written)) == (0, before)
    assert time.monotonic() - started < 2
    assert out.count("\n") == 1
    assert "database is up to date" in out


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("delete from schema_migrations where version = 2", "is at version 3 but lacks 2"),
        (
            "update schema_migrations set name = 'theirs' where version = 2",
            "version 2 of the database is called 'theirs'",
        ),
    ],
    ids=["gap", "other program"],
)
def test_a_history_that_cannot_be_ours_is_refused(fresh: Fresh, tmp_path: Path, change: str, told: str) -> None:
    init = write_files(tmp_path, "create table second ();", "create table third ();")
    migrate(fresh.dsn, init)
    fresh.rows(change)

    with pytest.raises(MigrationError, match=told):
        migrate(fresh.dsn, init)


def test_a_newer_database_is_told_and_left_alone(fresh: Fresh, tmp_path: Path) -> None:
    """Going back to the images of the release before must work with the database as it is."""
    migrate(fresh.dsn, INIT)
    fresh.rows("insert into schema_migrations (version, name) values (%s, 'of a later release')", FILES + 1)
    code, out, _ = finish(start(fresh.dsn))

    assert code == 0
    assert "database is newer than these files" in out
    assert f'"database_version": {FILES + 1}' in out


def test_files_must_be_numbered_without_a_gap(tmp_path: Path) -> None:
    (tmp_path / "0001_a.sql").touch()
    (tmp_path / "0003_b.sql").touch()
    with pytest.raises(MigrationError, match="has the number 3, expected 2"):
        read_init_folder(tmp_path)
    (tmp_path / "0003_b.sql").rename(tmp_path / "roles.sql")
    with pytest.raises(MigrationError, match="not named like 0001_words"):
        read_init_folder(tmp_path)


def test_a_file_outside_a_transaction_runs_statement_by_statement(fresh: Fresh, tmp_path: Path) -> None:
    """What failed in the middle runs again from its first statement, and is recorded at its end."""
    text = """-- non-transactional
        drop index concurrently if exists second_n;
        create index concurrently second_n on second (n); -- a comment; with a semicolon
        {}
        insert into schema_migrations (version, name) values (3, 'part3');"""
    table = "create table second (n integer);"
    with pytest.raises(MigrationError, match="division by zero; what it did stays"):
        migrate(fresh.dsn, write_files(tmp_path / "bad", table, text.format("select 1 / 0;")))
    assert fresh.versions() == [1, 2]

    assert migrate(fresh.dsn, write_files(tmp_path / "good", table, text.format(""))) == ["0003_part3.sql"]
    assert fresh.has_table("second_n")


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("select 1; select 2", ["select 1", "select 2"]),
        ("select ';'; select E'\\';'; select \"a;b\"", ["select ';'", "select E'\\';'", 'select "a;b"']),
        ("do $$ begin; end; $$; do $a$ $$;$$ $a$;", ["do $$ begin; end; $$", "do $a$ $$;$$ $a$"]),
        (
            "-- one; two\nselect 1; /* a /* b; */ ; */ select 2;",
            ["-- one; two\nselect 1", "/* a /* b; */ ; */ select 2"],
        ),
        ("select a$b;c$d from t; ;\n-- end;", ["select a$b", "c$d from t"]),
    ],
)
def test_statements_are_cut_where_postgresql_would(text: str, statements: list[str]) -> None:
    assert list(split_statements(text)) == statements


def test_a_file_that_does_not_record_itself_is_told(fresh: Fresh, tmp_path: Path) -> None:
    init = write_files(tmp_path, "-- schema_migrations is forgotten\nselect 1;")
    with pytest.raises(MigrationError, match="schema_migrations has no version 2"):
        migrate(fresh.dsn, init)


@pytest.mark.slow
def test_a_file_gives_way_to_the_running_system(fresh: Fresh, tmp_path: Path) -> None:
    """It waits for a lock only so long that nobody queues up behind it, then tries again."""
    migrate(fresh.dsn, write_files(tmp_path, "create table second ();"))
    with psycopg.connect(fresh.dsn) as holder:
        holder.execute("lock table second in access share mode")
        process = start(
            fresh.dsn, write_files(tmp_path, "create table second ();", "alter table second add column n integer;")
        )
        assert process.stdout is not None
        assert "migration waits for a lock" in process.stdout.readline()
    code, out, err = finish(process)

    assert (code, err) == (0, "")
    assert "0003_part3.sql" in out


def test_rules_follow_the_file_and_what_people_set_stays(fresh: Fresh) -> None:
    """A pause and the payload's schema are not the file's to change."""
    migrate(fresh.dsn, INIT, [JOB_TYPE])
    fresh.rows("update job_type set paused_at = now(), pause_origin = 'operator', payload_schema = '{}'")
    migrate(fresh.dsn, INIT, [JobType(name="test_job", role="worker_test", lease_seconds=7, follow_ups=["other"])])

    row = "select lease_seconds, follow_ups, pause_origin, payload_schema from job_type"
    assert fresh.rows(row) == [(7, ["other"], "operator", {})]


def test_a_new_secret_replaces_the_password(own_postgres: EmbeddedPostgres, tmp_path: Path) -> None:
    dsn = own_postgres.dsn("jobbko")
    passwords = write_secrets(tmp_path, [JOB_TYPE])
    migrate(dsn, INIT, [JOB_TYPE], tmp_path)
    write_secrets(tmp_path, [JOB_TYPE], worker_test="another")
    migrate(dsn, INIT, [JOB_TYPE], tmp_path)

    assert can_log_in(dsn, "worker_test", "another")
    assert not can_log_in(dsn, "worker_test", passwords["worker_test"])
    assert can_log_in(dsn, "jobbko_operator", passwords["jobbko_operator"])


def test_no_password_reaches_the_server(own_postgres: EmbeddedPostgres, tmp_path: Path) -> None:
    """Even where the server logs every statement."""
    own_postgres.settings["log_statement"] = "all"
    own_postgres.restart()
    passwords = write_secrets(tmp_path, [JOB_TYPE])
    migrate(own_postgres.dsn("jobbko"), INIT, [JOB_TYPE], tmp_path)
    written = own_postgres.log_file.read_text()

    assert written.count("SCRAM-SHA-256$") == len(passwords)
    assert not any(password in written for password in passwords.values())


def test_a_verifier_tells_its_own_password_from_others() -> None:
    """The pair of RFC 7677, in the form that PostgreSQL keeps."""
    verifier = (
        "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:"
        "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
    )

    assert verifies("pencil", verifier)
    assert not verifies("pen", verifier)
    assert not verifies("pencil", "md5aa5f9e7e8b2b53d5b8f4c3d2e1f0a9b8")
    assert not verifies("pencil", None)


def test_only_our_roles_may_connect(fresh: Fresh) -> None:
    migrate(fresh.dsn, INIT, [JOB_TYPE])
    rights = """select has_database_privilege(role, current_database(), 'connect'),
                       has_database_privilege(role, current_database(), 'temporary')
                  from (values (%s)) as asked (role)"""

    assert fresh.rows(rights, "public") == [(False, False)]
    assert fresh.rows(rights, "worker_test") == [(True, False)]
    assert fresh.rows(rights, "jobbko_plain") == [(True, False)]


def test_limits_are_a_net_that_an_operator_can_change(fresh: Fresh) -> None:
    migrate(fresh.dsn, INIT, [JOB_TYPE])
    config = "select rolconfig from pg_roles where rolname = 'worker_test'"
    fresh.rows("alter role worker_test set statement_timeout = '3min'")
    migrate(fresh.dsn, INIT, [JOB_TYPE])
    changed = fresh.rows(config)
    fresh.rows("alter role worker_test reset statement_timeout")
    migrate(fresh.dsn, INIT, [JOB_TYPE])

    assert "statement_timeout=3min" in str(changed)
    assert "idle_in_transaction_session_timeout=5min" in str(changed)
    assert "statement_timeout=10min" in str(fresh.rows(config))


def test_a_job_type_cannot_take_a_role_that_is_not_a_workers(fresh: Fresh) -> None:
    with pytest.raises(MigrationError, match="names the role 'jobbko_operator'"):
        migrate(fresh.dsn, INIT, [JobType(name="test_job", role="jobbko_operator")])


def test_a_missing_secret_is_named(fresh: Fresh, tmp_path: Path) -> None:
    write_secrets(tmp_path, [])
    with pytest.raises(MigrationError, match=f"worker_test: {tmp_path}/worker_test/password: No such file"):
        migrate(fresh.dsn, INIT, [JOB_TYPE], tmp_path)
    (tmp_path / "worker_test").mkdir()
    (tmp_path / "worker_test" / "password").touch()
    with pytest.raises(MigrationError, match="password is empty"):
        migrate(fresh.dsn, INIT, [JOB_TYPE], tmp_path)


@pytest.mark.parametrize(
    ("settings", "code", "told"),
    [
        (
            {"DATABASE_PASSWORD": "lost"},
            69,
            "the volume `secrets` was lost or made anew while the volume `pgdata` was kept",
        ),
        (
            {"DATABASE_URL": "postgresql://u:p@127.0.0.1:1/x", "MIGRATE_WAIT_SECONDS": "0"},
            69,
            "no database at 127.0.0.1:1",
        ),
        ({"DATABASE_URL": ""}, 78, "neither MIGRATE_DATABASE_URL nor DATABASE_URL is set"),
        ({"DATABASE_URL": "host"}, 78, "the database's address cannot be read"),
        ({"INIT_FOLDER": "/nowhere"}, 78, "no SQL file in /nowhere"),
    ],
    ids=["password", "unreachable", "unset", "unreadable", "folder"],
)
def test_what_is_wrong_stands_in_one_line(fresh: Fresh, settings: Mapping[str, str], code: int, told: str) -> None:
    started = time.monotonic()
    got, _, err = finish(start(fresh.dsn, **{"LOG_LEVEL": "error"} | settings))

    assert (got, err.count("migrate: ")) == (code, 1)
    assert told in err
    assert time.monotonic() - started < 5


def test_a_login_that_is_no_superuser_is_told(fresh: Fresh) -> None:
    code, _, err = finish(start(fresh.server.dsn(fresh.name, "jobbko_operator")))

    assert code == 69
    assert "jobbko_operator is no superuser" in err


def test_it_waits_for_a_database_that_is_starting(own_postgres: EmbeddedPostgres) -> None:
    own_postgres.stop()
    process = start(own_postgres.dsn("jobbko"))
    assert process.stdout is not None
    assert "waiting for the database" in process.stdout.readline()
    own_postgres.start()
    code, out, _ = finish(process)

    assert code == 0
    assert out.count("migration applied") == FILES


def test_the_superusers_own_address_goes_first() -> None:
    settings = MigrateSettings(superuser_url="host=a", url="host=b", password="c")
    assert settings.dsn == "host=a password=c"
    with pytest.raises(SettingsError, match="neither"):
        _ = MigrateSettings().dsn


def test_it_ends_when_asked_to(own_postgres: EmbeddedPostgres) -> None:
    """docker stop must not take its whole grace."""
    own_postgres.stop()
    process = start(own_postgres.dsn("jobbko"))
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)

    assert finish(process)[0] == -signal.SIGTERM
