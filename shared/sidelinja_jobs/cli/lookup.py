"""From what a person types for a job to its id: a whole UUID, or the first six or more characters of one."""

import re
from collections.abc import Iterable
from uuid import UUID

from sidelinja_jobs.cli.connection import Database
from sidelinja_jobs.cli.exits import NotFoundError, RefusedError
from sidelinja_jobs.cli.rows import IdRow

SHORTEST_PREFIX = 6
SHOWN_CHARACTERS = 8
_HEX = re.compile(r"[0-9a-f]+", re.ASCII)


def id_range(text: str) -> tuple[UUID, UUID]:
    """The lowest and the highest id that begin like this.

    Raises:
        RefusedError: too short, or not hexadecimal.
    """
    digits = text.strip().lower().replace("-", "")
    if not _HEX.fullmatch(digits) or len(digits) > 32:
        raise RefusedError(f"{text!r} is not a job id", "give a UUID or its first characters, as jobs list shows them")
    if len(digits) < SHORTEST_PREFIX:
        raise RefusedError(f"{text!r} is too short for a job id", f"give at least {SHORTEST_PREFIX} characters")
    return UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))


def find_job(database: Database, text: str) -> UUID:
    """The id of the one job that is meant.

    Raises:
        NotFoundError: no job begins like this.
        RefusedError: several do.
    """
    lower, upper = id_range(text)
    found = [row.id for row in database.rows("find_ids", IdRow, lower=lower, upper=upper)]
    if not found:
        raise NotFoundError(f"there is no job {text}", "jobs list shows the newest ones")
    if len(found) > 1:
        raise RefusedError(f"{text!r} fits several jobs: {', '.join(map(str, found))}", "give more characters")
    return found[0]


def find_jobs(database: Database, texts: Iterable[str]) -> list[UUID]:
    """The ids of all that are meant, each once, in the order given."""
    return list(dict.fromkeys(find_job(database, text) for text in texts))


def short(job_id: UUID | None) -> str:
    """The beginning of an id, enough to find the job again."""
    return "" if job_id is None else str(job_id)[:SHOWN_CHARACTERS]
