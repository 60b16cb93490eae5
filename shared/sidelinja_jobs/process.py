"""The frame of a worker's process that has settings of its own: log, signals, settings, exit code."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from structlog.typing import FilteringBoundLogger

from sidelinja_jobs.errors import SettingsError
from sidelinja_jobs.job_type import JobType
from sidelinja_jobs.log import configure_logging, get_logger
from sidelinja_jobs.settings import WorkerSettings, load_settings


def run_process(folder: Path, work: Callable[[JobType, WorkerSettings, FilteringBoundLogger], int]) -> int:
    """Loads the rules of `folder` and the worker's settings, then does `work`; returns the exit code.

    Args:
        folder: of the service, with its job_type.toml.
        work: checks the settings of the job type and ends with `run_worker`. A SettingsError is logged as what keeps
            the process from starting.
    """
    configure_logging()
    log = get_logger()
    for number in (signal.SIGTERM, signal.SIGINT):  # until the worker loop takes over
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        job_type = JobType.load(folder)
        log = get_logger(job_type=job_type.name)
        settings = load_settings(WorkerSettings)
        configure_logging(settings.log_format, settings.log_level)
        return work(job_type, settings, log)
    except SettingsError as error:
        log.error("cannot start", problem=str(error))
        return os.EX_CONFIG
