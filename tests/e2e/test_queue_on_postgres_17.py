"""The queue's tests once more, on the server that the stack runs: the image that compose.yaml names."""

import os
import subprocess
import sys
from collections.abc import Iterator

import psycopg
import pytest
import yaml

from tests.databases import ROOT
from tests.waiting import wait_until

pytestmark = [pytest.mark.containers, pytest.mark.slow]


def docker(*arguments: str) -> str:
    answered = subprocess.run(["docker", *arguments], capture_output=True, text=True)
    assert answered.returncode == 0, f"docker {arguments[0]}: {answered.stderr}"
    return answered.stdout.strip()


def answers(dsn: str) -> bool:
    try:
        psycopg.connect(dsn, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True


@pytest.fixture
def container_dsn() -> Iterator[str]:
    """The superuser's DSN of a throw-away container of the database's image."""
    image = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["db"]["image"]
    container = docker(
        "run", "--detach", "--rm", "--env", "POSTGRES_PASSWORD=secret", "--publish", "127.0.0.1::5432",
        image, "postgres", "-c", "fsync=off",
    )  # fmt: skip
    try:
        port = docker("port", container, "5432/tcp").splitlines()[0].rpartition(":")[2]
        dsn = f"postgresql://postgres:secret@127.0.0.1:{port}/postgres"
        wait_until(lambda: answers(dsn), 60, every=0.2, what="the container's PostgreSQL")
        yield dsn
    finally:
        docker("kill", container)


@pytest.mark.timeout(900)
def test_queue_behaves_the_same_on_the_stacks_postgres(container_dsn: str) -> None:
    with psycopg.connect(container_dsn) as conn:
        assert conn.info.server_version // 10000 == 17

    tests = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/queue"],
        cwd=ROOT,
        env={**os.environ, "JOBBKO_TEST_DATABASE_URL": container_dsn},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )

    assert tests.returncode == 0, tests.stdout[-8000:]
