"""Jobs of openrouter_analyze for tests: enqueued, waited for, looked at."""

from pathlib import Path
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from tests.databases import Database
from tests.services.openrouter_service import JOB_TYPE, SENTENCES, OpenrouterService
from tests.worker_processes import WorkerProcess


def add_transcription(database: Database, status: str = "completed", **result: Any) -> UUID:
    """A job of whisper_transcribe as its worker leaves it."""
    segments = [{"id": n, "start": 30.0 * n, "end": 30.0 * n + 29, "text": s} for n, s in enumerate(SENTENCES)]
    whole = {"segments": segments, "duration": 182.0, "language": "no", "source": {"path": "2026/ep042.mp3"}, **result}
    columns = {"status": status, "result": Jsonb(whole) if status == "completed" else None}
    return database.enqueue("whisper_transcribe", {"path": "2026/ep042.mp3"}, **columns)


def enqueue(service: OpenrouterService, **payload: Any) -> UUID:
    return service.database.enqueue(JOB_TYPE, payload)


def result_of(service: OpenrouterService, job_id: UUID, *, within: float = 60) -> dict[str, Any]:
    job = service.wait_until_settled(job_id, within=within)[job_id].job
    assert job["status"] == "completed", (job["error_msg"], [row["error_msg"] for row in service.see(job_id).attempts])
    result: dict[str, Any] = job["result"]
    return result


def error_of(service: OpenrouterService, job_id: UUID) -> tuple[str, str]:
    job = service.wait_until_settled(job_id)[job_id].job
    assert job["status"] == "error"
    return job["error_class"], job["error_msg"]


def peak_rss_mb(worker: WorkerProcess) -> float:
    lines = Path(f"/proc/{worker.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
