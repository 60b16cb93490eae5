"""Who may do what, proven by trying it through each login; and how the functions that lend rights are made."""

import secrets
from typing import Any
from uuid import UUID

import psycopg
import pytest

from sidelinja_jobs import enqueue, enqueue_many, queue
from sidelinja_jobs.errors import LeaseLostError, NotAllowedError
from sidelinja_jobs.logins import FOLDERS
from tests.databases import Database
from tests.queue.role_rights import (
    COLUMN,
    LIFTS,
    MAY,
    MAY_EXECUTE,
    OWN_FUNCTIONS,
    OWN_TABLES,
    STATEMENTS,
    TABLES,
    calls_with_nulls,
    is_past_the_check,
)
from tests.sessions import claim_one, refused, worker_session

ROLES = tuple(MAY)


def is_allowed(conn: Any, statement: str) -> bool:
    """Whether a statement gets past the check of rights, whatever else becomes of it; nothing of it stays."""
    try:
        with conn.transaction(force_rollback=True):
            conn.execute(statement)
    except psycopg.Error as error:
        return is_past_the_check(error.sqlstate, str(error))
    return True


def tables_of(conn: Any, statement: str) -> frozenset[str]:
    """The tables on which the role may do that."""
    return frozenset(table for table in TABLES if is_allowed(conn, statement.format(table=table, column=COLUMN[table])))


def test_the_lists_of_tables_and_of_roles_are_whole(database: Database) -> None:
    assert {table["name"] for table in database.rows(OWN_TABLES)} == set(TABLES)
    assert {f"jobbko_{role}" for role in ROLES if role != "worker_test"} == set(FOLDERS)
    assert set(MAY_EXECUTE) == set(ROLES)


def test_each_role_reads_and_writes_exactly_its_tables(database: Database) -> None:
    sessions = {role: database.connect(role) for role in ROLES}

    found = {role: tuple(tables_of(conn, statement) for statement in STATEMENTS) for role, conn in sessions.items()}

    assert found == MAY
    assert [role for role, conn in sessions.items() if tables_of(conn, "truncate {table}")] == []


def test_each_role_calls_exactly_its_functions(database: Database) -> None:
    calls = calls_with_nulls(database.rows(OWN_FUNCTIONS))

    found = {}
    for role in ROLES:
        conn = database.connect(role)
        found[role] = {name for name, call in calls.items() if is_allowed(conn, call)}

    assert found == MAY_EXECUTE


def test_every_function_belongs_to_the_owner_and_finds_its_names_where_nobody_else_can_put_any(
    database: Database,
) -> None:
    functions = database.rows(OWN_FUNCTIONS)

    assert len(functions) > 30
    for function in functions:
        assert function["owner"] == "jobbko_owner", function
        path = [setting for setting in (function["settings"] or "").split("; ") if setting.startswith("search_path=")]
        # A body that was read when the function was made has found its names already.
        if not function["is_bound"] or function["prosecdef"]:
            assert path == ["search_path=pg_catalog, public, pg_temp"], function


def test_nothing_is_open_to_public_but_the_version_of_the_schema(database: Database) -> None:
    functions = database.rows(
        """select proname from pg_proc, aclexplode(coalesce(proacl, acldefault('f', proowner))) as a
            where pronamespace = 'public'::regnamespace and a.grantee = 0"""
    )
    relations = database.rows(
        """select relname, a.privilege_type from pg_class, aclexplode(relacl) as a
            where relnamespace = 'public'::regnamespace and a.grantee = 0"""
    )

    assert functions == []
    assert relations == [{"relname": "schema_migrations", "privilege_type": "SELECT"}]


def test_everything_belongs_to_a_role_that_nobody_can_become(database: Database) -> None:
    owners = database.rows(
        """select relname, relowner::regrole::text as owner from pg_class
            where relnamespace = 'public'::regnamespace and relname !~ '^schema_migrations'"""
    )
    roles = database.rows(
        """select rolname from pg_roles where rolname ~ '^(jobbko|worker)_'
              and (rolsuper or rolcreaterole or rolcreatedb or rolbypassrls or rolreplication)"""
    )

    assert {owner["owner"] for owner in owners} == {"jobbko_owner"}
    assert roles == []
    assert not database.value("select rolcanlogin from pg_roles where rolname = 'jobbko_owner'")
    assert database.rows("select member from pg_auth_members where roleid = 'jobbko_owner'::regrole") == []


def test_no_role_makes_objects_or_lifts_itself(database: Database) -> None:
    for role in ROLES:
        conn = database.connect(role)
        for statement in LIFTS:
            with refused("42501"):
                conn.execute(statement)


# ---------------------------------------------------------------- workers


@pytest.fixture
def foreign_run(database: Database) -> Any:
    """A run of another worker's type, whose id and token have become known."""
    database.enqueue("foreign_job", {"secret": True})
    conn = worker_session(database, "worker_foreign", "foreign_job", "f1")
    run = claim_one(conn, "foreign_job", "f1")
    queue.write_checkpoint(conn, run, {"secret": True}, 1)
    return run


def test_a_worker_cannot_touch_anothers_run_even_with_its_token(database: Database, foreign_run: Any) -> None:
    conn = worker_session(database)
    before = database.job(foreign_run.id)

    for write in (
        lambda: queue.confirm(conn, foreign_run),
        lambda: queue.write_checkpoint(conn, foreign_run, {}, 2),
        lambda: queue.read_checkpoints(conn, foreign_run),
        lambda: queue.drop_checkpoints(conn, foreign_run),
        lambda: queue.complete(conn, foreign_run, {}),
        lambda: queue.fail(conn, foreign_run, "X", "x"),
        lambda: queue.postpone(conn, foreign_run, None, "x"),
        lambda: queue.release(conn, foreign_run, "x"),
    ):
        with pytest.raises(LeaseLostError):
            write()
    assert queue.extend(conn, [foreign_run], [(0.9, "mine")]) == {}
    assert queue.run_outcome(conn, foreign_run) == "lost"

    assert database.job(foreign_run.id) == before
    assert database.value("select count(*) from job_checkpoint") == 1


def test_a_worker_cannot_pose_as_another(database: Database, foreign_run: Any) -> None:
    conn = database.connect("worker_test")
    conn.execute("select register_worker('f1', 'test_job', 'x', 'x', 1)")
    conn.execute("select set_worker_idle('f1')")
    conn.execute("select unregister_worker('f1')")

    assert conn.execute("select beat_worker('f1')").fetchone() == (False,)
    worker = database.row("select * from worker")
    assert (worker["job_type"], worker["host"], worker["idle"]) == ("foreign_job", "host", False)
    with refused("42501"):
        conn.execute("select register_worker('w1', 'foreign_job', 'x', 'x', 1)")


def test_a_worker_enqueues_its_own_types_and_their_follow_ups_only(database: Database) -> None:
    database.add_job_type("first_job", "worker_first", follow_ups=["second_job"])
    conn = database.connect("worker_first")

    enqueue(conn, "first_job", {})
    enqueue_many(conn, "second_job", [{}, {}])
    for attempt in (lambda: enqueue(conn, "test_job", {}), lambda: enqueue_many(conn, "test_job", [{}])):
        with pytest.raises(NotAllowedError, match="add the type to follow_ups"):
            attempt()
    with refused("42501"):
        conn.execute("insert into job_queue (job_type, payload) values ('first_job', '{}')")

    assert database.value("select count(*) from job_queue") == 3


def test_the_producer_writes_five_columns_and_reads_ids(database: Database) -> None:
    conn = database.connect("producer")
    for column in ("status", "result", "attempts", "worker_id", "lease_token", "unique_key", "id"):
        with refused("42501"):
            conn.execute(f"insert into job_queue (job_type, payload, {column}) values ('test_job', '{{}}', default)")
    for column in ("payload", "status", "result"):
        with refused("42501"):
            conn.execute(f"select {column} from job_queue")

    job_id: UUID = conn.execute("insert into job_queue (job_type, payload) values ('t', '{}') returning id").fetchone()[
        0
    ]
    assert conn.execute("select id from job_queue").fetchall() == [(job_id,)]


def test_strangers_cannot_connect(database: Database) -> None:
    stranger = f"stranger_{secrets.token_hex(4)}"
    database.rows(f"create role {stranger} login password 'x'")
    try:
        with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
            psycopg.connect(database.dsn(), user=stranger, password="x")
    finally:
        database.rows(f"drop role {stranger}")
