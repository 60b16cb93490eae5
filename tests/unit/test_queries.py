"""queries.sql files: named blocks, each statement as it stands."""

import re
from pathlib import Path

import pytest

from sidelinja_jobs.queries import load_queries
from tests.databases import ROOT, Database

PARAMETER = re.compile(r"%\((\w+)\)s")
FILES = sorted((ROOT / "shared").rglob("*.sql"))


def write(folder: Path, text: str) -> Path:
    file = folder / "queries.sql"
    file.write_text(text, encoding="utf-8")
    return file


def test_blocks_are_found_by_name(tmp_path: Path) -> None:
    file = write(tmp_path, "-- about the file\n\n-- name: first\nselect 'æ'\n\n-- name: second_one\nselect\n  2\n")

    assert load_queries(file) == {"first": "select 'æ'", "second_one": "select\n  2"}


def test_a_name_that_stands_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a name stands twice"):
        load_queries(write(tmp_path, "-- name: a\nselect 1\n-- name: a\nselect 2\n"))


def test_a_file_without_names_has_no_queries(tmp_path: Path) -> None:
    assert load_queries(write(tmp_path, "select 1")) == {}


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.sql"):
        load_queries(tmp_path / "nowhere.sql")


@pytest.mark.parametrize("file", FILES, ids=[file.relative_to(ROOT).as_posix() for file in FILES])
def test_every_block_of_the_project_is_one_statement(file: Path) -> None:
    queries = load_queries(file)

    assert queries
    for name, statement in queries.items():
        assert statement, name
        assert ";" not in statement.rstrip(";"), f"{name} holds several statements"


def test_the_queues_calls_fit_the_functions_in_the_database(database: Database) -> None:
    """Each is prepared: a function that is gone, or has other arguments, would show."""
    queries = load_queries(ROOT / "shared" / "sidelinja_jobs" / "queries.sql")
    conn = database.connect()
    calls = {name: statement for name, statement in queries.items() if not name.startswith("listen")}

    for name, statement in calls.items():
        parameters = list(dict.fromkeys(PARAMETER.findall(statement)))
        numbered = PARAMETER.sub(lambda found: f"${parameters.index(found[1]) + 1}", statement)  # noqa: B023
        conn.execute(f"prepare {name} as {numbered}")

    assert conn.execute("select count(*) from pg_prepared_statements where from_sql").fetchone() == (len(calls),)
