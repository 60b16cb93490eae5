"""How quick the jobs of a type are: how many are claimed, whether ahead of their turn, and which wait for others."""

from sidelinja_jobs.models import Rules

QUICK_SECONDS = 0.05  # a job that takes longer is settled alone
AHEAD_SECONDS = 1.0  # the next batch is claimed ahead of its turn while a batch takes less


class Pace:
    """Of one worker, learned from its batches."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._seconds_per_job: float | None = None
        self._was_quick = False

    @property
    def limit(self) -> int:
        """Jobs to claim: no more than are expected to start within a quarter of the lease."""
        if self._seconds_per_job is None:
            return self._rules.batch_size
        fitting = self._rules.beat_seconds / max(self._seconds_per_job, 1e-9)
        return max(1, min(self._rules.batch_size, int(fitting)))

    def is_ahead_worth(self, count: int) -> bool:
        """Whether a batch of that many is over before the next one has waited long."""
        known = self._seconds_per_job
        return known is not None and known * count < min(AHEAD_SECONDS, self._rules.beat_seconds)

    def note_job(self, seconds: float) -> bool:
        """Whether a job that took so long may wait for others: the one before it was quick, too."""
        is_quick = seconds < QUICK_SECONDS
        may_wait, self._was_quick = is_quick and self._was_quick, is_quick
        return may_wait

    def note_batch(self, seconds: float, count: int) -> None:
        self._seconds_per_job = seconds / count
