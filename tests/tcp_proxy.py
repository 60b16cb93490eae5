"""A TCP proxy between a worker and its server that can go silent, or cut a connection at a chosen statement."""

import contextlib
import selectors
import socket
import threading
from dataclasses import dataclass, field
from types import TracebackType

from psycopg.conninfo import make_conninfo

CHUNK_BYTES = 65536


@dataclass
class Cut:
    """Cuts the first connection that carries `word`."""

    word: bytes
    in_answer: bool  # else in what the client sends
    answered: bool  # after the server has done it, of which the client never hears
    happened: threading.Event = field(default_factory=threading.Event)


class Proxy:
    """Listens on a loopback port, by default one of its own, and forwards to the server. A context manager."""

    def __init__(self, host: str, port: int, *, listen_on: int = 0) -> None:
        self._target = (host, port)
        self._listener = socket.create_server(("127.0.0.1", listen_on))
        self.port: int = self._listener.getsockname()[1]
        self._forwarding = threading.Event()
        self._forwarding.set()
        self.holds_something = threading.Event()  # since it was frozen last
        self._closed = threading.Event()
        self._cut: Cut | None = None
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def __enter__(self) -> "Proxy":
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._closed.set()
        self._forwarding.set()
        self._listener.close()
        for thread in self._threads:
            thread.join(5)

    def dsn(self, dsn: str) -> str:
        """The same connection by way of this proxy."""
        return make_conninfo(dsn, host="127.0.0.1", port=self.port)

    def freeze(self) -> None:
        """From now on nothing passes in either direction; connections stay open, new ones get no answer."""
        self._forwarding.clear()
        self.holds_something.clear()

    def thaw(self) -> None:
        self._forwarding.set()

    def cut_at(self, word: str, *, answered: bool) -> Cut:
        """Cuts one connection at the next message to the server that holds the word."""
        self._cut = Cut(word.encode(), in_answer=False, answered=answered)
        return self._cut

    def cut_at_answer(self, word: str) -> Cut:
        """Cuts one connection in place of the next answer of the server that holds the word."""
        self._cut = Cut(word.encode(), in_answer=True, answered=False)
        return self._cut

    def _start(self, target: object, *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        self._listener.settimeout(0.1)
        while not self._closed.is_set():
            with contextlib.suppress(TimeoutError, OSError):
                self._start(self._forward, self._listener.accept()[0])

    def _forward(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError), socket.create_connection(self._target) as server:
            client.settimeout(5)
            with selectors.DefaultSelector() as selector:
                selector.register(client, selectors.EVENT_READ, server)
                selector.register(server, selectors.EVENT_READ, client)
                while not self._closed.is_set():
                    for key, _ in selector.select(0.1):
                        if not self._forwarding.is_set():
                            self.holds_something.set()
                        self._forwarding.wait()
                        if not self._pass_on(key.fileobj, key.data, is_client=key.fileobj is client):
                            return

    def _pass_on(self, source: socket.socket, target: socket.socket, *, is_client: bool) -> bool:
        """Forwards what has come; false when the connection is over."""
        content = source.recv(CHUNK_BYTES)
        if not content or self._closed.is_set():
            return False
        cut = self._cut
        if cut is None or cut.in_answer is is_client or cut.word not in content:
            target.sendall(content)
            return True
        self._cut = None
        if cut.answered:
            target.sendall(content)
            target.recv(CHUNK_BYTES)  # the server has done it, and nobody hears of it
        cut.happened.set()
        return False
