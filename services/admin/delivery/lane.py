"""One HTTP connection to a receiver, and one request at a time on it.

What a receiver can do is bounded: a try ends at its deadline whatever drips in, redirects are not followed, of a body
only the beginning is read, cookies are forgotten. The deadline is kept from outside (`expire`), by shutting the socket
down, since no time-out of a single read sees the whole of a slow answer.
"""

import contextlib
import socket
import threading
import time
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import httpx

from services.admin.delivery.settings import is_near
from services.admin.delivery.sinks import Outgoing
from services.admin.delivery.verdicts import Answer
from sidelinja_jobs.redaction import redact_text
from sidelinja_jobs.version import VERSION

CONNECT_SECONDS = 5.0
KEEPALIVE_SECONDS = 5.0  # shorter than a server's own, so that it rarely closes what is about to be used
LONGEST_BODY = 64 * 1024  # bytes that are read; a connection with more to come is closed
KEPT_BODY = 2048  # bytes that are kept, for the message
_STOPPED = "stopped"
_STALE = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)


class UnansweredError(Exception):
    """There was no answer. The message says why, without the address."""


class CutOffError(Exception):
    """The try was cut off by `stop`: whether it arrived is unknown."""


class Lane:
    """Belongs to one thread at a time; `expire` and `stop` are for another one."""

    def __init__(self, url: str, try_seconds: float) -> None:
        self._url, self._try_seconds = url, try_seconds
        self._http: httpx.Client | None = None
        self._lock = threading.Lock()  # around what the other thread looks at
        self._socket: socket.socket | None = None
        self._has_connected = False
        self._deadline: float | None = None
        self._ended_by: str | None = None

    def post(self, outgoing: Outgoing) -> Answer:
        """Sends a request once, and once more where a kept connection had been closed before it was sent.

        Raises:
            UnansweredError: nothing came that could be taken for an answer.
            CutOffError: somebody called `stop`.
        """
        with self._lock:
            self._deadline, self._ended_by = time.monotonic() + self._try_seconds, None
        try:
            return self._sent(outgoing)
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError) as error:
            if self._ended_by == _STOPPED:
                raise CutOffError from None
            # Without its cause: httpx repeats in some of its messages what was sent.
            raise UnansweredError(self._told(error)) from None
        finally:
            with self._lock:
                self._deadline = None

    def expire(self, now: float) -> None:
        """Ends a try that is over its time; called now and then by the thread that waits for the lanes."""
        with self._lock:
            if self._deadline is not None and now >= self._deadline:
                self._end(f"no answer within {self._try_seconds:g} s")

    def stop(self) -> None:
        """Ends the present try."""
        with self._lock:
            if self._deadline is not None:
                self._end(_STOPPED)

    def close(self) -> None:
        if self._http is not None:
            self._http.close()
            self._http = None
        with self._lock:
            self._follow(None)

    def _end(self, why: str) -> None:
        self._ended_by = self._ended_by or why
        if self._socket is not None:
            with contextlib.suppress(OSError):  # closed already, or TLS takes it over just now, which has its own time
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)  # the plain one, under TLS, too

    def _sent(self, outgoing: Outgoing) -> Answer:
        self._has_connected = False
        try:
            return self._exchange(outgoing)
        except _STALE:
            self.close()
            if self._has_connected or self._ended_by is not None:
                raise
        return self._exchange(outgoing)

    def _exchange(self, outgoing: Outgoing) -> Answer:
        client = self._client()
        request = client.build_request(
            "POST", outgoing.url, content=outgoing.body, headers=outgoing.headers, extensions={"trace": self._trace}
        )
        response = client.send(request, stream=True)
        try:
            answer = Answer(
                response.status_code,
                {name.lower(): value for name, value in response.headers.items()},
                _begin(response),
            )
        finally:
            # Closes the connection, too, where the body was not read to its end.
            response.close()
            client.cookies.clear()
        return answer

    def _client(self) -> httpx.Client:
        if self._http is None:
            seconds = httpx.Timeout(self._try_seconds, connect=min(CONNECT_SECONDS, self._try_seconds))
            self._http = httpx.Client(
                timeout=seconds,
                limits=httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=KEEPALIVE_SECONDS),
                follow_redirects=False,
                trust_env=not is_near(urlsplit(self._url).hostname or ""),  # a proxy cannot reach what is here
                verify=_tls(),
                headers={"User-Agent": f"jobbko/{VERSION}", "Accept-Encoding": "identity"},
            )
        return self._http

    def _trace(self, event: str, info: dict[str, Any]) -> None:
        """Follows the connection that this request goes over."""
        _prefix, _, step = event.partition(".")
        with self._lock:
            if step in ("connect_tcp.complete", "start_tls.complete"):
                self._has_connected = True
                self._follow(info["return_value"].get_extra_info("socket"))

    def _follow(self, connection: socket.socket | None) -> None:
        self._socket = connection
        if connection is not None and self._ended_by is not None:  # it was over its time while it connected
            self._end(self._ended_by)

    def _told(self, error: Exception) -> str:
        if self._ended_by is not None:
            return self._ended_by
        if isinstance(error, httpx.ConnectTimeout):
            return "no connection within the time for one"
        if isinstance(error, httpx.TimeoutException):
            return f"no answer within {self._try_seconds:g} s"
        said = redact_text(str(error)).replace(self._url, "its address")
        if isinstance(error, httpx.ConnectError):
            return f"no connection: {said}"
        return f"the connection broke: {type(error).__name__}: {said}"


def _begin(response: httpx.Response) -> str:
    """The beginning of the body. One that breaks off, or never ends, leaves the status as it is."""
    kept, received = b"", 0
    with contextlib.suppress(httpx.HTTPError, httpx.StreamError):
        for piece in response.iter_raw():
            kept += piece[: KEPT_BODY - len(kept)]
            received += len(piece)
            if received > LONGEST_BODY:
                break
    return kept.decode("utf-8", "replace")


@cache
def _tls() -> Any:
    """One for the process: the certificates take a megabyte and a twentieth of a second each time."""
    return httpx.create_ssl_context()
