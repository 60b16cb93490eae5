"""The worker's process: `python -m services.stats`."""

import sys
import threading
import time
from pathlib import Path

import psycopg
from structlog.typing import FilteringBoundLogger

from services.stats.countries import open_countries
from services.stats.handler import StatsWorker
from services.stats.payload import StatsPayload
from services.stats.process import tune_garbage_collection
from services.stats.settings import StatsSettings
from services.stats.store import SQL
from sidelinja_jobs import JobType, SettingsError, WorkerSettings, load_settings, run_process, run_worker
from sidelinja_jobs.database import connect
from sidelinja_jobs.log import get_logger

_RETRY_SECONDS = 5.0


def work(job_type: JobType, worker_settings: WorkerSettings, log: FilteringBoundLogger) -> int:
    """Checks the settings and works; returns the exit code."""
    settings = load_settings(StatsSettings)
    country_of, warning = open_countries(settings.country_file)
    worker = StatsWorker(settings, country_of, warning)
    if warning:
        log.warning("countries not known", problem=warning, file=str(settings.country_file))
    tune_garbage_collection()
    threading.Thread(target=set_up, args=[worker_settings, settings.every_minutes], daemon=True, name="set up").start()
    return run_worker(worker.handle, StatsPayload, job_type, settings=worker_settings)


def set_up(worker_settings: WorkerSettings, every_minutes: int) -> None:
    """Makes the first source and the schedule, as soon as the database is there."""
    log = get_logger(job_type="stats_parse")
    while True:
        try:
            with connect(worker_settings, name="jobbko stats_parse set up") as conn:
                conn.execute(SQL["set_up"], {"every_minutes": every_minutes})
                conn.execute(SQL["sweep"])
            return
        except SettingsError:
            return  # the worker says it and ends
        except psycopg.Error as error:
            log.warning("schedule not made yet", error=str(error).strip())
            time.sleep(_RETRY_SECONDS)


if __name__ == "__main__":
    sys.exit(run_process(Path(__file__).parent, work))
