"""Real worker processes for tests: started, stopped, killed and frozen by process id."""

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from demo.embedded_postgres import ending_with_parent
from sidelinja_jobs.job_type import JobType
from tests.databases import ROOT, Database
from tests.waiting import wait_until

INHERITED = ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "XDG_CACHE_HOME")


class WorkerProcess:
    """One worker process and what it wrote."""

    def __init__(self, process: subprocess.Popen[bytes], log_file: Path, health_file: Path) -> None:
        self.process = process
        self.log_file = log_file
        self.health_file = health_file

    @property
    def pid(self) -> int:
        return self.process.pid

    def is_alive(self) -> bool:
        return self.process.poll() is None

    def terminate(self) -> None:
        """Asks it to stop, as `docker stop` does."""
        self.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL: nothing of the process runs any more when this returns."""
        self.process.kill()
        self.process.wait(10)

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def wait(self, timeout: float = 15) -> int:
        """Its exit code, as soon as it has ended."""
        return self.process.wait(timeout)

    def children(self) -> list[psutil.Process]:
        with contextlib.suppress(psutil.NoSuchProcess):
            return psutil.Process(self.pid).children(recursive=True)
        return []

    def log_text(self) -> str:
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def log_events(self, event: str | None = None) -> list[dict[str, Any]]:
        """The lines of its log that are JSON, or those of one event."""
        lines = [json.loads(line) for line in self.log_text().splitlines() if line.startswith("{")]
        return [line for line in lines if event is None or line.get("event") == event]

    def end(self) -> None:
        """Ends it whatever state it is in, with its children."""
        children = self.children()
        if self.is_alive():
            self.thaw()
            self.kill()
        for child in children:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()


class WorkerProcesses:
    """Starts workers; what it started ends with the test."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started: list[WorkerProcess] = []

    def start(
        self,
        database: Database,
        handler: str | Path,
        *,
        function: str = "handle",
        job_type: str = "test_job",
        role: str | None = None,
        environ: Mapping[str, str] | None = None,
        drain_seconds: int = 0,
        ready: bool = True,
    ) -> WorkerProcess:
        """Starts a worker of a job type that the database has.

        `handler` is a Python file, or source text, that defines the function and may define `Payload`.
        Returns when the worker has registered itself, unless `ready` is false.
        """
        folder = self._folder / f"worker-{len(self._started)}-{secrets.token_hex(2)}"
        folder.mkdir()
        rules = database.row("select * from job_type where name = %s", job_type)
        write_job_type(folder, rules, drain_seconds)
        module = handler if isinstance(handler, Path) else write_module(folder, handler)
        worker = self._launch(
            folder,
            [sys.executable, "-m", "tests.worker_main", module.stem, function, str(folder)],
            {
                **worker_environ(database.dsn(role or rules["role"]), folder),
                "PYTHONPATH": f"{ROOT / 'shared'}:{ROOT}:{module.parent}",
                **(environ or {}),
            },
        )
        if ready:
            self.wait_until_registered(database, worker)
        return worker

    def start_command(
        self, database: Database, command: list[str], role: str, environ: Mapping[str, str] | None = None
    ) -> WorkerProcess:
        """Starts another program as a worker, such as `python -m services.whisper`."""
        folder = self._folder / f"worker-{len(self._started)}-{secrets.token_hex(2)}"
        folder.mkdir()
        paths = {"PYTHONPATH": f"{ROOT / 'shared'}:{ROOT}"}
        return self._launch(folder, command, {**worker_environ(database.dsn(role), folder), **paths, **(environ or {})})

    def wait_until_registered(self, database: Database, worker: WorkerProcess, timeout: float = 20) -> None:
        def registered() -> bool:
            assert worker.is_alive(), f"the worker ended with {worker.wait()}:\n{worker.log_text()}"
            return bool(database.rows("select pid from worker where pid = %s", worker.pid))

        wait_until(registered, timeout, what="the worker to register itself")

    def end_all(self) -> None:
        """Ends them all and prints the ends of their logs, which pytest shows for a failed test."""
        for worker in self._started:
            worker.end()
            print(f"--- log of worker {worker.pid} (exit code {worker.process.returncode})")
            print("\n".join(worker.log_text().splitlines()[-40:]))

    def _launch(self, folder: Path, command: list[str], environ: Mapping[str, str]) -> WorkerProcess:
        log_file = folder / "log"
        with log_file.open("wb") as log:
            process = subprocess.Popen(
                [*ending_with_parent("KILL"), *command],
                env=dict(environ),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        worker = WorkerProcess(process, log_file, folder / "healthy")
        self._started.append(worker)
        return worker


def worker_environ(dsn: str, folder: Path) -> dict[str, str]:
    """Nothing of the caller's environment but what a program needs to start; a worker's own settings."""
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return {
        **inherited,
        "DATABASE_URL": dsn,
        "POLL_SECONDS": "0.2",
        "METRICS_PORT": "0",
        "HEALTH_FILE": str(folder / "healthy"),
        "LOG_FORMAT": "json",
        "LOG_LEVEL": "debug",
        "PYTHONUNBUFFERED": "1",
        "PYTHONFAULTHANDLER": "1",
    }


def write_job_type(folder: Path, rules: Mapping[str, Any], drain_seconds: int) -> None:
    """Writes a job_type.toml that says what the database's row says."""
    names = [name for name in JobType.__struct_fields__ if name in rules]
    lines = [f"{name} = {json.dumps(rules[name])}" for name in names]
    lines.append(f"drain_seconds = {drain_seconds}")
    (folder / "job_type.toml").write_text("\n".join(lines) + "\n")


def write_module(folder: Path, source: str) -> Path:
    """A module of a name that no other has, holding the source."""
    module = folder / f"handler_{secrets.token_hex(4)}.py"
    module.write_text(textwrap.dedent(source))
    return module
