"""A media folder and a whisper worker on it, as a process, with the real model."""

import shutil
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

import psutil

from tests.databases import Database
from tests.services.whisper_support import base_model
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcess, WorkerProcesses


class Whisper:
    """A media folder, and a worker on it."""

    def __init__(self, database: Database, processes: WorkerProcesses, media: Path, samples: Path) -> None:
        self.database = database
        self.processes = processes
        self.media = media
        self.samples = samples
        media.mkdir()

    def start(self, program: str | None = None, *, ready: bool = True, **environ: str) -> WorkerProcess:
        """A worker as it is, or one that a program of its own starts."""
        settings = {
            "MEDIA_ROOT": str(self.media),
            "MODEL_ROOT": str(base_model().folder.parent),
            "UNIT_SECONDS": "30",
            **environ,
        }
        command = [sys.executable, *(["-m", "services.whisper"] if program is None else ["-c", program])]
        worker = self.processes.start_command(self.database, command, "worker_whisper", settings)
        if ready:
            self.processes.wait_until_registered(self.database, worker, 60)
        return worker

    def add(self, sample: str, name: str) -> Path:
        target = self.media / name
        target.parent.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(self.samples / "audio" / sample, target))

    def enqueue(self, path: str, **payload: Any) -> UUID:
        return self.database.enqueue("whisper_transcribe", {"path": path, **payload})

    def make_impatient(self) -> None:
        """A dead worker's job is taken up after seconds."""
        self.database.rows(
            "update job_type set lease_seconds = 3, backoff_base_seconds = 1 where name = 'whisper_transcribe'"
        )

    def engine_of(self, worker: WorkerProcess) -> psutil.Process:
        return wait_until(worker.children, 60, what="an engine")[0]

    def first_attempt(self, job_id: UUID) -> dict[str, Any]:
        """As soon as it has ended."""
        ended = "select error_class, error_msg from job_attempt where job_id = %s and ended_at is not null order by id"
        return wait_until(lambda: self.database.rows(ended, job_id), 90, what="the first attempt to end")[0]

    def wait_for_units(self, job_id: UUID, units: int) -> None:
        """Until so many units are finished, and the job is not."""
        count = "select count(*) from job_checkpoint where job_id = %s and data ? 'index'"
        wait_until(lambda: self.database.value(count, job_id) >= units, 60, every=0.005, what=f"{units} units")

    def wait(self, job_id: UUID, status: str = "completed", *, within: float = 120) -> dict[str, Any]:
        def settled() -> dict[str, Any] | None:
            job = self.database.job(job_id)
            return job if job["status"] not in {"pending", "running", "retry"} - {status} else None

        job = wait_until(settled, within, what="the job to end")
        assert job["status"] == status, job["error_msg"]
        return job
