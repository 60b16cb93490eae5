"""How an answer goes over the wire: as one JSON body or as server-sent events, whole or broken."""

import contextlib
import gzip
import json
import os
import re
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

LOOK_SECONDS = 0.02
LONE = re.compile("[\ud800-\udfff]")
LINGER_NOT = struct.pack("ii", 1, 0)  # what is unsent is dropped, and the other side gets a reset


class ClientGoneError(Exception):
    """The client hung up."""


@dataclass
class Gate:
    """Holds an answer at a point until the test lets it go on."""

    reached: threading.Event = field(default_factory=threading.Event)
    opened: threading.Event = field(default_factory=threading.Event)

    def hold(self) -> None:
        self.reached.set()
        self.opened.wait(60)


@dataclass(frozen=True)
class Wire:
    """What happens on the way; the default is a healthy stream with one comment, as the service sends it."""

    comments: int = 1
    is_tight: bool = False  # `data:` without the space
    packet_bytes: int = 0  # each event in packets of so many bytes, which splits characters
    pause_seconds: float = 0  # between events
    events: int | None = None  # only so many events of the stream, then its `end`
    end: str = "done"  # done, eof (a clean end of the body), reset (a broken connection), silence
    starts_with: str = "headers"  # headers, silence (nothing comes at all), close (no byte of an answer)
    only_if_reused: bool = False  # `starts_with` holds only on a connection that has carried a request before
    is_gzip: bool = False
    closes_after: bool = False  # closes the kept-alive connection without having said so
    gate: Gate | None = None
    gate_at: str = "headers"  # headers (before them), answer (after them), end (before the last event)

    @property
    def is_broken(self) -> bool:
        """Whether the client cannot have all of it."""
        return self.end != "done" or self.events is not None


@dataclass(frozen=True)
class Reply:
    """A response: a body, or events."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    events: list[bytes] | None = None
    said: list[str] = field(default_factory=list)  # what the client has when so many events were sent
    wire: Wire = field(default_factory=Wire)


def json_reply(status: int, body: object, headers: Mapping[str, str] | None = None, wire: Wire | None = None) -> Reply:
    kind = {"Content-Type": "application/json", **(headers or {})}
    return Reply(status, kind, _json(body).encode(), wire=wire or Wire())


def event(data: Any, *, is_tight: bool = False) -> bytes:
    text = data if isinstance(data, str) else _json(data)
    return f"data:{'' if is_tight else ' '}{text}\n\n".encode()


def _json(data: Any) -> str:
    """Letters as they are, so that packets can split them; half a surrogate pair escaped, as no UTF-8 holds it."""
    return LONE.sub(lambda half: f"\\u{ord(half[0]):04x}", json.dumps(data, ensure_ascii=False))


class Delivery:
    """One reply on one connection. Raises ClientGoneError when nobody is there to take it."""

    def __init__(self, handler: BaseHTTPRequestHandler, closing: threading.Event) -> None:
        self._handler = handler
        self._socket: socket.socket = handler.connection
        self._closing = closing
        self.sent_events = 0

    def send(self, reply: Reply, on_whole: Callable[[], None] = lambda: None) -> None:
        """Sends it; `on_whole` is called when nothing but the last of it is still to go out."""
        wire = reply.wire
        self._pass(wire, "headers")
        try:
            if reply.events is None:
                self._send_body(reply, on_whole)
            else:
                self._send_events(reply, on_whole)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise ClientGoneError from error
        if wire.closes_after:
            self._handler.close_connection = True

    def be_silent(self) -> None:
        """Says nothing more until the client gives up."""
        while not self._closing.wait(LOOK_SECONDS):
            if self.is_client_gone():
                raise ClientGoneError

    def close(self, *, hard: bool = False) -> None:
        """Ends the connection here and now; `hard` as a crash does, with a reset."""
        self._handler.close_connection = True
        with contextlib.suppress(OSError):
            if hard:
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
                os.close(self._socket.detach())
            else:
                self._socket.shutdown(socket.SHUT_RDWR)

    def is_client_gone(self) -> bool:
        try:
            readable, _, _ = select.select([self._socket], [], [], 0)
            return bool(readable) and self._socket.recv(1, socket.MSG_PEEK) == b""
        except (OSError, ValueError):
            return True

    def _pass(self, wire: Wire, place: str) -> None:
        if wire.gate is not None and wire.gate_at == place:
            wire.gate.hold()
            if self.is_client_gone():
                raise ClientGoneError

    def _send_body(self, reply: Reply, on_whole: Callable[[], None]) -> None:
        body, headers = reply.body, dict(reply.headers)
        if reply.wire.is_gzip:
            body, headers["Content-Encoding"] = gzip.compress(body), "gzip"
        self._send_headers(reply.status, {**headers, "Content-Length": str(len(body))})
        self._pass(reply.wire, "answer")
        if reply.wire.end == "reset":
            self._handler.wfile.write(body[: len(body) // 2])
            self.close(hard=True)
            return
        on_whole()
        self._handler.wfile.write(body)

    def _send_events(self, reply: Reply, on_whole: Callable[[], None]) -> None:
        wire = reply.wire
        self._send_headers(reply.status, {**reply.headers, "Transfer-Encoding": "chunked"})
        self._pass(wire, "answer")
        events = list(reply.events or [])
        kept = events if wire.events is None else events[: wire.events]
        for number, one in enumerate(kept):
            if number == len(kept) - 1:
                self._pass(wire, "end")
                on_whole()
            for packet in _packets(one, wire.packet_bytes):
                self._write_chunk(packet)
            self.sent_events += 1
            if wire.pause_seconds:
                time.sleep(wire.pause_seconds)
                if self.is_client_gone():
                    raise ClientGoneError
        if wire.end == "silence":
            self.be_silent()
        elif wire.end == "reset":
            self.close(hard=True)
        else:
            self._handler.wfile.write(b"0\r\n\r\n")

    def _send_headers(self, status: int, headers: Mapping[str, str]) -> None:
        self._handler.send_response(status)
        for name, value in headers.items():
            self._handler.send_header(name, value)
        self._handler.end_headers()

    def _write_chunk(self, data: bytes) -> None:
        self._handler.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self._handler.wfile.flush()


def _packets(data: bytes, size: int) -> Iterator[bytes]:
    step = size or len(data)
    return (data[start : start + step] for start in range(0, len(data), step))
