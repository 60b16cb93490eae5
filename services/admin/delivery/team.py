"""The forwarders of a process, one thread for each sink."""

import threading
import time
from types import TracebackType
from typing import Self

from services.admin.delivery.forwarder import Forwarder
from services.admin.delivery.metrics import DeliveryMetrics
from services.admin.delivery.settings import DeliverySettings
from services.admin.delivery.sinks import Sink
from services.admin.delivery.spacetimedb import SpacetimeDB
from services.admin.delivery.webhook import Webhook
from sidelinja_jobs.errors import JobQueueError, SettingsError
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
    """Works while it is entered."""

    def __init__(self, settings: DeliverySettings) -> None:
        sinks = sinks_of(settings)
        try:
            serve_metrics(settings.metrics_port, settings.metrics_host)
        except OSError as error:
            raise SettingsError(
                f"METRICS_PORT {settings.metrics_port} cannot be opened: {error}; 0 switches metrics off"
            ) from error
        metrics = DeliveryMetrics()
        self._stopping = threading.Event()
        self._forwarders = [Forwarder(sink, settings, self._stopping, metrics.of(sink.name)) for sink in sinks]
        self._threads = [
            threading.Thread(target=self._run, args=(forwarder,), name=sink.name, daemon=True)
            for sink, forwarder in zip(sinks, self._forwarders, strict=True)
        ]
        self.failure: BaseException | None = None

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

    def _run(self, forwarder: Forwarder) -> None:
        try:
            forwarder.run()
        except BaseException as error:
            if isinstance(error, JobQueueError):
                log.error("cannot go on", problem=str(error))
            else:
                log.critical("a forwarder died", exc_info=True)
            self.failure = error
