"""The system as processes: PostgreSQL, migrate, the model, the workers; in a folder of its own.

Everything that is started is ended when the block ends, however it ends, and the folder is removed. Only the
model stays, in the cache folder, so that the next run finds it there.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from demo.embedded_postgres import EmbeddedPostgres, ending_with_parent
from demo.environment import inherited_environ
from services.admin.secrets import fill, secret_files
from sidelinja_jobs.job_type import JobType
from sidelinja_jobs.logins import PASSWORD_FILE
from sidelinja_jobs.migrate import migrate

ROOT = Path(__file__).resolve().parent.parent
DATABASE = "jobbko"
READY_SECONDS = 120  # loading a large model from a slow disk takes most of it
DRAIN_SECONDS = 2  # a worker that is asked again after more than a second ends at once
STOP_SECONDS = 20


class DemoError(Exception):
    """The demo could not go on; the message says what failed and what to do next."""


@dataclass(frozen=True)
class Stack:
    """What runs, and how to reach it."""

    folder: Path
    postgres: EmbeddedPostgres

    @property
    def media(self) -> Path:
        return self.folder / "media"

    def operator_environ(self) -> dict[str, str]:
        """For the command line `jobs`."""
        return environ_for(self.postgres, self.folder, "jobbko_operator", "operator")

    def reader_password(self) -> str:
        return (self.folder / "secrets" / "reader" / PASSWORD_FILE).read_text()

    def worker_log_tail(self, service: str, lines: int = 30) -> str:
        return tail(log_file(self.folder, service), lines)


@contextmanager
def running_stack(model: str, analysis: Mapping[str, str]) -> Iterator[Stack]:
    """Starts the system and ends it again. `analysis` are the language model's settings; without any, it has none."""
    with ExitStack() as undo:
        folder = Path(tempfile.mkdtemp(prefix="jobbko-demo-"))
        undo.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o755)  # root's PostgreSQL runs as another user, who has to get in
        (folder / "media").mkdir()

        models = fetch_model(model)
        postgres = undo.enter_context(start_postgres(folder))
        migrate_database(folder, postgres)
        whisper = {"MODEL_ROOT": str(models), "WHISPER_MODEL": model}
        undo.enter_context(start_worker(folder, postgres, "whisper", whisper))
        if analysis:
            undo.enter_context(start_worker(folder, postgres, "openrouter", analysis))
        yield Stack(folder, postgres)
        say("stopping the workers and PostgreSQL, removing the folder")


def say(line: str) -> None:
    """One step, told to the person."""
    print(f"· {line}", flush=True)


def fetch_model(model: str) -> Path:
    """The cache folder, with the model in it; fetched the first time."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jobbko" / "models"
    cache.mkdir(parents=True, exist_ok=True)
    say(f"model {model} in {cache}")
    settings = {"WHISPER_MODEL": model, "MODEL_ROOT": str(cache)}
    fetched = subprocess.run(
        [sys.executable, "-m", "services.whisper.model_fetch"],
        env=inherited_environ() | settings, cwd=ROOT, check=False,
    )  # fmt: skip
    if fetched.returncode != 0:
        raise DemoError(f"the model {model} could not be fetched (exit code {fetched.returncode}, see above)")
    return cache


@contextmanager
def start_postgres(folder: Path) -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres(folder / "postgres") as postgres:
        say(f"PostgreSQL on {postgres.host}:{postgres.port}, in {postgres.folder}")
        yield postgres


def migrate_database(folder: Path, postgres: EmbeddedPostgres) -> None:
    """Makes the secrets, the database, its tables and functions, and the logins."""
    secrets = folder / "secrets"
    fill(secrets, secret_files())
    job_types = JobType.load_all(ROOT / "services")
    applied = migrate(postgres.dsn(DATABASE), ROOT / "db" / "init", job_types, secrets)
    say(f"migrate: {len(applied)} files of db/init applied")


@contextmanager
def start_worker(
    folder: Path, postgres: EmbeddedPostgres, service: str, settings: Mapping[str, str]
) -> "Iterator[subprocess.Popen[bytes]]":
    """Starts `python -m services.<service>`, as its container does, and waits until it is well."""
    job_type = JobType.load(ROOT / "services" / service)
    healthy, log_path = folder / f"{service}.healthy", log_file(folder, service)
    own = {
        "MEDIA_ROOT": str(folder / "media"),
        "OUTPUT_ROOT": str(folder / "media"),
        "METRICS_PORT": "0",
        "HEALTH_FILE": str(healthy),
    }
    with log_path.open("wb") as log:
        worker = subprocess.Popen(
            [*ending_with_parent("TERM"), sys.executable, "-m", f"services.{service}"],
            env={**environ_for(postgres, folder, job_type.role, job_type.role), **own, **settings},
            cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    try:
        wait_until_well(worker, healthy, log_path)
        say(f"worker for {job_type.name}, process {worker.pid}")
        yield worker
    finally:
        stop(worker)


def wait_until_well(worker: "subprocess.Popen[bytes]", healthy: Path, log: Path) -> None:
    end = time.monotonic() + READY_SECONDS
    while not healthy.exists():
        if worker.poll() is not None:
            raise DemoError(f"the worker ended with exit code {worker.returncode}; its log:\n{tail(log, 30)}")
        if time.monotonic() > end:
            raise DemoError(f"the worker was not ready within {READY_SECONDS} s; its log:\n{tail(log, 30)}")
        time.sleep(0.1)


def stop(process: "subprocess.Popen[bytes]") -> None:
    """Asks the process to end, again when it finishes what it is at, and kills it when it does not end."""
    try:
        for seconds in (DRAIN_SECONDS, STOP_SECONDS):
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(seconds)
                break
    finally:  # a second Ctrl-C while it waits, too
        process.kill()
        process.wait()


def environ_for(postgres: EmbeddedPostgres, folder: Path, role: str, secret: str) -> dict[str, str]:
    """Settings of a program that logs in as `role`, with its password in a file, as in a container."""
    own = {
        "DATABASE_URL": f"postgresql://{role}@{postgres.host}:{postgres.port}/{DATABASE}",
        "DATABASE_PASSWORD_FILE": str(folder / "secrets" / secret / PASSWORD_FILE),
        "PYTHONPATH": f"{ROOT / 'shared'}:{ROOT}",
        "PYTHONUNBUFFERED": "1",
    }
    return inherited_environ() | own


def log_file(folder: Path, service: str) -> Path:
    return folder / f"{service}.log"


def tail(file: Path, lines: int) -> str:
    return "\n".join(file.read_text(errors="replace").splitlines()[-lines:]) if file.exists() else "(no log)"
