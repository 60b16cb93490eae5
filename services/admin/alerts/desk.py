"""Where alerts are kept and told: the database's side of the receiver, and the thread that tells what is due."""

import random
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import psycopg
from prometheus_client import REGISTRY

from services.admin.alerts.channels import Alert, Channel, UntoldError
from services.admin.alerts.gauges import AlertGauges
from services.admin.alerts.unkept import Unkept
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
        self._unkept = Unkept()
        self._unkept_tries: dict[str, tuple[int, float]] = {}  # of each channel: tries in vain, when to try again
        self._gauges = AlertGauges()
        REGISTRY.register(self._gauges)

    def record(self, rows: list[dict[str, Any]]) -> None:
        """Keeps what Prometheus told; what cannot be kept is raised, and Prometheus tells it again.

        That is told from memory meanwhile.
        """
        with self._lock:
            try:
                self._in.open().execute(_SQL["record_alerts"], {"alerts": msgspec.json.encode(rows).decode()})
            except (psycopg.Error, SettingsError) as error:
                self._unkept.put(rows)
                log.warning("alerts could not be kept", count=len(rows), error=str(error))
                raise
            self._unkept.kept(rows)

    def run(self) -> None:
        """Tells what is due until told to stop."""
        while not self._stopping.wait(LOOK_SECONDS):
            try:
                for channel in self._channels:
                    self._tell_due(channel)
                (state,) = self._out.open().execute(_SQL["alert_gauges"]).fetchall()
                self._gauges.show(state)
            except (psycopg.Error, SettingsError) as error:
                self._gauges.hide()
                log.warning("the database does not say which alerts are due", error=str(error))
            for channel in self._channels:
                self._tell_unkept(channel)
        self._out.close()
        with self._lock:
            self._in.close()

    def _tell_due(self, channel: Channel) -> None:
        parameters = {"channel": channel.name, "repeat_seconds": self._repeat_seconds}
        due = [Alert(**row) for row in self._out.open().execute(_SQL["due_alerts"], parameters).fetchall()]
        ahead = [alert for alert in due if self._unkept.was_told_ahead(channel.name, alert)]
        self._settle(channel, ahead, None)
        for alerts in _messages(channel, [alert for alert in due if alert not in ahead]):
            error = _tell(channel, alerts)
            if error is None:
                self._unkept.told(channel.name, alerts, from_memory=False)
            self._settle(channel, alerts, error)

    def _settle(self, channel: Channel, alerts: list[Alert], error: str | None) -> None:
        parameters = {
            "channel": channel.name,
            "fingerprints": [alert.fingerprint for alert in alerts],
            "were_firing": [alert.is_firing for alert in alerts],
            "error": error,
            "wait_seconds": _wait_seconds(max((alert.tries for alert in alerts), default=0)) if error else 0.0,
        }
        self._out.open().execute(_SQL["settle_alerts"], parameters)

    def _tell_unkept(self, channel: Channel) -> None:
        tries, not_before = self._unkept_tries.get(channel.name, (0, 0.0))
        if time.monotonic() < not_before:
            return
        for alerts in _messages(channel, self._unkept.due(channel.name)):
            if _tell(channel, alerts) is not None:
                self._unkept_tries[channel.name] = (tries + 1, time.monotonic() + _wait_seconds(tries))
                return
            self._unkept.told(channel.name, alerts, from_memory=True)
        self._unkept_tries.pop(channel.name, None)


def _messages(channel: Channel, alerts: list[Alert]) -> list[list[Alert]]:
    """The alerts of a moment, as the channel takes them."""
    return [alerts] if channel.tells_together and alerts else [[alert] for alert in alerts]


def _tell(channel: Channel, alerts: list[Alert]) -> str | None:
    """Returns why it was not taken; None = it was."""
    error = None
    try:
        channel.tell(alerts)
    except UntoldError as untold:
        error = str(untold)
    for alert in alerts:
        log.info(
            "alert told" if error is None else "alert not told", channel=channel.name, alert=alert.name,
            is_firing=alert.is_firing, error=error,
        )  # fmt: skip
    return error


def _wait_seconds(tries: int) -> float:
    """After `tries` tries in vain and one more."""
    return WAITS_SECONDS[min(tries, len(WAITS_SECONDS) - 1)] * random.uniform(1, 1.2)  # noqa: S311
