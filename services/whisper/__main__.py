"""The worker's process: `python -m services.whisper`."""

import sys
from pathlib import Path

from structlog.typing import FilteringBoundLogger

from services.whisper.handler import Transcriber
from services.whisper.model import TRIAL_NOTE, check_model
from services.whisper.payload import WhisperPayload
from services.whisper.settings import WhisperSettings
from sidelinja_jobs import JobType, WorkerSettings, load_settings, run_process, run_worker


def work(job_type: JobType, worker_settings: WorkerSettings, log: FilteringBoundLogger) -> int:
    """Checks settings and model, loads the model and works; returns the exit code."""
    settings = load_settings(WhisperSettings)
    settings.require_folders()
    model = check_model(settings.model_root, settings.model_name)
    transcriber = Transcriber(settings, model)
    report = transcriber.load_model()
    log.info(
        "model loaded",
        model=model.name,
        sha256=model.sha256,
        device=report.device,
        compute_type=report.compute_type,
        threads=report.cpu_threads,
        seconds=report.load_seconds,
    )
    if model.is_for_trying_out:
        log.warning(TRIAL_NOTE)
    if not settings.can_write:
        log.warning(
            "no transcript can be written beside audio at the top of MEDIA_ROOT", folder=str(settings.media_root)
        )
    try:
        return run_worker(transcriber.handle, WhisperPayload, job_type, settings=worker_settings)
    finally:
        transcriber.close()


if __name__ == "__main__":
    sys.exit(run_process(Path(__file__).parent, work))
