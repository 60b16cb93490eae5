"""The queue's tests once more, on the server that the stack runs: the image that compose.yaml names.

Left out is what a server's version does not touch: tests with no server or one of their own, those of worker
processes that are killed, cut off or stopped, and what the command line prints.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.databases import ROOT
from tests.deploy.containers import running_postgres

pytestmark = [pytest.mark.containers, pytest.mark.slow]

LEFT_OUT = (
    "test_faults_*.py", "test_batches_killed.py", "test_soak.py", "test_stats_kill.py", "test_cli_*.py",
    "test_docs_*.py", "test_watch.py",
)  # fmt: skip


@contextmanager
def running_tests(files: list[str], dsn: str, log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    with log.open("wb") as output:
        tests = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--on-given-server", *files],
            cwd=ROOT,
            env={**os.environ, "JOBBKO_TEST_DATABASE_URL": dsn},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield tests
    finally:
        tests.kill()
        tests.wait()


@pytest.mark.timeout(900)
def test_queue_behaves_the_same_on_the_stacks_postgres(tmp_path: Path) -> None:
    """Two servers with every second file each, at once: these tests wait more than they work."""
    paths = [path for path in ROOT.glob("tests/queue/test_*.py") if not any(map(path.match, LEFT_OUT))]
    files = sorted(str(path.relative_to(ROOT)) for path in paths)
    logs = [tmp_path / "even", tmp_path / "odd"]
    with ExitStack() as undo:
        running = []
        for number, log in enumerate(logs):
            _, dsn = undo.enter_context(running_postgres())
            with psycopg.connect(dsn) as conn:
                assert conn.info.server_version // 10000 == 17
            running.append(undo.enter_context(running_tests(files[number::2], dsn, log)))
        exit_codes = [tests.wait() for tests in running]

    assert exit_codes == [0, 0], "\n".join(log.read_text(errors="replace")[-8000:] for log in logs)
