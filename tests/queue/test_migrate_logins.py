"""`migrate` and who may log in: roles, passwords, limits, the rules of job types; and what its process says."""

import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import psycopg
import pytest

from demo.embedded_postgres import EmbeddedPostgres
from sidelinja_jobs.errors import SettingsError
from sidelinja_jobs.init_files import MigrationError
from sidelinja_jobs.job_type import JobType
from sidelinja_jobs.logins import verifies
from sidelinja_jobs.migrate import MigrateSettings, migrate
from tests.databases import Server
from tests.queue.migrate_support import (
    FILES,
    INIT,
    JOB_TYPE,
    Fresh,
    can_log_in,
    each_fresh,
    finish,
    start,
    write_secrets,
)


@pytest.fixture
def fresh(server: Server) -> Iterator[Fresh]:
    yield from each_fresh(server)


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


def test_a_password_that_a_login_gave_itself_does_not_stay(own_postgres: EmbeddedPostgres, tmp_path: Path) -> None:
    """PostgreSQL lets everyone change their own."""
    dsn = own_postgres.dsn("jobbko")
    passwords = write_secrets(tmp_path, [JOB_TYPE])
    migrate(dsn, INIT, [JOB_TYPE], tmp_path)
    with psycopg.connect(dsn, user="worker_test", password=passwords["worker_test"], autocommit=True) as conn:
        conn.execute("alter role current_user password 'another'")
    migrate(dsn, INIT, [JOB_TYPE], tmp_path)

    assert can_log_in(dsn, "worker_test", passwords["worker_test"])


def test_logins_are_kept_out_of_the_databases_that_every_server_has(
    own_postgres: EmbeddedPostgres, tmp_path: Path
) -> None:
    """Where they could leave temporary tables. Once others live on that server, it is not ours to close."""
    passwords = write_secrets(tmp_path, [JOB_TYPE])
    migrate(own_postgres.dsn("jobbko"), INIT, [JOB_TYPE], tmp_path)
    for name in ("postgres", "template1"):
        with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
            psycopg.connect(own_postgres.dsn(name), user="worker_test", password=passwords["worker_test"])

    with psycopg.connect(own_postgres.dsn("postgres"), autocommit=True) as conn:
        conn.execute("create database of_others")
        conn.execute("grant connect on database postgres to public")
    migrate(own_postgres.dsn("jobbko"), INIT, [JOB_TYPE], tmp_path)
    assert can_log_in(own_postgres.dsn("postgres"), "worker_test", passwords["worker_test"])


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


def test_a_rule_that_the_database_refuses_is_told_with_its_type(fresh: Fresh) -> None:
    with pytest.raises(
        MigrationError, match=r"the rules of test_job in its job_type.toml were refused: .*lease_seconds"
    ):
        migrate(fresh.dsn, INIT, [JobType(name="test_job", role="worker_test", lease_seconds=0)])


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
    assert time.monotonic() - started < 30, "it waits a minute for a database that may come"


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
