"""The connections to one server, by httpx, which is imported here and nowhere else.

Every time-out is set, since httpx has one of five seconds for whatever is not; redirects are not followed; what comes
is unpacked in bounded steps, so that neither a large answer nor a tightly packed one fills the memory.
"""

import ipaddress
import ssl
import time
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import httpx

from openrouter_client.verdicts import Kind, Verdict
from sidelinja_jobs import VERSION

CONNECT_SECONDS = 10.0
WRITE_SECONDS = 60.0
POOL_SECONDS = 30.0
STALE_SECONDS = 3.0  # what breaks later than this after it was sent was not closed already: the server had it
KEEPALIVE_SECONDS = 5.0  # shorter than a server's own, so that it rarely closes what is about to be used
LONGEST_BODY = 8 * 1024 * 1024  # bytes, unpacked; the longest answer of a model is under one
_PIECE = 64 * 1024
_GZIP_OR_ZLIB = 47  # zlib's number for "either header"
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError, httpx.UnsupportedProtocol)
_STALE = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)


class TroubleError(Exception):
    """An exchange did not come to its end."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.message)
        self.verdict = verdict


@dataclass(frozen=True)
class Asked:
    """A request as it goes out, key included: never printed."""

    method: str
    url: str = field(repr=False)
    headers: dict[str, str] = field(repr=False)
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True)
class Answer:
    """The head of an answer and its body, which is read from the connection as it is iterated."""

    status: int
    headers: dict[str, str]  # names in lower case
    pieces: Iterator[bytes]


@dataclass
class Flight:
    """What httpcore says of one exchange while it goes on."""

    streams: list[Any]
    was_sent: bool = False
    is_reused: bool = True
    is_answered: bool = False
    started: float = field(default_factory=time.monotonic)

    def trace(self, event: str, info: dict[str, Any]) -> None:
        _prefix, _, name = event.partition(".")
        if name in ("connect_tcp.complete", "start_tls.complete"):
            self.is_reused = False
            self.streams.append(info["return_value"])
        elif name == "send_request_headers.started":
            self.was_sent = True
        elif name == "receive_response_headers.complete":
            self.is_answered = True


class Connection:
    """At most one connection at a time, kept for a few seconds between two calls."""

    def __init__(self, base_url: str, read_seconds: float, total_seconds: float) -> None:
        self._base_url = base_url
        self._read_seconds = min(read_seconds, total_seconds)
        self._total_seconds = total_seconds
        self._http: httpx.Client | None = None
        self._streams: list[Any] = []

    @property
    def timeout(self) -> httpx.Timeout:
        return httpx.Timeout(connect=CONNECT_SECONDS, read=self._read_seconds, write=WRITE_SECONDS, pool=POOL_SECONDS)

    @contextmanager
    def ask(self, asked: Asked, flight: Flight) -> Iterator[Answer]:
        """Sends a request and gives the answer as it comes.

        Raises:
            TroubleError: here or while the body is read.
        """
        try:
            with closing(self._open(asked, flight)) as response:
                names = {name.lower(): value for name, value in response.headers.items()}
                yield Answer(response.status_code, names, self._pieces(response, names, flight))
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            # Without its cause: httpx repeats in some of its messages what was sent.
            raise TroubleError(_verdict_on(error, flight, self._base_url)) from None

    def _open(self, asked: Asked, flight: Flight) -> httpx.Response:
        """The answer up to its body; sent once more when a kept connection had been closed by the server."""
        sent_at = time.monotonic()
        try:
            return self._send(asked, flight)
        except _STALE:
            if not flight.is_reused or flight.is_answered or time.monotonic() - sent_at > STALE_SECONDS:
                raise
        self.drop()
        return self._send(asked, flight)

    def _send(self, asked: Asked, flight: Flight) -> httpx.Response:
        client = self._client()
        request = client.build_request(
            asked.method, asked.url, content=asked.body, headers=asked.headers, extensions={"trace": flight.trace}
        )
        return client.send(request, stream=True)

    def flight(self) -> Flight:
        """For the next exchange."""
        return Flight(self._streams)

    def drop(self) -> None:
        """Closes every socket at once, whatever state an interruption left the pool in; the next call starts anew."""
        self._http = None
        while self._streams:
            with suppress(Exception):
                self._streams.pop().close()

    def _client(self) -> httpx.Client:
        if self._http is None:
            self._streams.clear()
            self._http = httpx.Client(
                timeout=self.timeout,
                limits=httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=KEEPALIVE_SECONDS),
                follow_redirects=False,
                trust_env=not is_loopback(self._base_url),  # a proxy cannot reach what listens here
                verify=_tls(),
                headers={"User-Agent": f"jobbko/{VERSION}", "Accept-Encoding": "gzip"},
            )
        return self._http

    def _pieces(self, response: httpx.Response, headers: dict[str, str], flight: Flight) -> Iterator[bytes]:
        unpack = _unpacker(headers.get("content-encoding", ""))
        received = 0
        for packed in response.iter_raw():
            if time.monotonic() - flight.started > self._total_seconds:
                message = f"the answer was not complete after {self._total_seconds:g} s (OPENROUTER_TOTAL_SECONDS)"
                raise TroubleError(Verdict(Kind.RETRY, "timeout", message))
            for piece in unpack(packed):
                received += len(piece)
                if received > LONGEST_BODY:
                    message = f"the answer is longer than {LONGEST_BODY} bytes"
                    raise TroubleError(Verdict(Kind.RETRY, "upstream", message))
                yield piece


@cache
def _tls() -> ssl.SSLContext:
    """One for the process: the certificates take a megabyte and a twentieth of a second each time."""
    return httpx.create_ssl_context()


def is_loopback(url: str) -> bool:
    """Whether an address is this machine's own."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _unpacker(encoding: str) -> Any:
    if encoding.strip().lower() in ("", "identity"):
        return lambda packed: (packed,)
    if encoding.strip().lower() not in ("gzip", "x-gzip", "deflate"):
        raise TroubleError(Verdict(Kind.RETRY, "upstream", f"the answer is packed as {encoding[:50]!r}, not as gzip"))
    inflate = zlib.decompressobj(_GZIP_OR_ZLIB)

    def unpack(packed: bytes) -> Iterator[bytes]:
        try:
            while packed and not inflate.eof:
                yield inflate.decompress(packed, _PIECE)
                packed = inflate.unconsumed_tail
        except zlib.error as error:
            raise TroubleError(Verdict(Kind.RETRY, "upstream", f"the answer cannot be unpacked: {error}")) from None

    return unpack


def _verdict_on(error: Exception, flight: Flight, base_url: str) -> Verdict:
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    is_billed = None if flight.was_sent and not isinstance(error, _NOT_SENT) else False
    where = urlsplit(base_url).netloc
    if isinstance(error, httpx.TimeoutException):
        return Verdict(Kind.RETRY, "timeout", _late(error, where), is_billed=is_billed)
    if isinstance(error, httpx.ConnectError | httpx.ProxyError):
        advice = "look whether the server runs, and at OPENROUTER_BASE_URL and the proxy settings"
        return Verdict(Kind.RETRY, "transport", f"{where} cannot be reached: {said}", advice=advice, is_billed=False)
    if isinstance(error, httpx.LocalProtocolError | httpx.UnsupportedProtocol | httpx.InvalidURL):
        return Verdict(Kind.PERMANENT, "config", f"{where} cannot be asked: {type(error).__name__}", is_billed=False)
    return Verdict(Kind.RETRY, "transport", f"the connection to {where} broke: {said}", is_billed=is_billed)


def _late(error: Exception, where: str) -> str:
    if isinstance(error, httpx.ConnectTimeout):
        return f"{where} did not accept a connection within {CONNECT_SECONDS:g} s"
    if isinstance(error, httpx.ReadTimeout):
        return f"{where} was silent for too long (OPENROUTER_READ_SECONDS)"
    return f"{where} took too long: {type(error).__name__}"
