"""The sink `spacetimedb`: each event is a call of a reducer over HTTP.

By the reference of SpacetimeDB 2.8.3 (POST /v1/database/{name}/call/{reducer}): the content type is compared exactly,
the body is a JSON array of the reducer's arguments in their order, an option is {"some": value} or {"none": []}, and
530 says that the reducer raised. The token goes into the header alone; as a query it would stand in logs.
"""

from typing import Any
from urllib.parse import quote
from uuid import UUID

import msgspec

from services.admin.delivery.events import LANGUAGES, Event
from services.admin.delivery.settings import DeliverySettings
from services.admin.delivery.sinks import Outgoing
from services.admin.delivery.verdicts import OK, Answer, Kind, Verdict, retry_after_seconds, told
from sidelinja_jobs.json_text import clean_text

REDUCER_RAISED = 530
MOST_TRIES_OF_A_RAISING_REDUCER = 5  # a fault in the module must not hold its job's events up for days
HOLDING = {
    400: "the arguments do not fit the reducer: is the module of this version published?",
    401: "the token is not valid there: was the host's key renewed?",
    402: "the database's energy is used up",
    403: "the module refuses the connection",
    404: "there is no such database or reducer",
    415: "the server wants another content type: is it SpacetimeDB 2?",
}
NOT_SCHEDULED = "not scheduled"  # a 404 that passes: the database is not on its host just now
PASSING = frozenset({408, 429})


class SpacetimeDB:
    """A reducer of a SpacetimeDB database."""

    name = "spacetimedb"
    kind = "spacetimedb"

    def __init__(self, url: str, database: str, reducer: str, token: str) -> None:
        self.url = f"{url.rstrip('/')}/v1/database/{quote(database, safe='')}/call/{quote(reducer, safe='')}"
        self._headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}

    @classmethod
    def from_settings(cls, settings: DeliverySettings) -> "SpacetimeDB":
        return cls(
            settings.spacetimedb_url or "",
            settings.spacetimedb_database or "",
            settings.spacetimedb_reducer,
            settings.spacetimedb_token or "",
        )

    def request(self, event: Event, epoch: UUID) -> Outgoing:
        return Outgoing(self.url, dict(self._headers), msgspec.json.encode(arguments(event, epoch)))

    def judge(self, answer: Answer) -> Verdict:
        status = answer.status
        if 200 <= status < 300:
            return OK
        if status == REDUCER_RAISED:
            return Verdict(
                Kind.RETRY, f"the reducer raised ({told(answer)})", most_tries=MOST_TRIES_OF_A_RAISING_REDUCER
            )
        if status == 404 and NOT_SCHEDULED in answer.text.lower():
            return Verdict(Kind.RETRY, f"the database is not running just now ({told(answer)})")
        if status in PASSING or status >= 500:
            return Verdict(
                Kind.RETRY,
                f"SpacetimeDB failed ({told(answer)})",
                retry_after_seconds=retry_after_seconds(answer.headers),
            )
        why = HOLDING.get(status, "it is no answer of SpacetimeDB: is a proxy in between?")
        return Verdict(Kind.HOLD, f"{why} ({told(answer)})")


def arguments(event: Event, epoch: UUID) -> list[Any]:
    """The reducer's arguments, in the order of the example module's `job_event`."""
    return [
        str(epoch),
        event.event_id,
        str(event.job_id),
        clean_text(event.job_type),
        option(event.old_status),
        event.new_status,
        event.attempt,
        event.max_attempts or 0,
        option(event.error_class and clean_text(event.error_class)),
        option(event.error),
        event.time,
        *(event.text(language) for language in LANGUAGES),
    ]


def option(value: Any) -> dict[str, Any]:
    """A value that may be missing, in SATS-JSON."""
    return {"none": []} if value is None else {"some": value}
