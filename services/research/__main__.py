"""The worker's process: `python -m services.research`."""

import contextlib
import sys
from pathlib import Path

from structlog.typing import FilteringBoundLogger

from openrouter_client.profile import Profile
from openrouter_client.settings import ClientSettings
from services.research.handler import Enricher, Researcher
from services.research.payload import ClipPayload
from services.research.settings import ResearchSettings
from sidelinja_jobs import JobType, WorkerSettings, load_settings, run_process, run_worker


def work(job_type: JobType, worker_settings: WorkerSettings, log: FilteringBoundLogger) -> int:
    """Checks the settings and works; returns the exit code. Without a key it cleans, and says so."""
    settings = load_settings(ResearchSettings)
    client_settings = load_settings(ClientSettings)
    profile = Profile.from_settings(client_settings)
    log.info("model configured", model=profile.model, server=profile.base_url, is_usable=profile.is_usable)
    with contextlib.ExitStack() as stack:
        enricher = _make_enricher(profile, client_settings, stack) if profile.is_usable else None
        researcher = stack.enter_context(contextlib.closing(Researcher(settings, enricher)))
        return run_worker(researcher.handle, ClipPayload, job_type, settings=worker_settings)


def _make_enricher(profile: Profile, settings: ClientSettings, stack: contextlib.ExitStack) -> Enricher:
    """Imports the client only where it is of use: it takes memory, which large pastes need."""
    from openrouter_client.asking import LanguageModel
    from openrouter_client.catalogue import Catalogue
    from openrouter_client.metrics import ModelMetrics
    from openrouter_client.transport import Client
    from services.research.enrichment import ModelEnricher

    client = stack.enter_context(contextlib.closing(Client(profile, settings)))
    metrics = ModelMetrics(profile.model, settings.day_budget_usd)
    model = LanguageModel(client, Catalogue(client), settings, metrics=metrics)
    return ModelEnricher(model, profile.model)


if __name__ == "__main__":
    sys.exit(run_process(Path(__file__).parent, work))
