"""`migrate` and the files of db/init: from nothing, from half, from old to new, several at once, bad files."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from demo.embedded_postgres import EmbeddedPostgres
from sidelinja_jobs.init_files import MigrationError, read_init_folder, split_statements
from sidelinja_jobs.job_type import JobType
from sidelinja_jobs.logins import secret_folders
from sidelinja_jobs.migrate import migrate
from tests.databases import ROOT, Server
from tests.queue.migrate_support import (
    FILES,
    INIT,
    Fresh,
    can_log_in,
    each_fresh,
    finish,
    start,
    write_files,
    write_secrets,
)
from tests.waiting import wait_until


@pytest.fixture
def fresh(server: Server) -> Iterator[Fresh]:
    yield from each_fresh(server)


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


def test_the_maintenance_database_itself_can_be_ours(own_postgres: EmbeddedPostgres) -> None:
    """Its lock is not waited for by the run that holds it."""
    assert len(migrate(own_postgres.dsn("postgres"), INIT)) == FILES


def test_a_killed_migrate_leaves_nothing_of_its_file(fresh: Fresh, tmp_path: Path) -> None:
    """Killed in the second file: the server gives that up, and four started at once run it once."""
    slow = write_files(tmp_path / "slow", "create table half (); select pg_sleep(60); create table other_half ();")
    quick = write_files(tmp_path / "quick", "create table half (); create table other_half ();")
    process = start(fresh.dsn, slow)
    sleeping = """select exists (select from pg_stat_activity
                   where datname = current_database() and pid <> pg_backend_pid() and query ~ 'pg_sleep')"""
    wait_until(lambda: fresh.exists() and fresh.rows(sleeping) == [(True,)], what="the second file runs")
    process.kill()
    finish(process)
    ended = [finish(process) for process in [start(fresh.dsn, quick) for _ in range(4)]]

    assert [code for code, _, _ in ended] == [0] * 4
    assert "".join(out for _, out, _ in ended).count("migration applied") == 1
    assert fresh.versions() == [1, 2]
    assert fresh.has_table("other_half")


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


def test_with_nothing_to_do_it_writes_nothing(fresh: Fresh, tmp_path: Path) -> None:
    job_types = JobType.load_all(ROOT / "services")
    write_secrets(tmp_path, job_types, **{role: fresh.server.password(role) for role in secret_folders(job_types)})
    tables = ("pg_authid", "pg_auth_members", "pg_database", "pg_db_role_setting", "job_type")
    written = " union all ".join(f"select max(xmin::text::bigint) from {table}" for table in tables)
    migrate(fresh.dsn, INIT, job_types, tmp_path)
    before = fresh.rows(written)
    code, out, _ = finish(start(fresh.dsn, SERVICES_FOLDER=str(ROOT / "services"), SECRETS_FOLDER=str(tmp_path)))

    assert (code, fresh.rows(written)) == (0, before)
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


IMPATIENT = """
import sidelinja_jobs.migrate
import sidelinja_jobs.schema_history
sidelinja_jobs.schema_history.LOCK_TIMEOUT = "1s"  # five, as delivered
raise SystemExit(sidelinja_jobs.migrate.main())
"""


def test_a_file_gives_way_to_the_running_system(fresh: Fresh, tmp_path: Path) -> None:
    """It waits for a lock only so long that nobody queues up behind it, then tries again."""
    migrate(fresh.dsn, write_files(tmp_path, "create table second ();"))
    with psycopg.connect(fresh.dsn) as holder:
        holder.execute("lock table second in access share mode")
        files = write_files(tmp_path, "create table second ();", "alter table second add column n integer;")
        process = start(fresh.dsn, files, ["-c", IMPATIENT])
        assert process.stdout is not None
        assert "migration waits for a lock" in process.stdout.readline()
    code, out, err = finish(process)

    assert (code, err) == (0, "")
    assert "0003_part3.sql" in out
