"""A lane over TLS, against a server on loopback: whom it trusts, and that its deadline holds there, too."""

import contextlib
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from services.admin.delivery import lane as lanes
from services.admin.delivery.lane import Lane, UnansweredError
from services.admin.delivery.sinks import Outgoing

Serve = Callable[[socket.socket], None]

pytestmark = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="there is no openssl to make a certificate with"
)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that nobody but its owner trusts, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    pem, key = folder / "certificate.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", pem],
        check=True, capture_output=True,
    )  # fmt: skip
    return pem, key


@contextlib.contextmanager
def serving(serve: Serve) -> Iterator[str]:
    """A server that treats each connection so."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection = listener.accept()[0]
                threading.Thread(target=attend, args=(connection,), daemon=True).start()

    def attend(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            serve(connection)

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"https://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        listener.close()


def over_tls(certificate: tuple[Path, Path], serve: Serve) -> Serve:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)

    def wrapped(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secured:
            serve(secured)

    return wrapped


def thanks(connection: socket.socket) -> None:
    while connection.recv(65536):
        connection.sendall(b"HTTP/1.1 204 X\r\n\r\n")


def drip(connection: socket.socket) -> None:
    """One byte after the other, for ever."""
    while True:
        connection.sendall(b"H")
        time.sleep(0.05)


def post(url: str, seconds: float = 5.0) -> int:
    """One try, watched as a crew does it."""
    lane, ended = Lane(url, seconds), threading.Event()

    def watch() -> None:
        while not ended.wait(0.05):
            lane.expire(time.monotonic())

    threading.Thread(target=watch, daemon=True).start()
    try:
        return lane.post(Outgoing(url, {}, b"{}")).status
    finally:
        ended.set()
        lane.close()


def test_a_certificate_that_nobody_vouches_for_is_refused(certificate: tuple[Path, Path]) -> None:
    with serving(over_tls(certificate, thanks)) as url, pytest.raises(UnansweredError, match="certificate"):
        post(url)


def test_a_trusted_one_is_taken_and_its_deadline_holds(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    trusting = httpx.create_ssl_context(verify=ssl.create_default_context(cafile=str(certificate[0])))
    monkeypatch.setattr(lanes, "_tls", lambda: trusting)
    with serving(over_tls(certificate, thanks)) as url:
        assert post(url) == 204

    started = time.monotonic()
    with serving(over_tls(certificate, drip)) as url, pytest.raises(UnansweredError, match=r"no answer within 0\.5 s"):
        post(url, 0.5)
    assert time.monotonic() - started < 4


def test_a_handshake_that_drips_is_over_at_the_deadline() -> None:
    """Each byte comes soon enough for any time-out of a read."""

    def endless_handshake(connection: socket.socket) -> None:
        connection.sendall(b"\x16\x03\x03\x3f\xff")
        drip(connection)

    started = time.monotonic()
    with serving(endless_handshake) as url, pytest.raises(UnansweredError, match="no connection within the time"):
        post(url, 0.5)
    assert time.monotonic() - started < 4
