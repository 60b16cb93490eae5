"""docs/adding-a-job-type.md, followed word for word in a copy of the project: its files, its commands, its result.

What the page does with containers is done without: `migrate` and the worker as processes, the image as text, the stanza
as data. `make lock` alone is left out, since it asks the package index; its target is checked in test_docs_commands.py.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from sidelinja_jobs.job_type import JobType
from sidelinja_jobs.logins import PASSWORD_FILE, secret_folders
from tests.databases import ROOT, Server
from tests.queue.migrate_support import Fresh, each_fresh
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(180)
PAGE = (ROOT / "docs" / "adding-a-job-type.md").read_text()
PARTS = ("shared", "services", "db", "tests", "demo", "compose.yaml", ".dockerignore", ".env.example", "pyproject.toml")
BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"`((?:services|tests)/[\w/]+\.\w+|compose\.yaml)`")
CONTAINERS, MAKE_LOCK = "docker compose ", "make lock"


@dataclass(frozen=True)
class Block:
    """A code block of the page: the file that the words before it name, or None; its language and its text."""

    file: str | None
    language: str
    text: str


def blocks() -> list[Block]:
    found = []
    for match in BLOCK.finditer(PAGE):
        before = PAGE[: match.start()].rstrip().rsplit("\n\n", 1)[-1]
        named = FILE.findall(before) if match[2] != "sh" else []
        found.append(Block(named[-1] if named else None, match[2], textwrap.dedent(match[3])))
    return found


BLOCKS = blocks()
COMMANDS = [line for block in BLOCKS if block.language == "sh" for line in block.text.splitlines()]
RESULT = BLOCKS[-1].text


class Copy:
    """A copy of the project in which the page was followed."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.folder, self.server = folder, server
        for part in PARTS:
            copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
            copy(ROOT / part, folder / part, **_left_out(part))
        for block in BLOCKS:
            if block.file is not None:
                self._write(block.file, block.text)
        for command in COMMANDS:
            if command == MAKE_LOCK:
                self._lock()
            elif not command.startswith(CONTAINERS):
                subprocess.run(command, shell=True, cwd=folder, check=True, timeout=20)  # noqa: S602 - the page's own

    def run(self, *arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
        """Runs a Python program in the copy, with its code alone."""
        own = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        paths = {"PYTHONPATH": f"{self.folder / 'shared'}:{self.folder}", "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder, env={**own, **paths, **environ}, capture_output=True, text=True, timeout=120,
        )  # fmt: skip

    def _write(self, name: str, text: str) -> None:
        path = self.folder / name
        if name == "compose.yaml":
            services, volumes = re.split(r"^(?=networks:)", path.read_text(), flags=re.MULTILINE)
            path.write_text(f"{services}{textwrap.indent(text, '  ')}\n{volumes}")
        else:
            assert not path.exists(), f"{name} is there already"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)

    def _lock(self) -> None:
        """What `make lock` writes for an empty list: what all lists share."""
        listed = self.folder / "services" / "words" / "requirements.in"
        assert listed.read_text() == ""
        every = [_locked(path) for path in self.folder.glob("services/*/requirements.lock")]
        shared = [entry for entry in every[0] if all(entry in other for other in every)]
        listed.with_suffix(".lock").write_text("\n".join(shared) + "\n")


def _left_out(part: str) -> dict[str, object]:
    return {"ignore": shutil.ignore_patterns("__pycache__", "e2e")} if (ROOT / part).is_dir() else {}


def _locked(path: Path) -> list[str]:
    return [
        re.sub(r"\n    # via.*", "", entry, flags=re.DOTALL) for entry in re.split(r"\n(?=[a-z])", path.read_text())
    ]


@pytest.fixture(scope="module")
def copy(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copy]:
    yield Copy(tmp_path_factory.mktemp("copy"), server)
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as conn:  # other tests look at all roles
        conn.execute("drop role if exists worker_words")


@pytest.fixture
def fresh(server: Server) -> Iterator[Fresh]:
    yield from each_fresh(server)


def test_page_has_all_parts() -> None:
    assert [block.file for block in BLOCKS if block.file] == [
        "services/words/job_type.toml",
        "services/words/__main__.py",
        "compose.yaml",
        "tests/services/test_words.py",
    ]
    assert "batch_size" in PAGE


def test_projects_own_rules_take_the_new_type(copy: Copy) -> None:
    """The page's test, and what the project asks of each stanza and image."""
    told = re.search(r"`\.venv/bin/python (-m pytest [^`]+)`", PAGE)
    assert told is not None
    tested = copy.run(*told[1].split(), "-q", "-p", "no:xdist", JOBBKO_TEST_DATABASE_URL=copy.server.dsn("postgres"))
    assert tested.returncode == 0, tested.stdout[-4000:]
    assert "words" in copy.run(*told[1].split(), "--collect-only", "-q").stdout

    linted = copy.run("-m", "ruff", "check", "services/words", "tests/services/test_words.py")
    assert linted.returncode == 0, linted.stdout
    formatted = copy.run("-m", "ruff", "format", "--check", "services/words", "tests/services/test_words.py")
    assert formatted.returncode == 0, formatted.stdout


def test_job_ends_with_the_result_that_the_page_shows(copy: Copy, fresh: Fresh, tmp_path: Path) -> None:
    secrets = tmp_path / "secrets"
    job_types = JobType.load_all(copy.folder / "services")
    for role, name in secret_folders(job_types).items():
        (secrets / name).mkdir(parents=True)
        (secrets / name / PASSWORD_FILE).write_text(copy.server.password(role))
    migrated = copy.run(
        "-m", "sidelinja_jobs.migrate",
        DATABASE_URL=fresh.dsn, INIT_FOLDER=str(copy.folder / "db" / "init"),
        SERVICES_FOLDER=str(copy.folder / "services"), SECRETS_FOLDER=str(secrets),
    )  # fmt: skip
    assert migrated.returncode == 0, migrated.stderr

    enqueue, show = (shlex.split(line)[5:] for line in COMMANDS if line.startswith("docker compose run --rm jobs "))
    operator = copy.server.dsn(fresh.name, "jobbko_operator")
    worker = _start_worker(copy, fresh)
    try:
        wait_until(lambda: fresh.rows("select pid from worker"), 20, what="the worker to register itself")
        ended = copy.run("shared/jobs", *enqueue, DATABASE_URL=operator)
    finally:
        worker.terminate()
        worker.wait(20)

    assert ended.returncode == 0, ended.stderr
    job_id = ended.stdout.split(maxsplit=1)[0]
    shown = copy.run("shared/jobs", *(job_id if word == "ID" else word for word in show), DATABASE_URL=operator)
    assert RESULT in shown.stdout
    assert fresh.rows("select status, result from job_queue") == [
        ("completed", json.loads(RESULT.split(maxsplit=1)[1]))
    ]


def _start_worker(copy: Copy, fresh: Fresh) -> "subprocess.Popen[bytes]":
    environ = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{copy.folder / 'shared'}:{copy.folder}",
        "DATABASE_URL": copy.server.dsn(fresh.name, "worker_words"),
        "HEALTH_FILE": str(copy.folder / "healthy"),
        "METRICS_PORT": "0",
    }
    return subprocess.Popen([sys.executable, "-m", "services.words"], cwd=copy.folder, env=environ)
