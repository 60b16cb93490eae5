"""Every SQL statement of README.md and docs/, as it is written, by the role that it is for."""

import psycopg
from psycopg.types.json import Jsonb

from tests.databases import Database
from tests.docs_commands import all_statements

# Of a database of somebody else's.
ELSEWHERE = ("update progress set",)
STATEMENTS = [one for one in all_statements() if not one.text.startswith(ELSEWHERE)]


def test_who_it_is_for_may_and_it_works(database: Database) -> None:
    done = database.enqueue("whisper_transcribe", {"path": "a.mp3"}, status="completed", result=Jsonb({"text": "Hei"}))
    roles = {role: database.connect(role, autocommit=False) for role in ("plain", "operator")}
    wrong = []
    for statement in STATEMENTS:
        conn = roles["plain" if statement.text.lower().startswith("insert") else "operator"]
        try:
            conn.execute(statement.text.replace("'…'", f"'{done}'").encode())
        except psycopg.Error as error:
            wrong.append(f"{statement}\n  {str(error).strip()}")
        conn.rollback()

    assert len(STATEMENTS) > 8
    assert not wrong, "\n".join(wrong)
