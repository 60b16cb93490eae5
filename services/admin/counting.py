"""Keeps job_hour up to date while the view runs, so that charts cost a page next to nothing."""

import asyncio

from services.admin.database import TROUBLE, Database
from sidelinja_jobs.log import get_logger

log = get_logger()

EVERY_SECONDS = 10.0
MOST_EVENTS = 20_000  # at once: a tenth of a second


async def keep_counting(database: Database) -> None:
    """Counts what has ended since, for ever; what piled up while no view ran, piece by piece."""
    while True:
        try:
            counted = await database.fetch_value("count_job_hours", most=MOST_EVENTS)
        except TROUBLE as error:
            log.warning("hours not counted", error=str(error).strip())
            counted = None
        await asyncio.sleep(0.1 if counted == MOST_EVENTS else EVERY_SECONDS)
