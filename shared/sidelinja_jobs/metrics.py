"""Prometheus metrics of a worker process, all with the label job_type.

Counters say what this process did; what the table holds is told by another exporter, once, not by every replica.
Series are made at start, so that the first error has a zero before it.
"""

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import accumulate
from wsgiref.simple_server import WSGIServer

import prometheus_client
from prometheus_client import REGISTRY, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from sidelinja_jobs.errors import SettingsError

OUTCOMES = ("completed", "retry", "error", "snoozed", "released", "cancelled", "lost_lease")
ERROR_KINDS = (
    "timeout",
    "memory",
    "provider_4xx",
    "provider_429",
    "provider_5xx",
    "bad_input",
    "crash",
    "other",
)
CHILD_ENDS = ("died", "timeout", "stopped", "recycle", "closed")
# From 0.1 s to 4 h: a statistics batch to a long episode on a slow machine.
DURATION_BUCKETS = (0.1, 0.5, 1, 5, 15, 60, 300, 900, 1800, 3600, 7200, 14400)

_KIND_BY_CLASS = {
    "timeout": "timeout",
    "stalled": "timeout",
    "engine_stalled": "timeout",
    "MemoryError": "memory",
    "out_of_memory": "memory",
    "child_died": "crash",
    "crash": "crash",
    "poison_unit": "crash",
    "rate_limited": "provider_429",
    "upstream": "provider_5xx",
    "transport": "provider_5xx",
    "empty_output": "provider_5xx",
    "model_unavailable": "provider_4xx",
    "policy_filtered": "provider_4xx",
    "refused": "provider_4xx",
    "config": "provider_4xx",
}


def error_kind(error_class: str, is_permanent: bool) -> str:
    """The closed set of kinds that errors are counted by. What no retry can help is the input's fault."""
    if error_class in ERROR_KINDS:
        return error_class
    return _KIND_BY_CLASS.get(error_class, "bad_input" if is_permanent else "other")


class BulkHistogram(Collector):
    """A histogram of seconds that takes many values at once: the library's own costs more than a small job does."""

    def __init__(self, name: str, text: str, label_names: list[str]) -> None:
        self._name, self._text, self._label_names = name, text, label_names
        self._counts: dict[tuple[str, ...], list[int]] = {}
        self._sums: dict[tuple[str, ...], float] = {}
        self._lock = threading.Lock()
        REGISTRY.register(self)

    def observe(self, labels: tuple[str, ...], values: Iterable[float]) -> None:
        """Adds values to the series of these labels, which is there from then on; below 0 counts as 0."""
        with self._lock:
            counts = self._counts.setdefault(labels, [0] * (len(DURATION_BUCKETS) + 1))
            total = self._sums.get(labels, 0.0)
            for value in values:
                counts[bisect_left(DURATION_BUCKETS, value)] += 1
                total += max(value, 0.0)
            self._sums[labels] = total

    def describe(self) -> Iterable[Metric]:
        return [HistogramMetricFamily(self._name, self._text, labels=self._label_names)]

    def collect(self) -> Iterable[Metric]:
        family = HistogramMetricFamily(self._name, self._text, labels=self._label_names)
        bounds = [*map(floatToGoString, DURATION_BUCKETS), "+Inf"]
        with self._lock:
            for labels, counts in self._counts.items():
                family.add_metric(labels, list(zip(bounds, accumulate(counts), strict=True)), self._sums[labels])
        return [family]


class WorkerMetrics:
    """The metrics of one worker process; made once per process."""

    def __init__(self, job_type: str, worker_id: str, version: str) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # or each counter counts twice as a series
        self._job_type = job_type
        by_type = ["job_type"]
        info = Gauge("jobqueue_worker_info", "1 for a worker that lives", ["job_type", "version", "worker_id"])
        info.labels(job_type, version, worker_id).set(1)

        def gauge(name: str, text: str) -> Gauge:
            return Gauge(name, text, by_type).labels(job_type)

        def counter(name: str, text: str) -> Counter:
            return Counter(name, text, by_type).labels(job_type)

        self.last_poll = gauge("jobqueue_last_poll_timestamp_seconds", "Last claim without an error")
        self.last_completed = gauge("jobqueue_last_completed_timestamp_seconds", "Last completed job")
        self.in_progress = gauge("jobqueue_jobs_in_progress", "Jobs held now")
        self.attempt_started = gauge(
            "jobqueue_current_attempt_start_timestamp_seconds", "Start of the present run, 0 when idle"
        )
        self.db_reconnects = counter("jobqueue_db_reconnects_total", "Connections opened anew after a loss")
        self.heartbeat_failures = counter("jobqueue_heartbeat_failures_total", "Heartbeats that failed")
        self.rescued_runs = Counter(
            "jobqueue_rescued_runs_total", "Dead runs, of any type, that this process's sweeps put back"
        )
        self._queue_wait = BulkHistogram("jobqueue_queue_wait_seconds", "From due to claimed", by_type)
        self.claim_duration = Histogram("jobqueue_claim_duration_seconds", "Duration of a claim", by_type).labels(
            job_type
        )
        attempts = Counter("jobqueue_attempts_total", "Runs by how they ended", ["job_type", "outcome"])
        self._durations = BulkHistogram(
            "jobqueue_attempt_duration_seconds", "Duration of runs", ["job_type", "outcome"]
        )
        errors = Counter("jobqueue_errors_total", "Failures by kind", ["job_type", "kind"])
        self._attempts = {outcome: attempts.labels(job_type, outcome) for outcome in OUTCOMES}
        self._queue_wait.observe((job_type,), ())
        for outcome in OUTCOMES:
            self._durations.observe((job_type, outcome), ())
        self._errors = {kind: errors.labels(job_type, kind) for kind in ERROR_KINDS}

    def record_waits(self, waits: Iterable[float]) -> None:
        """Observes how long each of the jobs of a claim had been due."""
        self._queue_wait.observe((self._job_type,), waits)

    def record_ends(self, outcome: str, seconds: Sequence[float]) -> None:
        """Counts the ends of runs; `seconds` is how long each took."""
        self._attempts[outcome].inc(len(seconds))
        self._durations.observe((self._job_type, outcome), seconds)
        if outcome == "completed":
            self.last_completed.set_to_current_time()

    def record_end(
        self, outcome: str, seconds: float, error_class: str | None = None, is_permanent: bool = False
    ) -> None:
        """Counts the end of a run."""
        self.record_ends(outcome, [seconds])
        if error_class is not None and outcome in ("retry", "error"):
            self._errors[error_kind(error_class, is_permanent)].inc()


def count_child_ends(job_type: str) -> Callable[[str], None]:
    """For `ChildProcess(on_end=…)`: counts jobqueue_child_restarts_total by reason."""
    by_reason = {reason: _child_restarts().labels(job_type, reason) for reason in CHILD_ENDS}
    return lambda reason: by_reason[reason].inc()


@cache
def _child_restarts() -> Counter:
    """Made by the first worker that has a child: others do not show it. One of a name per process."""
    return Counter("jobqueue_child_restarts_total", "Ends of child processes", ["job_type", "reason"])


def serve_metrics(port: int, host: str) -> WSGIServer | None:
    """Serves /metrics from a thread of its own; port 0 = not at all. Returns the server, for who serves more there.

    Raises:
        SettingsError: the port is taken.
    """
    if not port:
        return None
    try:
        server, _thread = prometheus_client.start_http_server(port, addr=host)
    except OSError as error:
        raise SettingsError(f"METRICS_PORT {port} cannot be opened: {error}; 0 switches metrics off") from error
    return server
