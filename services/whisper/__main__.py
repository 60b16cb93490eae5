"""The worker's process: `python -m services.whisper`."""

import signal
import sys
from pathlib import Path

from services.whisper.handler import Transcriber
from services.whisper.model import TRIAL_NOTE, check_model
from services.whisper.payload import WhisperPayload
from services.whisper.settings import WhisperSettings
from sidelinja_jobs import JobType, SettingsError, WorkerSettings, load_settings, run_worker
from sidelinja_jobs.log import configure_logging, get_logger

EXIT_CONFIG = 78  # sysexits.h EX_CONFIG


def main() -> int:
    """Checks settings and model, loads the model and works; returns the exit code."""
    configure_logging()
    log = get_logger(job_type="whisper_transcribe")
    for number in (signal.SIGTERM, signal.SIGINT):  # until the worker loop takes over
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        worker_settings = load_settings(WorkerSettings)
        configure_logging(worker_settings.log_format, worker_settings.log_level)
        settings = load_settings(WhisperSettings)
        settings.require_folders()
        model = check_model(settings.model_root, settings.model_name)
        transcriber = Transcriber(settings, model)
        report = transcriber.load_model()
    except SettingsError as error:
        log.error("cannot start", problem=str(error))
        return EXIT_CONFIG
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
    job_type = JobType.load(Path(__file__).parent)
    try:
        return run_worker(transcriber.handle, WhisperPayload, job_type, settings=worker_settings)
    finally:
        transcriber.close()


if __name__ == "__main__":
    sys.exit(main())
