"""The worker's process: `python -m services.research`."""

import signal
import sys
from pathlib import Path

from services.research.handler import Researcher
from services.research.payload import ClipPayload
from services.research.settings import ResearchSettings
from sidelinja_jobs import JobType, SettingsError, WorkerSettings, load_settings, run_worker
from sidelinja_jobs.log import configure_logging, get_logger

EXIT_CONFIG = 78  # sysexits.h EX_CONFIG


def main() -> int:
    """Checks the settings and works; returns the exit code."""
    configure_logging()
    job_type = JobType.load(Path(__file__).parent)
    log = get_logger(job_type=job_type.name)
    for number in (signal.SIGTERM, signal.SIGINT):  # until the worker loop takes over
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        worker_settings = load_settings(WorkerSettings)
        configure_logging(worker_settings.log_format, worker_settings.log_level)
        settings = load_settings(ResearchSettings)
    except SettingsError as error:
        log.error("cannot start", problem=str(error))
        return EXIT_CONFIG
    researcher = Researcher(settings)
    try:
        return run_worker(researcher.handle, ClipPayload, job_type, settings=worker_settings)
    finally:
        researcher.close()


if __name__ == "__main__":
    sys.exit(main())
