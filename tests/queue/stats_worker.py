"""The stats worker as a process of its own for tests: `handle` and `Payload`, set up from the environment."""

from services.stats import parsing
from services.stats.handler import StatsWorker
from services.stats.payload import StatsPayload
from services.stats.settings import StatsSettings
from sidelinja_jobs import load_settings

parsing.BATCH_LINES = 50  # so that a kill falls between batches and into them
Payload = StatsPayload
handle = StatsWorker(load_settings(StatsSettings)).handle
