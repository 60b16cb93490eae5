"""A real Caddy on loopback for tests, and clients that do what players do: ranges, aborts, HTTP/2, IPv6."""

import contextlib
import http.client
import socket
import ssl
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from demo.embedded_postgres import ending_with_parent
from tests.waiting import wait_until

_CADDYFILE = """
{{
    admin off
    auto_https disable_redirects
    skip_install_trust
    default_sni localhost
    servers {{
        protocols h1 h2 h2c
    }}
}}
{site} {{
    bind 127.0.0.1 [::1]
    {tls}
    root * {media}
    file_server
    log {{
        output file {logs}/access.log {{
            {roll}
            roll_keep 20
        }}
        format json {{
            {encoder}
        }}
    }}
}}
"""
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _SETTINGS, _WINDOW_UPDATE = 0, 1, 4, 8
_END_STREAM, _ACK = 1, 1
_LARGEST_WINDOW = 2**31 - 1


@dataclass(frozen=True)
class Setup:
    """What differs from one server to the next; `roll` and `encoder` are lines of its Caddyfile."""

    program: Path = Path(sys.executable).with_name("caddy")
    is_tls: bool = False
    roll: str = "roll_size 1MiB"
    encoder: str = ""


class Caddy:
    """A running server."""

    def __init__(self, port: int, *, is_tls: bool) -> None:
        self.port = port
        self._host = "localhost" if is_tls else "127.0.0.1"
        self._tls = _trusting() if is_tls else None

    def get(
        self, path: str, agent: str, *, method: str = "GET", host: str = "127.0.0.1", **headers: str
    ) -> tuple[int, int, dict[str, str]]:
        """Status, bytes received and headers; `if_range="x"` sends If-Range: x."""
        kind = http.client.HTTPConnection(host, self.port, timeout=20)
        if self._tls is not None:
            kind = http.client.HTTPSConnection(host, self.port, timeout=20, context=self._tls)
        with contextlib.closing(kind) as connection:
            sent = {name.replace("_", "-").title(): value for name, value in headers.items()}
            connection.request(method, path, headers={"Host": self._host, "User-Agent": agent} | sent)
            answer = connection.getresponse()
            return answer.status, len(answer.read()), dict(answer.getheaders())

    def get_and_go(self, path: str, agent: str, wanted: int, **headers: str) -> None:
        """Asks, reads that many bytes, and resets the connection."""
        with self.connected() as client:
            lines = [f"GET {path} HTTP/1.1", f"Host: {self._host}", f"User-Agent: {agent}"]
            lines += [f"{name.title()}: {value}" for name, value in headers.items()]
            client.sendall("\r\n".join([*lines, "", ""]).encode())
            client.recv(wanted)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def get_by_http2(self, path: str, agent: str) -> int:
        """Bytes received over HTTP/2, also without TLS."""
        scheme = "http" if self._tls is None else "https"
        fields = {":method": "GET", ":scheme": scheme, ":path": path, ":authority": self._host, "user-agent": agent}
        block = b"".join(b"\0" + _text(name) + _text(value) for name, value in fields.items())
        with self.connected("h2") as client:
            client.sendall(
                _PREFACE
                + _frame(_SETTINGS, 0, 0, struct.pack(">HI", 4, _LARGEST_WINDOW))
                + _frame(_WINDOW_UPDATE, 0, 0, struct.pack(">I", _LARGEST_WINDOW - 65535))
                + _frame(_HEADERS, _END_STREAM | 4, 1, block)
            )
            received = 0
            with client.makefile("rb") as stream:
                while True:
                    head = stream.read(9)
                    kind, flags, length = head[3], head[4], int.from_bytes(head[:3], "big")
                    stream.read(length)
                    if kind == _SETTINGS and not flags & _ACK:
                        client.sendall(_frame(_SETTINGS, _ACK, 0, b""))
                    if kind == _DATA:
                        received += length
                    if kind in (_DATA, _HEADERS) and flags & _END_STREAM:
                        return received

    @contextlib.contextmanager
    def connected(self, protocol: str = "http/1.1") -> Iterator[socket.socket]:
        """A connection, also over TLS."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as client:
            if self._tls is None:
                yield client
                return
            context = _trusting()
            context.set_alpn_protocols([protocol])
            with context.wrap_socket(client) as wrapped:
                assert wrapped.selected_alpn_protocol() == protocol
                yield wrapped


@contextlib.contextmanager
def running_caddy(folder: Path, media: Path, logs: Path, setup: Setup = Setup()) -> Iterator[Caddy]:
    """Starts a server on a free port and stops it as an operator would, so that it writes its last lines."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    file = folder / "Caddyfile"
    site, tls = (f"https://localhost:{port}", "tls internal") if setup.is_tls else (f"http://:{port}", "")
    file.write_text(
        _CADDYFILE.format(site=site, tls=tls, media=media, logs=logs, roll=setup.roll, encoder=setup.encoder)
    )
    environ = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    with (folder / "caddy.log").open("wb") as log:
        process = subprocess.Popen(
            [*ending_with_parent("KILL"), str(setup.program), "run", "--config", str(file), "--adapter", "caddyfile"],
            env=environ, stdout=log, stderr=log,
        )  # fmt: skip

    caddy = Caddy(port, is_tls=setup.is_tls)

    def answers() -> bool:
        assert process.poll() is None, (folder / "caddy.log").read_text()
        with contextlib.suppress(OSError), caddy.connected():  # it may still be making its certificate
            return True
        return False

    try:
        wait_until(answers, 20, what="Caddy to answer")
        yield caddy
    finally:
        process.terminate()
        process.wait(20)


def _trusting() -> ssl.SSLContext:
    """The server's certificate is of its own making."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def _text(text: str) -> bytes:
    """As HPACK writes a short text without compression."""
    encoded = text.encode()
    assert len(encoded) < 127
    return bytes((len(encoded),)) + encoded
