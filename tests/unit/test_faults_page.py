"""docs/faults.md: every case has its row, every test that a row names exists; and what rows say that no test runs."""

import ast
import re
from pathlib import Path

import pytest

from tests.databases import ROOT

# Cases of the study that are about a queue such as this one.
CASES = [
    1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 19, 20, 21, 22, 23, 24, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35,
    37, 38, 39, 40, 41, 42, 43, 44, 46, 47, 50, 51, 52, 53, 54, 55, 57, 58, 59, 61, 62, 63, 65, 67, 68, 69, 70, 71, 72,
]  # fmt: skip
PAGE = (ROOT / "docs" / "faults.md").read_text()
ROWS = re.findall(r"^\| (\d+) \| (.+?) \| (.+) \|$", PAGE, re.MULTILINE)
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
SQL = sorted((ROOT / "db" / "init").glob("*.sql"))
QUEUE = [*sorted((ROOT / "shared" / "sidelinja_jobs").glob("*.*")), *SQL]


def functions(file: Path) -> set[str]:
    return {node.name for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef)}


def code_of(file: Path) -> str:
    """A file without its comments and texts about things."""
    text = file.read_text()
    return re.sub(r"--[^\n]*|^comment on [^;]*;", "", text, flags=re.MULTILINE) if file.suffix == ".sql" else text


def test_every_case_has_one_row() -> None:
    assert [int(number) for number, _, _ in ROWS] == CASES


@pytest.mark.parametrize(("number", "case", "held_by"), ROWS, ids=[f"case-{number}" for number, _, _ in ROWS])
def test_the_tests_of_a_case_exist_or_a_reason_stands_there(number: str, case: str, held_by: str) -> None:
    named = TEST.findall(held_by)

    missing = [f"{file}::{name}" for file, name in named if name not in functions(ROOT / file)]

    assert missing == []
    assert named or len(held_by) > 60, f"case {number} ({case}) names neither a test nor a reason"
    assert held_by.count("::") == len(named), f"case {number} names a test that cannot be read: {held_by}"


def test_no_run_hangs_on_the_state_of_a_session() -> None:
    """Locks and settings of a session outlive their transaction, and behind a pooler they are somebody else's. A
    forwarder of events and migrate hold such a lock on purpose, on connections of their own."""
    on_purpose = {"0019_event_delivery.sql", "migrate.sql", "migrate.py"}
    session_lock = re.compile(r"pg_(try_)?advisory_lock(_shared)?\s*\(")
    session_setting = re.compile(
        r"set_config\([^)]*,\s*false\s*\)|\bset\s+session\b|[;\"']\s*set\s+(?!local\b)(?:\w+\s*=|\w+_\w+\s+to\b)",
        re.IGNORECASE,
    )

    locks = [file.name for file in QUEUE if file.is_file() and session_lock.search(code_of(file))]
    settings = [file.name for file in QUEUE if file.is_file() and session_setting.search(code_of(file))]

    assert set(locks) <= on_purpose
    assert settings == ["schema_history.py"]  # migrate's own


def test_nothing_asks_for_the_distinct_types_of_all_jobs() -> None:
    """A listing of that kind reads every row there ever was."""
    places = [*QUEUE, *sorted((ROOT / "shared").rglob("*.sql")), *sorted((ROOT / "services").rglob("*.sql"))]
    asking = re.compile(r"select\s+distinct\s+[\w.]*job_type\s+from\s+(public\.)?job_queue", re.IGNORECASE)

    assert [file.name for file in places if file.is_file() and asking.search(file.read_text(errors="replace"))] == []
