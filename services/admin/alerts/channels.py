"""The ways to tell a person: a signed webhook for each alert, one mail for all of a moment."""

import smtplib
import ssl
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime, make_msgid
from math import inf
from typing import Any, Protocol

from services.admin.alerts.settings import AlertSettings
from services.admin.delivery.cloud_events import document, headers
from services.admin.delivery.lane import Lane, UnansweredError
from services.admin.delivery.signature import signing_key
from services.admin.delivery.sinks import Outgoing
from services.admin.delivery.verdicts import Answer, told
from sidelinja_jobs.errors import SettingsError

TYPE_PREFIX = "no.sidelinja.alert."
TRY_SECONDS = 15.0


@dataclass(frozen=True)
class Alert:
    """An alert that is to be told: that it fires, or that it is over."""

    fingerprint: str
    name: str
    severity: str
    labels: dict[str, str]
    summary: str
    next_step: str
    starts_at: datetime
    ends_at: datetime
    is_firing: bool
    tries: int

    @property
    def identity(self) -> str:
        """The same at every try, so that a receiver can tell a repetition."""
        ends = "firing" if self.is_firing else "over"
        return f"{self.fingerprint[:32]}_{int(self.starts_at.timestamp())}_{ends}"

    @property
    def line(self) -> str:
        """What a person reads first."""
        return f"{self.severity if self.is_firing else 'over'}: {self.summary}"


class UntoldError(Exception):
    """A channel did not take it; the message says why, without secrets."""


class Channel(Protocol):
    """A way to a person."""

    @property
    def name(self) -> str: ...

    def tell(self, alerts: Sequence[Alert]) -> None:
        """
        Raises:
            UntoldError: none of them may be taken for told.
        """

    @property
    def tells_together(self) -> bool:
        """Whether the alerts of a moment go in one message."""


class Webhook:
    """A CloudEvents document for each alert, signed by the rules of Standard Webhooks where there is a secret."""

    name = "webhook"
    tells_together = False

    def __init__(self, url: str, secret: str | None, source: str) -> None:
        self._keys = [signing_key(secret)] if secret else []
        self._url, self._source = url, source
        self._lane = Lane(url, TRY_SECONDS)

    def tell(self, alerts: Sequence[Alert]) -> None:
        for alert in alerts:
            body = _document(alert, self._source)
            answer = self._post(Outgoing(self._url, headers(self._keys, f"alert_{alert.identity}", body), body))
            if not 200 <= answer.status < 300:
                raise UntoldError(f"the receiver of alerts answered {told(answer)}")

    def _post(self, outgoing: Outgoing) -> Answer:
        clock = threading.Timer(TRY_SECONDS, self._lane.expire, (inf,))
        clock.daemon = True
        clock.start()
        try:
            return self._lane.post(outgoing)
        except UnansweredError as error:
            raise UntoldError(f"the receiver of alerts did not answer: {error}") from None
        finally:
            clock.cancel()


class Mail:
    """One mail with all alerts of a moment, through the operator's own server."""

    name = "mail"
    tells_together = True

    def __init__(self, settings: AlertSettings) -> None:
        self._settings = settings

    def tell(self, alerts: Sequence[Alert]) -> None:
        message = self._message(alerts)
        try:
            with self._connected() as server:
                server.send_message(message)
        except (smtplib.SMTPException, OSError) as error:
            said = str(error)
            if self._settings.smtp_password:
                said = said.replace(self._settings.smtp_password, "(hidden)")
            raise UntoldError(f"{self._settings.smtp_host} did not take the mail: {said}") from None

    def _connected(self) -> smtplib.SMTP:
        settings = self._settings
        context = ssl.create_default_context()
        if settings.smtp_security == "tls":
            server: smtplib.SMTP = smtplib.SMTP_SSL(
                settings.smtp_host, settings.smtp_port, timeout=TRY_SECONDS, context=context
            )
        else:
            server = smtplib.SMTP(settings.smtp_host, settings.smtp_port, timeout=TRY_SECONDS)
        try:
            if settings.smtp_security == "starttls":
                server.starttls(context=context)
            if settings.smtp_user:
                server.login(settings.smtp_user, settings.smtp_password or "")
        except BaseException:
            server.close()
            raise
        return server

    def _message(self, alerts: Sequence[Alert]) -> EmailMessage:
        message = EmailMessage()
        first, *others = alerts
        message["Subject"] = f"[Jobbkø] {first.line}"[:200] + (f" (+{len(others)})" if others else "")
        message["From"] = self._settings.mail_from
        message["To"] = ", ".join(self._settings.recipients)
        message["Date"] = format_datetime(datetime.now(UTC))
        message["Message-ID"] = make_msgid(domain="jobbko.invalid")
        message["Auto-Submitted"] = "auto-generated"  # RFC 3834: no out-of-office answers
        message.set_content("\n\n".join(map(_paragraph, alerts)) + "\n")
        return message


def channels_of(settings: AlertSettings, source: str) -> list[Channel]:
    """The channels that the settings name.

    Raises:
        SettingsError: the secret is none.
    """
    found: list[Channel] = []
    if settings.webhook_url is not None:
        try:
            found.append(Webhook(settings.webhook_url, settings.webhook_secret, source))
        except ValueError as error:
            raise SettingsError(f"settings: ALERT_WEBHOOK_SECRET is (hidden), {error}") from error
    if settings.recipients:
        found.append(Mail(settings))
    return found


def _paragraph(alert: Alert) -> str:
    since = f"{alert.starts_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    lines = [alert.line, f"  {alert.name}, since {since}"]
    if not alert.is_firing:
        lines[1] += f", until {alert.ends_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    if alert.labels:
        lines.append("  " + ", ".join(f"{name}={value}" for name, value in alert.labels.items()))
    if alert.is_firing and alert.next_step:
        lines.append(f"  Next: {alert.next_step}")
    return "\n".join(lines)


def _document(alert: Alert, source: str) -> bytes:
    facts: dict[str, Any] = {
        "name": alert.name,
        "severity": alert.severity,
        "is_firing": alert.is_firing,
        "labels": alert.labels,
        "summary": alert.summary,
        "next_step": alert.next_step,
        "starts_at": alert.starts_at.astimezone(UTC).isoformat(),
        "ends_at": None if alert.is_firing else alert.ends_at.astimezone(UTC).isoformat(),
    }
    return document(
        alert.identity,
        f"{TYPE_PREFIX}{'firing' if alert.is_firing else 'over'}",
        source=f"{source}/alerts",
        subject=alert.name,
        at=(alert.starts_at if alert.is_firing else alert.ends_at).astimezone(UTC).isoformat(),
        text=alert.line,  # what chat servers show of a webhook
        data=facts,
    )
