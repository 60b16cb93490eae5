"""Run in a container, as text given to its own Python: says what can be done from there. See test_stack_roles.py.

Standard input: {logins: {role: password or null for the container's own secret}, statements: [...], databases: [...],
addresses: [[host, port], ...], is_kept: false = each statement is rolled back}.
Standard output: {role: {statements: [[statement, SQLSTATE or null, message or rows], ...], databases: [error, ...]},
addresses: [error, ...]}; an error is empty where there is none.
"""

import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

import psycopg


def tried(conn: Any, statement: str, is_kept: bool) -> list[str | None]:
    try:
        with conn.transaction(force_rollback=not is_kept):
            cursor = conn.execute(statement)
            return [statement, None, str(cursor.fetchall() if cursor.description else "")]
    except psycopg.Error as error:
        return [statement, error.sqlstate, str(error)]


def entered(url: str, **login: str) -> str:
    try:
        psycopg.connect(url, **login).close()
    except psycopg.OperationalError as error:
        return str(error)
    return ""


def reached(host: str, port: int) -> str:
    try:
        socket.create_connection((host, port), timeout=5).close()
    except OSError as error:
        return str(error)
    return ""


def main() -> None:
    asked = json.load(sys.stdin)
    url = os.environ["DATABASE_URL"]
    told: dict[str, Any] = {"addresses": [reached(*address) for address in asked["addresses"]]}
    for role, given in asked["logins"].items():
        login = {"user": role, "password": given or Path("/run/secrets/password").read_text().strip()}
        with psycopg.connect(url, autocommit=True, prepare_threshold=None, **login) as conn:
            told[role] = {
                "statements": [tried(conn, statement, asked["is_kept"]) for statement in asked["statements"]],
                "databases": [entered(url, dbname=name, **login) for name in asked["databases"]],
            }
    print(json.dumps(told))


main()
