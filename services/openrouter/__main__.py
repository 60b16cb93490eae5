"""The worker's process: `python -m services.openrouter`."""

import contextlib
import sys
from pathlib import Path

from structlog.typing import FilteringBoundLogger

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
from sidelinja_jobs import JobType, WorkerSettings, load_settings, run_process, run_worker


def work(job_type: JobType, worker_settings: WorkerSettings, log: FilteringBoundLogger) -> int:
    """Checks the settings, watches the key and works; returns the exit code. Without a key it runs, and says so."""
    client_settings = load_settings(ClientSettings)
    settings = load_settings(AnalyzeSettings)
    settings.require_folder()
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
    sys.exit(run_process(Path(__file__).parent, work))
