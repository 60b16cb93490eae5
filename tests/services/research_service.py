"""The real worker of research_clip on a database, as tests start it."""

import sys
from typing import Any
from uuid import UUID

from tests.databases import Database
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcess, WorkerProcesses

JOB_TYPE = "research_clip"
MODEL_FIELDS = ("summary", "topics", "entities", "claims", "facts", "quotes", "headings")


class Research:
    """A research worker on a database."""

    program: tuple[str, ...] = ("services.research",)

    def __init__(self, database: Database, processes: WorkerProcesses) -> None:
        self.database, self.processes = database, processes

    def start(self, **environ: str) -> WorkerProcess:
        command = [sys.executable, "-m", *self.program]
        worker = self.processes.start_command(self.database, command, "worker_research", environ)
        self.processes.wait_until_registered(self.database, worker)
        return worker

    def enqueue(self, **payload: Any) -> UUID:
        return self.database.enqueue(JOB_TYPE, payload)

    def wait(self, job_id: UUID, status: str = "completed", within: float = 60) -> dict[str, Any]:
        def settled() -> dict[str, Any] | None:
            job = self.database.job(job_id)
            return job if job["status"] not in {"pending", "running", "retry"} - {status} else None

        job = wait_until(settled, within, what="the job to end")
        assert job["status"] == status, job["error_msg"]
        return job
