"""Every SQL statement of README.md and docs/, as it is written, by the role that it is for."""

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.databases import Database
from tests.docs_commands import Statement, all_statements

# Of a database of somebody else's.
ELSEWHERE = ("update progress set",)
STATEMENTS = [one for one in all_statements() if not one.text.startswith(ELSEWHERE)]


@pytest.mark.parametrize("statement", STATEMENTS, ids=str)
def test_who_it_is_for_may_and_it_works(database: Database, statement: Statement) -> None:
    done = database.enqueue("whisper_transcribe", {"path": "a.mp3"}, status="completed", result=Jsonb({"text": "Hei"}))
    role = "plain" if statement.text.lower().startswith("insert") else "operator"
    with psycopg.connect(database.dsn(role)) as conn:
        conn.execute(statement.text.replace("'…'", f"'{done}'").encode())


def test_statements_are_found() -> None:
    assert len(STATEMENTS) > 8
