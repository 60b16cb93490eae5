"""The stack in real containers, under a project name and ports of its own, driven as an operator would."""

import fcntl
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from demo.embedded_postgres import free_port
from tests.databases import ROOT
from tests.waiting import wait_until

PROJECT = "jobbko-test"
SAMPLE = ROOT / "demo" / "sample.mp3"
# Short units, so that there is a checkpoint to resume from; a short lease, so that a death is noticed soon.
SETTINGS = {"JOBBKO_VERSION": "test", "UNIT_SECONDS": "10", "POLL_SECONDS": "0.5", "WHISPER_CPU_THREADS": "1"}
SHORT_LEASE = "update job_type set lease_seconds = 4, backoff_base_seconds = 1"


@contextmanager
def alone_on_this_machine() -> Iterator[None]:
    """Two test runs at once would take down each other's containers: the second one waits."""
    with (Path(tempfile.gettempdir()) / f"{PROJECT}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class RunningStack:
    """docker compose for the project, and what a test wants to know of it."""

    def __init__(self) -> None:
        self.prometheus_port, self.admin_port = free_port(), free_port()
        self._superuser = ""  # how to log in at the database
        self.environ = {
            **os.environ, **SETTINGS, "COMPOSE_PROJECT_NAME": PROJECT, "PROMETHEUS_PORT": str(self.prometheus_port),
            "ADMIN_PORT": str(self.admin_port),
        }  # fmt: skip

    def run(self, *command: str, check: bool = True, **options: Any) -> "subprocess.CompletedProcess[str]":
        options = {"env": self.environ, "timeout": 600} | options
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, **options)
        if check and done.returncode != 0:
            raise AssertionError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
        return done

    def compose(self, *arguments: str, **options: Any) -> str:
        """Output of `docker compose …`; no .env of a developer is read."""
        return self.run("docker", "compose", "--env-file", "/dev/null", *arguments, **options).stdout.strip()

    def make(self, *arguments: str, **options: Any) -> str:
        return self.run("make", *arguments, "COMPOSE=docker compose --env-file /dev/null", **options).stdout.strip()

    def remove(self) -> None:
        self.compose("--profile", "tools", "down", "--volumes", "--remove-orphans", "--timeout", "5")

    def up(self, workers: int) -> None:
        self.compose("up", "--detach", "--wait", "--scale", f"whisper={workers}")

    def use_short_lease(self) -> None:
        """Migrate sets the lease of job_type.toml at each `up`; workers read theirs when they start."""
        self.sql(SHORT_LEASE)
        self.compose("restart", "--no-deps", "whisper")
        self.wait_for_workers(2)

    def wait_for_workers(self, count: int) -> None:
        def are_idle() -> bool:
            live = {container[:12] for container in self.containers("whisper")}
            hosts = self.sql("select host from worker where idle").split()
            return len(live) == count and live <= set(hosts)

        wait_until(are_idle, 60, every=0.5, what=f"{count} idle workers")

    def start_missing_workers(self) -> None:
        self.compose("up", "--detach", "--no-deps", "--no-recreate", "--wait", "--scale", "whisper=2", "whisper")
        self.wait_for_workers(2)

    def containers(self, service: str, *, every: bool = False) -> list[str]:
        return self.compose("ps", "--quiet", *(["--all"] if every else []), service).split()

    def inspect(self, container: str) -> dict[str, Any]:
        (found,) = json.loads(self.run("docker", "inspect", container).stdout)
        return dict(found)

    def sql(self, statement: str) -> str:
        """Rows of the (last) statement as `psql -At` writes them, as superuser.

        From here to the container's address: tests ask five times a second while the workers compute, and a psql in the
        container takes a third of a second of CPU.
        """
        with self._connected() as conn:
            answered = conn.pgconn.exec_(statement.encode())
        if answered.error_message:
            raise AssertionError(f"{statement}\n{answered.error_message.decode()}")
        columns = range(answered.nfields)
        rows = [[answered.get_value(row, column) or b"" for column in columns] for row in range(answered.ntuples)]
        return b"\n".join(map(b"|".join, rows)).decode()

    def _connected(self) -> "psycopg.Connection[Any]":
        """Address and password are looked up anew where those of before lead nowhere."""
        with suppress(psycopg.OperationalError):
            if self._superuser:
                return psycopg.connect(self._superuser)
        (container,) = self.containers("db")
        (network,) = self.inspect(container)["NetworkSettings"]["Networks"].values()
        password = self.run("docker", "exec", container, "cat", "/run/secrets/superuser").stdout
        login = {"user": "postgres", "password": password, "dbname": "jobbko", "connect_timeout": 3}
        self._superuser = make_conninfo(host=network["IPAddress"], **login)
        return psycopg.connect(self._superuser)

    def jobs(self, *arguments: str) -> Any:
        """The command line in its service, as JSON."""
        return json.loads(self.compose("run", "--rm", "-T", "jobs", *arguments, "--json"))

    def enqueue(self, path: str, *fields: str) -> str:
        return str(self.jobs("enqueue", "whisper_transcribe", f"path={path}", "language=en", *fields)["id"])

    def add_sample(self, name: str) -> str:
        return self.make("add", f"FILE={SAMPLE}", f"AS={name}")

    def enqueue_sample(self, name: str) -> str:
        """The sample under a name of its own, since a file that has its transcript is not transcribed again."""
        self.add_sample(name)
        return self.enqueue(name)

    def job(self, job_id: str) -> dict[str, Any]:
        return dict(json.loads(self.sql(f"select to_jsonb(job_queue) from job_queue where id = '{job_id}'")))

    def wait_for(self, job_id: str, status: str, timeout: float = 120) -> dict[str, Any]:
        return wait_until(
            lambda: job if (job := self.job(job_id))["status"] == status else None, timeout, every=0.2, what=status
        )

    def wait_for_finished_unit(self, job_id: str) -> str:
        """The container that holds the job, once its first stretch of audio is done and kept."""
        state = f"""select status, worker_id, error_msg,
                           (select count(*) from job_checkpoint where job_id = id and data ? 'end_sample')
                      from job_queue where id = '{job_id}'"""

        def holder() -> str | None:
            status, worker_id, message, units = self.sql(state).split("|")
            assert status in ("pending", "running"), f"{status}: {message}"
            return worker_id.partition(":")[0] if int(units) else None

        return wait_until(holder, 60, every=0.1, what="a finished unit") or ""

    def host_address(self, network: str) -> str:
        """Where the containers of a network reach this machine."""
        name = f"{self.environ['COMPOSE_PROJECT_NAME']}_{network}"
        (found,) = json.loads(self.run("docker", "network", "inspect", name).stdout)
        return str(found["IPAM"]["Config"][0]["Gateway"])

    def prometheus(self, query: str) -> list[dict[str, Any]]:
        url = f"http://127.0.0.1:{self.prometheus_port}/api/v1/query"
        answered = self.run("curl", "-sS", "--fail", "--get", "--data-urlencode", f"query={query}", url)
        return list(json.loads(answered.stdout)["data"]["result"])

    def timed(self, *command: str) -> float:
        started = time.monotonic()
        self.run(*command)
        return time.monotonic() - started
