"""What the process runs: a forwarder for each sink, and the desk of the alerts that Prometheus hands over."""

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from services.admin.alerts.channels import channels_of
from services.admin.alerts.desk import AlertDesk
from services.admin.alerts.receiver import receiving
from services.admin.alerts.settings import AlertSettings
from services.admin.delivery.forwarder import Forwarder
from services.admin.delivery.metrics import DeliveryMetrics
from services.admin.delivery.settings import DeliverySettings
from services.admin.delivery.sinks import Sink
from services.admin.delivery.spacetimedb import SpacetimeDB
from services.admin.delivery.webhook import Webhook
from sidelinja_jobs.errors import JobQueueError
from sidelinja_jobs.log import get_logger
from sidelinja_jobs.metrics import serve_metrics

END_SECONDS = 8.0  # for all of them to record what they have sent; what they drain takes less

log = get_logger()


def sinks_of(settings: DeliverySettings) -> list[Sink]:
    """The sinks that the settings name.

    Raises:
        SettingsError: one of them cannot be made.
    """
    sinks: list[Sink] = []
    if settings.webhook_url is not None:
        sinks.append(Webhook.from_settings(settings))
    if settings.spacetimedb_url is not None:
        sinks.append(SpacetimeDB.from_settings(settings))
    return sinks


class Team:
    """Works while it is entered.

    Raises:
        SettingsError: a sink or a channel cannot be made, or the port of the metrics is taken.
    """

    def __init__(self, settings: DeliverySettings, alerts: AlertSettings) -> None:
        sinks = sinks_of(settings)
        metrics = DeliveryMetrics()
        self._stopping = threading.Event()
        self._forwarders = [Forwarder(sink, settings, self._stopping, metrics.of(sink.name)) for sink in sinks]
        channels = channels_of(alerts, settings.source)
        desk = AlertDesk(settings, channels, self._stopping, alerts.repeat_hours * 3600)
        self._threads = [
            threading.Thread(target=self._run, args=(work,), daemon=True)
            for work in (*(forwarder.run for forwarder in self._forwarders), desk.run)
        ]
        self.failure: BaseException | None = None
        self._listen(settings, desk)

    @staticmethod
    def _listen(settings: DeliverySettings, desk: AlertDesk) -> None:
        """Metrics, and beside them the alerts' way in."""
        server = serve_metrics(settings.metrics_port, settings.metrics_host)
        if server is not None and (metrics := server.get_app()) is not None:
            server.set_app(receiving(desk.record, metrics))

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        end = time.monotonic() + END_SECONDS
        for thread in self._threads:
            thread.join(max(end - time.monotonic(), 0))
        log.info("forwarder stopped", is_clean=not any(thread.is_alive() for thread in self._threads))

    @property
    def is_well(self) -> bool:
        return all(forwarder.is_well for forwarder in self._forwarders)

    @property
    def is_refused(self) -> bool:
        """Whether settings, login or schema are why it failed."""
        return isinstance(self.failure, JobQueueError)

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            if isinstance(error, JobQueueError):
                log.error("cannot go on", problem=str(error))
            else:
                log.critical("a thread died", exc_info=True)
            self.failure = error
