"""Whom alerts and events are told to: a server of webhooks that answers as it is told, and one of mail."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.controller import Controller
from standardwebhooks import Webhook as Verifier
from standardwebhooks import WebhookVerificationError

SECRET = "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


class Posts:
    """Keeps the documents that it took, each verified by the library of Standard Webhooks.

    Answers with each of `statuses` once, then with `status`; what is signed wrongly with 401.
    """

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.statuses: list[int] = []
        self.status = 204
        self.taken: list[dict[str, Any]] = []
        posts = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.send_response(posts._answer(self.rfile.read(int(self.headers["Content-Length"])), self.headers))
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer((host, 0), Handler)
        self._host = host
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://{self._host}:{self._server.server_port}/alerts"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, body: bytes, headers: Any) -> int:
        try:
            document = dict(Verifier(SECRET).verify(body, dict(headers)))
        except WebhookVerificationError:
            return 401
        status = self.statuses.pop(0) if self.statuses else self.status
        if status < 300:
            self.taken.append(document)
        return status


class Mails:
    """Keeps the mails that it took."""

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self.taken: list[str] = []
        self.port = port
        self._server = Controller(self, hostname=host, port=port)
        self._server.start()

    async def handle_DATA(self, _server: object, _session: object, envelope: Any) -> str:  # noqa: N802
        self.taken.append(envelope.content.decode())
        return "250 OK"

    def close(self) -> None:
        self._server.stop()
