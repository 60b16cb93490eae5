"""One fault: a refusal (status and body in place of an answer), a change of the answer, or something on the wire."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.openrouter_standin.answers import Answer, ChatCall
from tests.openrouter_standin.wire import Reply, Wire, event, json_reply


@dataclass(frozen=True)
class Fault:
    """`hits_first_model`: it falls on the first model alone, so that a request with fallbacks is spared."""

    name: str
    status: int | None = None
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)
    is_event: bool = False  # the body comes as an event of a stream
    change: Callable[[Answer], Answer] | None = None
    wire: Wire = field(default_factory=Wire)
    hits_first_model: bool = False

    def is_spared(self, call: ChatCall) -> bool:
        return self.hits_first_model and len(call.models) > 1

    def reply(self, call: ChatCall) -> Reply:
        assert self.status is not None
        if isinstance(self.body, bytes):
            return Reply(self.status, {"Content-Type": "text/html", **self.headers}, self.body, wire=self.wire)
        if self.is_event and call.is_stream:
            events = [event(self.body), event("[DONE]")]
            return Reply(200, {"Content-Type": "text/event-stream"}, events=events, said=["", ""], wire=self.wire)
        return json_reply(self.status, self.body, self.headers, self.wire)
