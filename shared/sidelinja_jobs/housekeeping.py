"""What the lease thread does now and then beside heartbeats: the worker's own row, stray claims, sweeps."""

import math
import random
import time
from collections.abc import Callable, Sequence

from sidelinja_jobs import queue
from sidelinja_jobs.database import QueueConnection
from sidelinja_jobs.log import get_logger
from sidelinja_jobs.metrics import WorkerMetrics
from sidelinja_jobs.models import Rules
from sidelinja_jobs.run import Run

WORKER_BEAT_SECONDS = 15.0  # a worker not seen for 60 s is forgotten, db/init/0007_sweep.sql
DELIVERY_SECONDS = 20.0  # how long the kernel may still deliver what was sent, database.py tcp_user_timeout


class Housekeeping:
    """Of one worker process."""

    def __init__(
        self,
        worker_id: str,
        rules: Rules,
        claim_seconds: float,
        register: Callable[[QueueConnection], object],
        metrics: WorkerMetrics,
    ) -> None:
        self._worker_id, self._rules, self._claim_seconds = worker_id, rules, claim_seconds
        self._register, self._metrics = register, metrics
        self._log = get_logger(worker_id=worker_id)
        now = time.monotonic()
        self._beat_at = now + WORKER_BEAT_SECONDS
        self._sweep_at = now + self._sweep_wait()
        self._strays_until = self._strays_at = now

    def claim_failed(self) -> None:
        """A claim raised: it may have succeeded all the same, or still be on its way."""
        self._strays_until = math.inf

    def claimed(self, now: float) -> None:
        """A claim has succeeded."""
        if self._strays_until == math.inf:
            self._strays_until = now + DELIVERY_SECONDS + self._claim_seconds + 2

    def keep(self, conn: QueueConnection, runs: Sequence[Run]) -> bool:
        """Does what is due; says whether the worker's row was seen to. Raises what psycopg raises."""
        now = time.monotonic()
        was_seen_to = now >= self._beat_at
        if was_seen_to:
            self._beat_at = now + WORKER_BEAT_SECONDS
            if not queue.beat_worker(conn, self._worker_id):
                self._register(conn)
        if self._strays_at <= now < self._strays_until:
            self._strays_at = now + 1.0
            count = queue.release_strays(conn, self._worker_id, runs, self._claim_seconds + 1)
            if count:
                self._log.warning("jobs released: the answer to their claim was lost", jobs=count)
        if now >= self._sweep_at:
            self._sweep_at = now + self._sweep_wait()
            counts = queue.sweep(conn)
            self._metrics.rescued_runs.inc(counts["rescued"])
            if any(counts.values()):
                self._log.info("swept", **counts)
        return was_seen_to

    def _sweep_wait(self) -> float:
        # A quarter of the lease, at most 30 s, spread so that many workers don't sweep at once.
        return min(max(self._rules.beat_seconds, 0.5), 30.0) * random.uniform(0.8, 1.2)  # noqa: S311
