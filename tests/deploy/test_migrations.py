"""The numbered files of db/init: each one transaction that first records itself; what was released is never edited."""

import hashlib
import re

import pytest

from sidelinja_jobs.init_files import InitFile, read_init_folder, split_statements
from tests.databases import ROOT
from tests.deploy.released import RELEASED, STATE_MARK, frozen_files

INIT = ROOT / "db" / "init"
FILES = read_init_folder(INIT)
EVERY = pytest.mark.parametrize("file", FILES, ids=lambda file: file.path.name)


def test_released_files_are_as_they_were_released() -> None:
    """A database that has run a file never runs it again: what must change goes into a file with the next number."""
    released = frozen_files()
    found = {name: hashlib.sha256((ROOT / name).read_bytes()).hexdigest() for name in released}

    assert found == released
    assert list(released) == [f"db/init/{file.path.name}" for file in FILES[: len(released)]]
    assert RELEASED.read_text().startswith(STATE_MARK)


@EVERY
def test_file_is_one_transaction_that_first_records_itself(file: InitFile) -> None:
    statements = [re.sub(r"--.*", "", statement).strip() for statement in split_statements(file.text)]
    record = f"insert into schema_migrations (version, name) values ({file.version}, '{file.name}')"

    if not file.is_transactional:
        assert statements[-1] == record
        return
    assert (statements[0], statements[-1]) == ("begin", "commit")
    assert "commit" not in statements[1:-1]
    assert record in statements[1:3], "first of all, or after the table that the very first file makes"


@EVERY
def test_file_makes_nothing_as_superuser(file: InitFile) -> None:
    """A function of a superuser runs as one; the first file makes the owner of all others."""
    if file.version > 1:
        assert "set local role jobbko_owner;" in file.text
        assert "reset role" not in file.text
