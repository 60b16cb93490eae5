"""Prometheus metrics of the forwarder, with the label sink. Series are made at start, so that the first failure has a
zero before it."""

from prometheus_client import Counter, Gauge, Histogram, disable_created_metrics

OUTCOMES = ("delivered", "failed", "parked")
SECONDS_BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30)


class DeliveryMetrics:
    """The metrics of the process; made once."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # or each counter counts twice as a series
        sink = ["sink"]
        self.lag = Gauge("jobqueue_event_lag_seconds", "Age of the oldest event that is not delivered", sink)
        self.waiting = Gauge("jobqueue_event_waiting", "Events that are to be tried again or wait for such", sink)
        self.parked = Gauge("jobqueue_event_parked", "Events that were given up", sink)
        self.active = Gauge("jobqueue_event_sink_active", "1 in the forwarder that delivers, 0 in one that waits", sink)
        self.disabled = Gauge("jobqueue_event_sink_disabled", "1 while an operator has to enable the sink", sink)
        self.deliveries = Counter("jobqueue_event_deliveries_total", "Tries by what came of them", [*sink, "outcome"])
        self.seconds = Histogram(
            "jobqueue_event_delivery_duration_seconds", "Duration of a try", sink, buckets=SECONDS_BUCKETS
        )
        self.reconnects = Counter("jobqueue_event_db_reconnects_total", "Connections opened anew after a loss", sink)

    def of(self, sink: str) -> "SinkMetrics":
        return SinkMetrics(self, sink)


class SinkMetrics:
    """Those of one sink."""

    def __init__(self, all_sinks: DeliveryMetrics, sink: str) -> None:
        self.active, self.disabled = all_sinks.active.labels(sink), all_sinks.disabled.labels(sink)
        self.reconnects = all_sinks.reconnects.labels(sink)
        self._all, self._sink = all_sinks, sink
        self._deliveries = {outcome: all_sinks.deliveries.labels(sink, outcome) for outcome in OUTCOMES}
        self._seconds = all_sinks.seconds.labels(sink)

    def record_try(self, outcome: str, seconds: float) -> None:
        if outcome in self._deliveries:
            self._deliveries[outcome].inc()
        self._seconds.observe(seconds)

    def show_state(self, lag_seconds: float, waiting: int, parked: int) -> None:
        self._all.lag.labels(self._sink).set(lag_seconds)
        self._all.waiting.labels(self._sink).set(waiting)
        self._all.parked.labels(self._sink).set(parked)

    def hide_state(self) -> None:
        """Absent is better than stale: nothing is known while the database is away, or another one delivers."""
        for gauge in (self._all.lag, self._all.waiting, self._all.parked):
            gauge.remove_by_labels({"sink": self._sink})
