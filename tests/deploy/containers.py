"""Containers of single images, for tests that need no stack."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from demo.embedded_postgres import NOT_DURABLE
from tests.databases import ROOT
from tests.deploy.stack import SERVICES
from tests.waiting import wait_until


def docker(*arguments: str, stdin: str | None = None, check: bool = True) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(["docker", *arguments], cwd=ROOT, input=stdin, capture_output=True, text=True, timeout=600)
    assert not check or done.returncode == 0, done.stderr
    return done


def inside(image: str, *command: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
    """A command in a container of its own, without a network."""
    return docker("run", "--rm", "--network", "none", "--read-only", image, *command, check=check)


@contextmanager
def running_postgres(*options: str) -> Iterator[tuple[str, str]]:
    """A container of the stack's database image, its files in memory: its id, and its superuser's DSN."""
    settings = [f"--{name.replace('_', '-')}={value}" for name, value in NOT_DURABLE.items()]
    container = docker(
        "run", "--detach", "--rm", "--env", "POSTGRES_PASSWORD=secret", "--publish", "127.0.0.1::5432",
        "--tmpfs", "/var/lib/postgresql/data", *options, SERVICES["db"]["image"], *settings,
    ).stdout.strip()  # fmt: skip
    try:
        port = docker("port", container, "5432/tcp").stdout.splitlines()[0].rpartition(":")[2]
        dsn = f"postgresql://postgres:secret@127.0.0.1:{port}/postgres"
        wait_until(lambda: answers(dsn), 60, every=0.2, what="the container's PostgreSQL")
        yield container, dsn
    finally:
        docker("kill", container)


def answers(dsn: str) -> bool:
    try:
        psycopg.connect(dsn, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True
