"""A real PgBouncer in transaction mode, for the tests of the safe mode behind a pooler."""

import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from demo.embedded_postgres import ending_with_parent, free_port, unprivileged_user
from tests.waiting import wait_until

PROGRAM = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")
CONFIG = """
[databases]
{database} = host={host} port={port} dbname={database}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen_port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = {pool_size}
max_client_conn = 100
server_round_robin = 1
"""


class PgBouncer:
    """Stands between a login and its database, with a few connections for many. A context manager."""

    def __init__(self, folder: Path, dsn: str, *, pool_size: int) -> None:
        info = conninfo_to_dict(dsn)
        self._folder, self._dsn = folder, dsn
        self.port = free_port()
        folder.mkdir()
        (folder / "config.ini").write_text(
            CONFIG.format(
                database=info["dbname"], host=info["host"], port=info["port"], listen_port=self.port, folder=folder,
                pool_size=pool_size,
            )
        )  # fmt: skip
        (folder / "users").write_text(f'"{info["user"]}" "{info["password"]}"\n')
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def dsn(self) -> str:
        """The login's, by way of the pooler."""
        return make_conninfo(self._dsn, host="127.0.0.1", port=self.port)

    def __enter__(self) -> "PgBouncer":
        self.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        assert PROGRAM is not None
        user = unprivileged_user()  # it refuses to run as root
        identity = {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        root = Path(tempfile.gettempdir())
        above = [path for path in self._folder.parents if root in path.parents]  # as deep as the run has its folders
        for path in (*above, self._folder, *self._folder.iterdir()):
            path.chmod(path.stat().st_mode | (0o755 if path.is_dir() else 0o644))
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*ending_with_parent("KILL"), PROGRAM, "-q", str(self._folder / "config.ini")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                **identity,  # type: ignore[arg-type]
            )
        wait_until(self._answers, 15, what="PgBouncer to answer")

    def stop(self) -> None:
        """Ends it and every connection through it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._folder / "log").read_text()
        try:
            psycopg.connect(self.dsn, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True
