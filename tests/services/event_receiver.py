"""A receiver of webhooks on loopback: real sockets, and a behaviour that a test sets for each request."""

import json
import os
import socket
import socketserver
import threading
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from standardwebhooks import Webhook

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYqr"


@dataclass
class Request:
    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return self.line.split()[1]

    @property
    def document(self) -> Any:
        return json.loads(self.body)


Behaviour = Callable[[Request, socket.socket], None]


def answering(status: int, body: bytes = b"", **headers: str) -> Behaviour:
    """Answers every request with this."""
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head = f"HTTP/1.1 {status} X\r\n{lines}content-length: {len(body)}\r\n\r\n".encode()
    return lambda _request, connection: connection.sendall(head + body)


def resetting(_request: Request, connection: socket.socket) -> None:
    """Ends the connection with a reset, not an answer."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    os.close(connection.detach())  # close() would wait for the handler's own files
    raise ConnectionResetError("nothing was answered here")


def dripping(_request: Request, connection: socket.socket) -> None:
    """A head that comes byte by byte and never ends."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nx-drip: ")
    while not _closed(connection, 0.05):
        connection.sendall(b"x")
    raise ConnectionResetError("nothing was accepted here")


def silent(_request: Request, connection: socket.socket) -> None:
    """No answer at all, until the client goes."""
    with suppress(OSError):
        while not _closed(connection, 0.2):
            pass


def flooding(status: int) -> Behaviour:
    """An answer whose body never ends."""

    def flood(_request: Request, connection: socket.socket) -> None:
        with suppress(OSError):
            connection.sendall(f"HTTP/1.1 {status} X\r\nconnection: close\r\n\r\n".encode())
            while True:
                connection.sendall(b"x" * 65536)

    return flood


def _closed(connection: socket.socket, seconds: float) -> bool:
    connection.settimeout(seconds)
    try:
        return connection.recv(1, socket.MSG_PEEK) == b""
    except TimeoutError:
        return False


@dataclass
class Receiver:
    """Keeps every request. `behaviour` is what it does with the next ones; one for a job may stand in `by_job`."""

    behaviour: Behaviour = field(default_factory=lambda: answering(204))
    by_job: dict[str, Behaviour] = field(default_factory=dict)
    port: int = 0
    requests: list[Request] = field(default_factory=list)
    accepted: list[dict[str, Any]] = field(default_factory=list)  # documents that were answered with a 2xx

    def __enter__(self) -> Self:
        receiver = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                with suppress(OSError, ValueError):
                    while (request := _read(self.rfile)) is not None:
                        receiver._serve(request, self.connection)

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True
            request_queue_size = 64

        self._server = Server(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hooks/jobbko"

    def events_of(self, job_id: object) -> list[str]:
        """The statuses that arrived and were taken, in order, without repetitions."""
        found: dict[int, str] = {}
        for one in list(self.accepted):
            if one["subject"] == str(job_id):
                found.setdefault(one["data"]["event_id"], one["data"]["new_status"])
        return list(found.values())

    def first_ids(self) -> dict[str, list[int]]:
        """Ids of the events that were taken by job, in the order of their first arrival."""
        found: dict[str, list[int]] = defaultdict(list)
        for document in list(self.accepted):
            event_id = document["data"]["event_id"]
            if event_id not in found[document["subject"]]:
                found[document["subject"]].append(event_id)
        return dict(found)

    def _serve(self, request: Request, connection: socket.socket) -> None:
        self.requests.append(request)
        document = Webhook(SECRET).verify(request.body, request.headers)  # raises for a bad signature
        behaviour = self.by_job.get(document["subject"], self.behaviour)
        tap = _Tap(connection)
        behaviour(request, tap)  # type: ignore[arg-type]
        if tap.status.startswith(b"HTTP/1.1 2"):
            self.accepted.append(document)


class _Tap:
    """Sees what is answered."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self.status = connection, b""

    def sendall(self, data: bytes) -> None:
        self.status = self.status or data[:12]
        self._connection.sendall(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def _read(stream: Any) -> Request | None:
    line = stream.readline().decode("latin-1").rstrip("\r\n")
    if not line:
        return None
    headers = {}
    while text := stream.readline().decode("latin-1").rstrip("\r\n"):
        name, _, value = text.partition(":")
        headers[name.lower()] = value.strip()
    return Request(line, headers, stream.read(int(headers.get("content-length", "0"))))
