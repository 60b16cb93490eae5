"""Fixtures of the tests on the statistics' runs."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.databases import Database

if TYPE_CHECKING:
    from tests.queue.stats_support import Stats


@pytest.fixture
def stats(database: Database, tmp_path: Path) -> "Stats":
    """A database with one source of logs, and runs of the handler."""
    from tests.queue.stats_support import Stats  # what only its tests need

    return Stats(database, tmp_path)
