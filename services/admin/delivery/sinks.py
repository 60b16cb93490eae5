"""What a sink is: how an event becomes a request, and what the answer to it means."""

from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from services.admin.delivery.events import Event
from services.admin.delivery.verdicts import Answer, Verdict


@dataclass(frozen=True)
class Outgoing:
    """A POST as it goes out, secrets included: never printed."""

    url: str = field(repr=False)
    headers: dict[str, str] = field(repr=False)
    body: bytes = field(repr=False)


class Sink(Protocol):
    """A receiver. Methods are called from several threads at once and keep nothing."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def url(self) -> str: ...

    def request(self, event: Event, epoch: UUID) -> Outgoing:
        """The event as a request."""

    def judge(self, answer: Answer) -> Verdict:
        """What the answer means."""
