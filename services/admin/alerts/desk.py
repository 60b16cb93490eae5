"""Where alerts are kept and told: the database's side of the receiver, and the thread that tells what is due."""

import random
import threading
from pathlib import Path
from typing import Any

import msgspec
import psycopg
from prometheus_client import Gauge

from services.admin.alerts.channels import Alert, Channel, UntoldError
from sidelinja_jobs.database import Link, connect
from sidelinja_jobs.errors import SettingsError
from sidelinja_jobs.log import get_logger
from sidelinja_jobs.queries import load_queries
from sidelinja_jobs.settings import DatabaseSettings

LOOK_SECONDS = 2.0
WAITS_SECONDS = (10.0, 30.0, 120.0, 600.0, 1800.0)  # after the first, second, … try in vain; then the last again
_SQL = load_queries(Path(__file__).with_name("queries.sql"))

log = get_logger()


class AlertDesk:
    """`record` is called from the receiver's threads, `run` is a thread of its own; each has its connection."""

    def __init__(
        self, settings: DatabaseSettings, channels: list[Channel], stopping: threading.Event, repeat_seconds: float
    ) -> None:
        self._channels, self._stopping, self._repeat_seconds = channels, stopping, repeat_seconds
        self._in = Link(lambda: connect(settings, name="jobbko alerts in"), lambda: None)
        self._out = Link(lambda: connect(settings, name="jobbko alerts out"), lambda: None)
        self._lock = threading.Lock()
        self._firing = Gauge("jobqueue_alerts_firing", "Alerts that fire now")
        self._untold = Gauge("jobqueue_alerts_untold", "Alerts that a channel did not take at the last try")

    def record(self, rows: list[dict[str, Any]]) -> None:
        """Keeps what Prometheus told; what cannot be kept is raised, and Prometheus tells it again."""
        with self._lock:
            try:
                self._in.open().execute(_SQL["record_alerts"], {"alerts": msgspec.json.encode(rows).decode()})
            except (psycopg.Error, SettingsError) as error:
                log.warning("alerts could not be kept", count=len(rows), error=str(error))
                raise

    def run(self) -> None:
        """Tells what is due until told to stop."""
        while not self._stopping.wait(LOOK_SECONDS):
            try:
                for channel in self._channels:
                    self._tell_due(channel)
                state = self._out.open().execute(_SQL["alert_gauges"]).fetchone() or {}
                self._firing.set(state["firing"])
                self._untold.set(state["untold"])
            except (psycopg.Error, SettingsError) as error:
                log.warning("the database does not say which alerts are due", error=str(error))
        self._out.close()
        with self._lock:
            self._in.close()

    def _tell_due(self, channel: Channel) -> None:
        parameters = {"channel": channel.name, "repeat_seconds": self._repeat_seconds}
        due = [Alert(**row) for row in self._out.open().execute(_SQL["due_alerts"], parameters).fetchall()]
        for alerts in [due] if channel.together() and due else [[alert] for alert in due]:
            self._tell(channel, alerts)

    def _tell(self, channel: Channel, alerts: list[Alert]) -> None:
        error: str | None = None
        wait_seconds = 0.0
        try:
            channel.tell(alerts)
        except UntoldError as untold:
            error = str(untold)
            tries = max(alert.tries for alert in alerts)
            wait_seconds = WAITS_SECONDS[min(tries, len(WAITS_SECONDS) - 1)] * random.uniform(1, 1.2)  # noqa: S311
        for alert in alerts:
            log.info(
                "alert told" if error is None else "alert not told", channel=channel.name, alert=alert.name,
                is_firing=alert.is_firing, error=error,
            )  # fmt: skip
        parameters = {
            "channel": channel.name,
            "fingerprints": [alert.fingerprint for alert in alerts],
            "were_firing": [alert.is_firing for alert in alerts],
            "error": error,
            "wait_seconds": wait_seconds,
        }
        self._out.open().execute(_SQL["settle_alerts"], parameters)
