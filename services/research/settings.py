"""What the research worker reads from its environment, beside the settings of every worker."""

from dataclasses import dataclass

from sidelinja_jobs.settings import setting


@dataclass(frozen=True)
class ResearchSettings:
    """Limits of the process that reads pastes."""

    clean_seconds: float = setting(
        "CLEAN_SECONDS", default=60.0, minimum=1, maximum=3600, help="longest time that a paste may take to clean"
    )
    clean_memory_mb: int = setting(
        "CLEAN_MEMORY_MB", default=768, minimum=128, maximum=65536, help="address space of the process that cleans"
    )
    clean_max_jobs: int = setting(
        "CLEAN_MAX_JOBS", default=200, minimum=0, maximum=1_000_000, help="pastes of one such process; 0 = no limit"
    )
