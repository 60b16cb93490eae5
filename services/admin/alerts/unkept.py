"""Alerts that the database could not keep, told from memory: that it is away is what an alert may have to tell.

What was told so is known to this process alone, and only until the database has heard of it.
"""

import threading
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from services.admin.alerts.channels import Alert

MOST_ALERTS = 500  # the oldest go first; a stack has some twenty rules


class Unkept:
    """Called from the receiver's threads and from the one that tells."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._alerts: dict[str, Alert] = {}  # by fingerprint, as Prometheus told them last
        self._firing: set[tuple[str, str]] = set()  # channel, fingerprint: told, and their end not yet
        self._ahead: set[tuple[str, str]] = set()  # channel, identity: told from memory; the database may not know

    def put(self, rows: Iterable[dict[str, Any]]) -> None:
        """Rows that the database did not take."""
        with self._lock:
            for row in rows:
                self._put(_alert(row))

    def kept(self, rows: Iterable[dict[str, Any]]) -> None:
        """Rows that it took. It goes on with what fires; the end of what it never heard of is still to be told here."""
        with self._lock:
            for alert in map(_alert, rows):
                self._alerts.pop(alert.fingerprint, None)
                if not alert.is_firing and any(fingerprint == alert.fingerprint for _, fingerprint in self._firing):
                    self._put(alert)

    def due(self, channel: str) -> list[Alert]:
        """What the channel has not been told: that it fires, or that what it was told of is over."""
        now = datetime.now(UTC)
        with self._lock:
            alerts = [replace(alert, is_firing=alert.ends_at > now) for alert in self._alerts.values()]
            return [alert for alert in alerts if alert.is_firing != ((channel, alert.fingerprint) in self._firing)]

    def told(self, channel: str, alerts: Iterable[Alert], *, from_memory: bool) -> None:
        """Whoever told them."""
        with self._lock:
            for alert in alerts:
                key = (channel, alert.fingerprint)
                if alert.is_firing:
                    self._firing.add(key)
                else:
                    self._firing.discard(key)
                if from_memory:
                    self._ahead.add((channel, alert.identity))

    def was_told_ahead(self, channel: str, alert: Alert) -> bool:
        """Whether it was told from memory; asked once, by the database's side."""
        with self._lock:
            key = (channel, alert.identity)
            found = key in self._ahead
            self._ahead.discard(key)
            return found

    def _put(self, alert: Alert) -> None:
        self._alerts.pop(alert.fingerprint, None)
        self._alerts[alert.fingerprint] = alert
        if len(self._alerts) > MOST_ALERTS:
            del self._alerts[next(iter(self._alerts))]


def _alert(row: dict[str, Any]) -> Alert:
    starts_at, ends_at = (datetime.fromisoformat(row[name]) for name in ("starts_at", "ends_at"))
    times = {"starts_at": starts_at, "ends_at": ends_at}
    return Alert(**(row | times), is_firing=ends_at > datetime.now(UTC), tries=0)
