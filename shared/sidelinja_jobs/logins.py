"""Gives every role its login: passwords, the workers' own roles, who may connect, and time limits as a net.

Called by `migrate` as the database's superuser, under its lock. A password never leaves this process: the
server gets a SCRAM verifier, so that no server log can hold more. What is as it should be is left alone.
"""

import base64
import hashlib
import hmac
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import psycopg
from psycopg import sql

from sidelinja_jobs.init_files import MigrationError
from sidelinja_jobs.job_type import JobType
from sidelinja_jobs.log import get_logger
from sidelinja_jobs.queries import load_queries

log = get_logger()
_SQL = load_queries(Path(__file__).with_name("migrate.sql"))

WORKERS = "jobbko_worker"  # the group that may execute the worker functions
WORKER_PREFIX = "worker_"

# Role -> folder of its secret. A worker's folder is called like its role.
FOLDERS = {
    "jobbko_operator": "operator",
    "jobbko_admin": "admin",
    "jobbko_delivery": "delivery",
    "jobbko_producer": "producer",
    "jobbko_plain": "plain",
    "jobbko_metrics": "metrics",
    "jobbko_reader": "reader",
}
PASSWORD_FILE = "password"  # noqa: S105 - the name of the file

# Statement, lock and idle-in-transaction time: a net under programs that forget theirs. Any session may set
# its own, and an operator's ALTER ROLE … SET stays. jobbko_plain may sit in a transaction while it works:
# foreign programs do.
LIMIT_NAMES = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
LIMITS = {
    "jobbko_operator": ("5min", "30s", "5min"),
    "jobbko_admin": ("15s", "5s", "1min"),
    "jobbko_delivery": ("1min", "5s", "1min"),
    "jobbko_producer": ("1min", "10s", "5min"),
    "jobbko_plain": ("5min", "30s", "1h"),
    "jobbko_metrics": ("15s", "5s", "15s"),
    "jobbko_reader": ("1min", "5s", "5min"),
}
WORKER_LIMITS = ("10min", "30s", "5min")


def secret_folders(job_types: Iterable[JobType]) -> dict[str, str]:
    """Every role that logs in, with the name of the folder that holds its password."""
    return FOLDERS | {role: role for role in worker_roles(job_types)}


def worker_roles(job_types: Iterable[JobType]) -> list[str]:
    """The login roles named by the job types, each once."""
    roles = sorted({job_type.role for job_type in job_types})
    for role in roles:
        if not role.startswith(WORKER_PREFIX):
            raise MigrationError(
                f"job_type.toml names the role {role!r}, expected a name that starts with {WORKER_PREFIX!r}: "
                "other roles have other rights. Next: correct `role` in that file"
            )
    return roles


def read_passwords(secrets_folder: Path, job_types: Iterable[JobType]) -> dict[str, str]:
    """Password of each role that logs in.

    Raises:
        MigrationError: the secret of a role is missing or empty.
    """
    passwords = {}
    for role, folder in secret_folders(job_types).items():
        path = secrets_folder / folder / PASSWORD_FILE
        try:
            passwords[role] = path.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise MigrationError(
                f"no password for the role {role}: {path}: {error.strerror}. Next: let the service `secrets` "
                "run (docker compose up does), or correct SECRETS_FOLDER"
            ) from error
        if not passwords[role]:
            raise MigrationError(
                f"no password for the role {role}: {path} is empty. Next: delete it, and let `secrets` run"
            )
    return passwords


def set_up_logins(conn: psycopg.Connection, job_types: Sequence[JobType], passwords: Mapping[str, str]) -> None:
    """Make the workers' roles, set limits and passwords, and let in only those who belong here."""
    workers = worker_roles(job_types)
    for role in workers:
        _ensure_worker_role(conn, role)
    for role, limits in (LIMITS | dict.fromkeys(workers, WORKER_LIMITS)).items():
        _ensure_limits(conn, role, limits)
    for role, password in passwords.items():
        _ensure_password(conn, role, password)
    restrict_database(conn)


def restrict_database(conn: psycopg.Connection) -> None:
    """Take from PUBLIC what every new or cloned database gives it, and let our roles connect.

    A login that has become another's shall not be able to leave anything: no temporary table, in no database, and no
    large object.
    """
    open_databases = [name for (name,) in conn.execute(_SQL["other_databases_open_to_all"])]
    if conn.execute(_SQL["is_open_to_all"]).fetchone() == (True,):
        open_databases.append(conn.info.dbname)
    for name in open_databases:
        conn.execute(sql.SQL("revoke connect, temporary on database {} from public").format(sql.Identifier(name)))
    if conn.execute(_SQL["large_objects_are_open_to_all"]).fetchone() == (True,):
        conn.execute(_SQL["close_large_objects"])
    shut_out = conn.execute(_SQL["roles_shut_out"], {"roles": [WORKERS, *FOLDERS]}).fetchall()
    if shut_out:
        roles = sql.SQL(", ").join(sql.Identifier(role) for (role,) in shut_out)
        database = sql.Identifier(conn.info.dbname)
        conn.execute(sql.SQL("grant connect on database {} to {}").format(database, roles))


def _ensure_worker_role(conn: psycopg.Connection, role: str) -> None:
    found = conn.execute(_SQL["role_is_member"], {"role": role, "group": WORKERS}).fetchone()
    if found is None:
        conn.execute(sql.SQL("create role {} login").format(sql.Identifier(role)))
        log.info("login role created", role=role)
    if found != (True,):
        conn.execute(sql.SQL("grant {} to {}").format(sql.Identifier(WORKERS), sql.Identifier(role)))


def _ensure_limits(conn: psycopg.Connection, role: str, limits: Sequence[str]) -> None:
    """Set each limit that nobody has set for this role."""
    found = conn.execute(_SQL["role_settings"], {"role": role}).fetchone()
    present = {entry.partition("=")[0] for entry in (found[0] if found else [])}
    statement = sql.SQL("alter role {} set {} = {}")
    for name, value in zip(LIMIT_NAMES, limits, strict=True):
        if name not in present:
            conn.execute(statement.format(sql.Identifier(role), sql.Identifier(name), sql.Literal(value)))


def _ensure_password(conn: psycopg.Connection, role: str, password: str) -> None:
    found = conn.execute(_SQL["role_verifier"], {"role": role}).fetchone()
    if found is None:
        raise MigrationError(f"the role {role} does not exist. Next: see which file of db/init should make it")
    if verifies(password, found[0]):
        return
    verifier = conn.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256").decode()
    conn.execute(sql.SQL("alter role {} password {}").format(sql.Identifier(role), sql.Literal(verifier)))
    log.info("password set", role=role)


def verifies(password: str, verifier: str | None) -> bool:
    """Does this SCRAM verifier of the server belong to the password (RFC 5803)? No where it is unclear."""
    try:
        scheme, iterations_and_salt, keys = (verifier or "").split("$")
        iterations, salt = iterations_and_salt.split(":")
        stored_key = base64.b64decode(keys.split(":")[0])
        salted = hashlib.pbkdf2_hmac("sha256", password.encode(), base64.b64decode(salt), int(iterations))
    except ValueError:
        return False
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    return scheme == "SCRAM-SHA-256" and hmac.compare_digest(hashlib.sha256(client_key).digest(), stored_key)
