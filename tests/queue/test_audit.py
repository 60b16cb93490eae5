"""audit_entry: what people do to jobs, types and accounts, by whichever program, in the transaction that does it."""

from typing import Any

import pytest

from tests.databases import Database
from tests.sessions import refused


def entries(database: Database) -> list[dict[str, Any]]:
    return database.rows("select actor, action, job_id, subject, detail from audit_entry order by id")


def acting(database: Database, role: str, person: str | None = None) -> Any:
    """A session of that login, in which a person stands behind it."""
    conn = database.connect(role)
    if person:
        conn.execute("select set_config('jobbko.actor', %s, false)", (person,))
    return conn


@pytest.mark.parametrize("role", ["operator", "admin"])
def test_what_a_person_does_is_written_down_with_their_name(database: Database, role: str) -> None:
    waiting, running = database.enqueue(), database.enqueue(status="running", worker_id="w")
    failed = database.enqueue(status="error", error_class="crash", attempts=3)
    conn = acting(database, role, "Kari")
    conn.execute("select cancel_job(%s, 'too old')", (waiting,))
    conn.execute("select cancel_job(%s, 'too slow')", (running,))
    conn.execute("select retry_job(%s)", (failed,))
    conn.execute("select retry_job(%s)", (failed,))
    conn.execute("select pause_job_type('test_job', null, 'disk full')")
    conn.execute("select resume_job_type('test_job')")
    conn.execute("select resume_job_type('test_job')")

    found = entries(database)
    assert {entry["actor"] for entry in found} == {"Kari"}
    assert [(entry["action"], entry["job_id"], entry["subject"], entry["detail"]) for entry in found] == [
        ("job.cancel", waiting, None, {"outcome": "cancelled", "reason": "too old"}),
        ("job.cancel", running, None, {"outcome": "requested", "reason": "too slow"}),
        ("job.retry", failed, None, {"outcome": "retried", "attempts": 3, "error_class": "crash"}),
        ("job.retry", failed, None, {"outcome": "pulled_forward"}),
        ("job_type.pause", None, "test_job", {"reason": "disk full"}),
        ("job_type.resume", None, "test_job", {}),
    ]


def test_what_did_not_happen_is_not_written_down(database: Database) -> None:
    done = database.enqueue(status="completed")
    conn = acting(database, "operator", "Kari")
    with refused("JQ002"):
        conn.execute("select cancel_job(%s)", (done,))
    with conn.transaction(force_rollback=True):
        conn.execute("select pause_job_type('test_job')")

    assert entries(database) == []


def test_a_worker_that_pauses_its_type_is_no_person(database: Database) -> None:
    conn = acting(database, "worker_test", "Kari")
    conn.execute("select pause_job_type('test_job', now() + interval '1 hour', 'no model')")

    assert entries(database) == []


def test_an_account_is_made_changed_and_removed_without_its_secret_in_the_trail(database: Database) -> None:
    hashed = "scrypt$4$8$1$c2FsdA==$aGFzaA=="
    conn = acting(database, "admin", "Kari")
    made = conn.execute("select put_account('ola', 'viewer', %s)", (hashed,)).fetchone()
    changed = conn.execute("select put_account('ola', 'operator')").fetchone()
    kept = database.row("select role, password_hash, disabled from admin_account")
    conn.execute("select put_account('ola', p_disabled => true)")
    conn.execute("select drop_account('ola')")

    assert (made, changed) == (("created",), ("changed",))
    assert kept == {"role": "operator", "password_hash": hashed, "disabled": False}
    assert [
        (entry["action"], entry["detail"].get("role"), entry["detail"].get("password")) for entry in entries(database)
    ] == [
        ("account.create", "viewer", True),
        ("account.change", "operator", False),
        ("account.change", "operator", False),
        ("account.delete", None, None),
    ]
    assert "aGFzaA" not in str(entries(database))


REFUSED = (
    ("select put_account('nobody')", "JQ004"),
    ("select put_account('a b', 'viewer')", "23514"),
    ("select put_account('', 'viewer')", "23514"),
    ("select put_account('a', 'root')", "23514"),
    ("select put_account('a', 'viewer', 'plain text')", "23514"),
    ("select drop_account('nobody')", "JQ004"),
    ("select open_session('nobody', sha256('x'), '1 hour', '1 hour')", "JQ004"),
    ("select password_hash from admin_account", "42501"),
    ("select * from admin_session", "42501"),
    ("insert into audit_entry (actor, action) values ('x', 'y')", "42501"),
    ("delete from audit_entry", "42501"),
)


def test_what_no_account_and_no_trail_may_be_is_refused(database: Database) -> None:
    conn = acting(database, "admin")
    for statement, sqlstate in REFUSED:
        with refused(sqlstate):
            conn.execute(statement)


def test_ended_sessions_are_forgotten_at_the_next_login(database: Database) -> None:
    conn = acting(database, "admin")
    conn.execute("select put_account('ola', 'viewer')")
    for token in ("over", "idle", "good"):
        conn.execute("select open_session('ola', sha256(%s), '1 hour', '30 minutes')", (token.encode(),))
    database.rows("update admin_session set expires_at = now() where token_hash = sha256('over')")
    database.rows("update admin_session set seen_at = now() - interval '31 minutes' where token_hash = sha256('idle')")
    conn.execute("select open_session('ola', sha256('new'), '1 hour', '30 minutes')")

    assert database.rows("select token_hash in (sha256('good'), sha256('new')) as kept from admin_session") == [
        {"kept": True}, {"kept": True},
    ]  # fmt: skip
