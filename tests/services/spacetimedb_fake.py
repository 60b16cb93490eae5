"""What SpacetimeDB 2.8.3 does with a reducer called over HTTP, as its documentation and source say; no server of it.

POST /v1/database/{name}/call/{reducer}: the content type is compared exactly (415, 400 without one), a token signed by
another host is a 401, an unknown database or reducer a 404, arguments that do not fit a 400, a reducer that raises a
530 with its message as the body; 200 with an empty body has committed. The server answers with an identity's token.
"""

import json
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.services.event_receiver import Receiver, Request, answering

TOKEN = "eyJ0eXAiOiJKV1QifQ.eyJoZXgiOiJjMjAwIn0.c2lnbmF0dXJl4711"
DATABASE, REDUCER = "jobbko", "job_event"


def is_u32(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**32


def is_u64(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**52  # exact in JSON


def is_string(value: Any) -> bool:
    return isinstance(value, str)


def is_optional_string(value: Any) -> bool:
    return value == {"none": []} or (isinstance(value, dict) and set(value) == {"some"} and is_string(value["some"]))


# The parameters of the example module's reducer, in their order.
PARAMETERS: dict[str, Callable[[Any], bool]] = {
    "epoch": is_string, "eventId": is_u64, "jobId": is_string, "jobType": is_string,
    "oldStatus": is_optional_string, "newStatus": is_string, "attempt": is_u32, "maxAttempts": is_u32,
    "errorClass": is_optional_string, "error": is_optional_string, "at": is_string, "textNb": is_string,
    "textEn": is_string,
}  # fmt: skip


@dataclass
class SpacetimeFake(Receiver):
    """`trouble` is answered in place of the call's own outcome."""

    calls: list[dict[str, Any]] = field(default_factory=list)
    trouble: tuple[int, bytes] | None = None
    table: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def first_ids(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for call in self.calls:
            ids = found.setdefault(call["jobId"], [])
            if call["eventId"] not in ids:
                ids.append(call["eventId"])
        return found

    def _serve(self, request: Request, connection: socket.socket) -> None:
        self.requests.append(request)
        status, body = self._outcome(request)
        answering(status, body, spacetime_identity="c200", spacetime_identity_token=TOKEN)(request, connection)

    def _outcome(self, request: Request) -> tuple[int, bytes]:
        route = re.fullmatch(r"POST /v1/database/([^/?]+)/call/([^/?]+) HTTP/1.1", request.line)
        if route is None:
            return 404, b""
        if "content-type" not in request.headers:
            return 400, b"missing content type"
        if request.headers["content-type"] != "application/json":
            return 415, b"Expected request with `Content-Type: application/json`"
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return 401, b"Invalid token"
        if self.trouble is not None:
            return self.trouble
        if route[1] != DATABASE or route[2] != REDUCER:
            return 404, b"no such database or reducer"
        return self._call(json.loads(request.body))

    def _call(self, values: Any) -> tuple[int, bytes]:
        if not isinstance(values, list) or len(values) != len(PARAMETERS):
            return 400, b"invalid arguments for reducer"
        arguments = dict(zip(PARAMETERS, values, strict=True))
        for name, fits in PARAMETERS.items():
            if not fits(arguments[name]):
                return 400, f"invalid arguments for reducer: {name}".encode()
        self.calls.append(arguments)
        row = self.table.get(arguments["jobId"])
        if row is None or row["epoch"] != arguments["epoch"] or row["eventId"] < arguments["eventId"]:
            self.table[arguments["jobId"]] = arguments
        return 200, b""
