"""A server on loopback that does to each connection what a test wrote down, byte by byte."""

import json
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

PATIENCE = 5.0


@dataclass
class Request:
    line: str
    headers: dict[str, str]
    body: bytes


class Peer:
    """One connection, seen from the server."""

    def __init__(self, server: "ScriptedServer", connection: socket.socket) -> None:
        self._server = server
        self._connection = connection
        self._rest = b""

    def read(self) -> Request:
        while b"\r\n\r\n" not in self._rest:
            self._more()
        head, _, self._rest = self._rest.partition(b"\r\n\r\n")
        line, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (text.partition(": ") for text in lines)}
        length = int(headers.get("content-length", "0"))
        while len(self._rest) < length:
            self._more()
        body, self._rest = self._rest[:length], self._rest[length:]
        request = Request(line, headers, body)
        self._server.requests.append(request)
        return request

    def send(self, data: bytes) -> None:
        self._connection.sendall(data)

    def is_closed_within(self, seconds: float) -> bool:
        """Whether the client hangs up."""
        self._connection.settimeout(seconds)
        try:
            while self._connection.recv(65536):
                pass
        except TimeoutError:
            return False
        except ConnectionError:
            return True
        return True

    def _more(self) -> None:
        received = self._connection.recv(65536)
        if not received:
            raise ConnectionError("the client hung up")
        self._rest += received


Script = Callable[[Peer], None]


@dataclass
class ScriptedServer:
    """The n-th connection gets the n-th script; the last one serves all that follow."""

    scripts: list[Script]
    requests: list[Request] = field(default_factory=list)
    connection_count: int = 0
    _closing: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._closing.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(PATIENCE)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}/api/v1"

    def _accept(self) -> None:
        while not self._closing.is_set():
            try:
                connection, _address = self._listener.accept()
            except OSError:
                return
            script = self.scripts[min(self.connection_count, len(self.scripts) - 1)]
            self.connection_count += 1
            thread = threading.Thread(target=self._serve, args=(connection, script), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket, script: Script) -> None:
        with connection, suppress(OSError):
            connection.settimeout(PATIENCE)
            script(Peer(self, connection))


def http(status: int, body: bytes | str | dict[str, Any] = b"", **headers: str) -> bytes:
    """A whole answer with its length."""
    if isinstance(body, dict):
        headers = {"content_type": "application/json"} | headers
        body = json.dumps(body)
    raw = body.encode() if isinstance(body, str) else body
    names = {"content_length": str(len(raw))} | headers
    head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in names.items() if value)
    return f"HTTP/1.1 {status} X\r\n{head}\r\n".encode("latin-1") + raw


def stream_head(**headers: str) -> bytes:
    """The head of a stream that ends with the connection."""
    names = {"content_type": "text/event-stream", "connection": "close"} | headers
    return http(200, b"", content_length="", **names)


def event(content: str | None = None, finish: str | None = None, **more: Any) -> bytes:
    delta = {} if content is None else {"content": content}
    chunk = {"id": "gen-1", "model": "a/b", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]} | more
    return f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n".encode()


WHOLE = event('{"tittel": "på «tur» 😀"}') + event("", "stop", usage={"completion_tokens": 3}) + b"data: [DONE]\n\n"
