"""Prometheus gauges of the alerts that are kept: absent while the database is away, since an old value deceives."""

from collections.abc import Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


class AlertGauges(Collector):
    """What the desk saw at its last look. Shown by the desk's thread, read by those of scrapes."""

    def __init__(self) -> None:
        self._state: dict[str, int] | None = None

    def show(self, state: dict[str, int]) -> None:
        """`state` is the row of alert_gauges."""
        self._state = state

    def hide(self) -> None:
        """Nothing is known now."""
        self._state = None

    def describe(self) -> Iterable[Metric]:
        """Nothing: there may be nothing to tell when this is registered."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Both gauges, or neither."""
        if (state := self._state) is not None:
            yield GaugeMetricFamily("jobqueue_alerts_firing", "Alerts that fire now", value=state["firing"])
            yield GaugeMetricFamily(
                "jobqueue_alerts_untold", "Alerts that a channel did not take at the last try", value=state["untold"]
            )
