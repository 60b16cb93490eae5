"""The worker's process: `python -m services.openrouter`."""

import contextlib
import signal
import sys
from pathlib import Path

from openrouter_client.asking import LanguageModel
from openrouter_client.catalogue import Catalogue
from openrouter_client.key_watch import KeyWatch
from openrouter_client.metrics import ModelMetrics
from openrouter_client.profile import Profile
from openrouter_client.settings import ClientSettings
from openrouter_client.transport import Client
from services.openrouter.handler import Analyzer
from services.openrouter.payload import AnalyzePayload
from services.openrouter.settings import AnalyzeSettings
from sidelinja_jobs import JobType, SettingsError, WorkerSettings, load_settings, run_worker
from sidelinja_jobs.log import configure_logging, get_logger

EXIT_CONFIG = 78  # sysexits.h EX_CONFIG


def main() -> int:
    """Checks the settings, watches the key and works; returns the exit code. Without a key it runs, and says so."""
    configure_logging()
    job_type = JobType.load(Path(__file__).parent)
    log = get_logger(job_type=job_type.name)
    for number in (signal.SIGTERM, signal.SIGINT):  # until the worker loop takes over
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        worker_settings = load_settings(WorkerSettings)
        configure_logging(worker_settings.log_format, worker_settings.log_level)
        client_settings = load_settings(ClientSettings)
        settings = load_settings(AnalyzeSettings)
        settings.require_folder()
    except SettingsError as error:
        log.error("cannot start", problem=str(error))
        return EXIT_CONFIG
    profile = Profile.from_settings(client_settings)
    log.info("model configured", model=profile.model, server=profile.base_url, has_key=profile.key is not None)
    metrics = ModelMetrics(profile.model, client_settings.day_budget_usd)
    watch = KeyWatch(client_settings, worker_settings, job_type.name, log, metrics=metrics)
    with contextlib.closing(Client(profile, client_settings)) as client, contextlib.closing(watch):
        model = LanguageModel(client, Catalogue(client), client_settings, metrics=metrics, on_refused_key=watch.doubt)
        watch.start()
        analyzer = Analyzer(settings, model, profile.model)
        return run_worker(analyzer.handle, AnalyzePayload, job_type, settings=worker_settings)


if __name__ == "__main__":
    sys.exit(main())
