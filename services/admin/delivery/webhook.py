"""The sink `webhook`: a signed CloudEvents document for each event, by the rules of Standard Webhooks."""

from uuid import UUID

from services.admin.delivery.cloud_events import headers
from services.admin.delivery.events import Event, cloud_event
from services.admin.delivery.settings import DeliverySettings
from services.admin.delivery.signature import signing_key
from services.admin.delivery.sinks import Outgoing
from services.admin.delivery.verdicts import OK, Answer, Kind, Verdict, retry_after_seconds, told
from sidelinja_jobs.errors import SettingsError
from sidelinja_jobs.redaction import redact_text

GONE = 410
PASSING = frozenset({408, 409, 425, 429})  # of the 4xx: those that another moment may mend
REDIRECTS = range(300, 400)


class Webhook:
    """A receiver of webhooks."""

    name = "webhook"
    kind = "webhook"

    def __init__(self, url: str, secrets: list[str], source: str) -> None:
        self.url = url
        self._keys = [signing_key(secret) for secret in secrets]
        self._source = source

    @classmethod
    def from_settings(cls, settings: DeliverySettings) -> "Webhook":
        """
        Raises:
            SettingsError: a secret is none.
        """
        given = {
            "DELIVERY_WEBHOOK_SECRET": settings.webhook_secret,
            "DELIVERY_WEBHOOK_OLD_SECRET": settings.webhook_old_secret,
        }
        secrets = []
        for name, secret in given.items():
            if secret is None:
                continue
            try:
                signing_key(secret)
            except ValueError as error:
                raise SettingsError(f"settings: {name} is (hidden), {error}") from error
            secrets.append(secret)
        return cls(settings.webhook_url or "", secrets, settings.source)

    def request(self, event: Event, epoch: UUID) -> Outgoing:
        body = cloud_event(event, self._source, epoch)
        return Outgoing(self.url, headers(self._keys, f"evt_{epoch.hex}_{event.event_id}", body), body)

    def judge(self, answer: Answer) -> Verdict:
        status = answer.status
        if 200 <= status < 300:
            return OK
        if status == GONE:
            return Verdict(Kind.DISABLE, f"the receiver wants no more events ({told(answer)})")
        if status in REDIRECTS:
            where = redact_text(answer.headers.get("location", "elsewhere"))[:200]
            return Verdict(
                Kind.PARK,
                f"the receiver sends on to {where!r} ({status}), which is not followed: set the final address",
            )
        if 400 <= status < 500 and status not in PASSING:
            return Verdict(Kind.PARK, f"the receiver refuses the event ({told(answer)})")
        return Verdict(
            Kind.RETRY, f"the receiver failed ({told(answer)})", retry_after_seconds=retry_after_seconds(answer.headers)
        )
