"""Fixtures: a PostgreSQL server for the session, a fresh database for each test, real worker processes.

JOBBKO_TEST_DATABASE_URL, a superuser's DSN, runs the same tests on another server; JOBBKO_DEMAND_CONTAINERS=1
makes tests that need a Docker engine fail where none answers, in place of being skipped.
"""

import functools
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from demo.embedded_postgres import EmbeddedPostgres
from demo.environment import is_own
from tests.databases import ROOT, Database, Server, each_database, embedded_server
from tests.worker_processes import WorkerProcesses

if TYPE_CHECKING:
    from tests.command_line import Jobs
    from tests.openrouter_standin import StandIn

KEPT = ("JOBBKO_TEST_DATABASE_URL", "JOBBKO_DEMAND_CONTAINERS", "JOBBKO_LOCAL_LLM")

# A shell that runs this in its background has Ctrl-C ignored, which the processes of the tests would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

for name in list(os.environ):
    if is_own(name) and name not in KEPT:
        del os.environ[name]


@functools.cache
def engine_trouble() -> str | None:
    """Why no container can be run here; None where it can."""
    if not shutil.which("docker"):
        return "there is no docker on the PATH"
    asked = subprocess.run(
        ["docker", "info", "--format", "{{.ServerVersion}}"], capture_output=True, text=True, timeout=30
    )
    return None if asked.returncode == 0 else f"no Docker engine answers: {asked.stderr.strip()[:200]}"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--on-given-server", action="store_true", help="only tests of JOBBKO_TEST_DATABASE_URL's server")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--on-given-server"):
        others = [item for item in items if "server" not in getattr(item, "fixturenames", ())]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in set(others)]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """A file stays in one process, and so do the files that share the running stack."""
    from xdist.scheduler import LoadFileScheduling

    class StackTogether(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            return "the stack" if file.startswith("tests/e2e/test_stack") else file

    return StackTogether(config, log)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("containers") and (trouble := engine_trouble()):
        if os.environ.get("JOBBKO_DEMAND_CONTAINERS") == "1":
            pytest.fail(f"containers are demanded, and {trouble}", pytrace=False)
        pytest.skip(trouble)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """The session's server: an embedded PostgreSQL, or the one that JOBBKO_TEST_DATABASE_URL names."""
    given = os.environ.get("JOBBKO_TEST_DATABASE_URL")
    if given:
        yield from _prepared(Server(given))
        return
    with embedded_server() as postgres:
        yield from _prepared(Server(postgres.dsn()))


@pytest.fixture
def database(server: Server) -> Iterator[Database]:
    """A fresh database, with the job types test_job and other_job of the role worker_test."""
    yield from each_database(server)


@pytest.fixture
def own_postgres() -> Iterator[EmbeddedPostgres]:
    """A server of this test alone, to restart, kill or freeze."""
    with embedded_server() as postgres:
        yield postgres


@pytest.fixture
def own_database(own_postgres: EmbeddedPostgres) -> Iterator[Database]:
    """A database on `own_postgres`."""
    own_server = Server(own_postgres.dsn())
    own_server.prepare()
    database = own_server.create_database()
    yield database
    database.close()


@pytest.fixture
def worker_process(tmp_path: Path) -> Iterator[WorkerProcesses]:
    """Starts worker processes, which end with the test."""
    workers = WorkerProcesses(tmp_path)
    yield workers
    workers.end_all()


@pytest.fixture
def jobs(database: Database, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> "Jobs":
    """The command line `jobs` on the test's database, as its operator."""
    from tests.command_line import Jobs  # with all that it imports, which only its tests pay

    return Jobs(database, capsys, monkeypatch)


@pytest.fixture
def standin() -> "Iterator[StandIn]":
    """A server on loopback that behaves as OpenRouter, with a script of faults and an account of its own."""
    from tests.openrouter_standin import StandIn  # takes a second, which only its tests pay

    with StandIn() as running:
        yield running


@pytest.fixture(scope="session")
def samples() -> Path:
    """The folder of sample recordings and logs that lies beside the project."""
    folder = ROOT.parent / "shared" / "samples"
    if not folder.is_dir():
        pytest.skip("the samples are not there: expected ../shared/samples beside the project")
    return folder


def _prepared(server: Server) -> Iterator[Server]:
    server.prepare()
    yield server
    server.close()
