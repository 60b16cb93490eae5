"""Fixtures that several files share; admin_site.py, whisper_worker.py and asking_support.py make them."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.databases import Database, Server
from tests.worker_processes import WorkerProcesses

if TYPE_CHECKING:
    from tests.openrouter_standin import StandIn
    from tests.services.admin_site import AdminSite
    from tests.services.asking_support import Asking
    from tests.services.whisper_worker import Whisper


@pytest.fixture
def whisper(database: Database, worker_process: WorkerProcesses, tmp_path: Path, samples: Path) -> "Whisper":
    """A media folder, on which workers can be started."""
    from tests.services.whisper_worker import Whisper  # what only its tests need

    return Whisper(database, worker_process, tmp_path / "media", samples)


@pytest.fixture
def asking(database: Database, standin: "StandIn", monkeypatch: pytest.MonkeyPatch) -> "Iterator[Asking]":
    """A model to ask for a job, on the stand-in of OpenRouter."""
    from tests.services.asking_support import each_asking  # what only its tests need

    yield from each_asking(database, standin, monkeypatch)


@pytest.fixture
def admin_site(database: Database) -> "Iterator[AdminSite]":
    """A running admin view, with clients that are logged in."""
    from tests.services.admin_site import admin_site_with  # what only its tests need

    with admin_site_with(database) as site:
        yield site


@pytest.fixture(scope="module")
def shared_admin_site(server: Server) -> "Iterator[AdminSite]":
    """One for all tests of a file: for those that leave no trace."""
    from tests.services.admin_site import admin_site_with

    database = server.create_database()
    try:
        with admin_site_with(database) as site:
            yield site
    finally:
        database.close()
        server.drop_database(database.name)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's Chromium. Not for the session: it keeps an event loop running, beside which no other can."""
    from tests.services.admin_site import running_browser

    with running_browser() as started:
        yield started


@pytest.fixture
def browser_page(browser: Any, admin_site: "AdminSite") -> Iterator[Any]:
    """A page that is logged in as the operator; its policy must have refused nothing."""
    from tests.services.admin_site import logged_in_page

    with logged_in_page(browser, admin_site) as page:
        yield page
