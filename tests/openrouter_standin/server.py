"""The server itself: connections, paths, and what a test sees of it."""

import contextlib
import json
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.openrouter_standin import failures
from tests.openrouter_standin.account import Account, Billed
from tests.openrouter_standin.answers import Answer, ChatCall, filled
from tests.openrouter_standin.catalogue import MODELS, Model, listing
from tests.openrouter_standin.completions import complete
from tests.openrouter_standin.fault import Fault
from tests.openrouter_standin.wire import ClientGoneError, Delivery, Reply, json_reply

KEY = "sk-or-v1-" + "5tand1n" * 8
PREFIX = "/api/v1"


@dataclass(frozen=True)
class Received:
    """A request as it came in."""

    method: str
    path: str
    headers: Mapping[str, str]  # names in lower case
    body: bytes
    at: float = field(default_factory=time.time)
    is_reused_connection: bool = False


class StandIn:
    """The service, its account, and the script of its faults. A context manager; many threads may use it at once.

    `is_generic` makes it a server of another make, such as llama.cpp's: no prices, no key needed, no /key and
    /generation; `cuts_silently` lets it cut a prompt that is too long in place of refusing it, as Ollama does.
    """

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        key: str = KEY,
        balance: Decimal | str = "10",
        models: Sequence[Model] = MODELS,
        generation_lag_seconds: float = 0,
        is_zdr_account: bool = False,
        is_generic: bool = False,
        cuts_silently: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.key = key
        self.models = tuple(models)
        self.is_generic, self.cuts_silently = is_generic, cuts_silently
        self.account = Account(
            key, Decimal(balance), generation_lag_seconds=generation_lag_seconds, is_zdr=is_zdr_account, clock=clock
        )
        self.requests: list[Received] = []
        self.contract_problems: list[str] = []
        self.say: Callable[[ChatCall], str | Answer] = lambda call: filled(call.schema, call)
        self.closing = threading.Event()
        self._script: list[tuple[str | None, Fault, bool]] = []
        self._replies: dict[tuple[str, str], list[Reply]] = {}
        self._lock = threading.Lock()
        self._server = _Server(self, host)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> "StandIn":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.close_connections()
        self._server.server_close()
        self._thread.join(5)

    @property
    def base_url(self) -> str:
        return f"http://{self._server.server_name}:{self._server.server_port}{'/v1' if self.is_generic else PREFIX}"

    @property
    def billing(self) -> list[Billed]:
        return list(self.account.billing)

    @property
    def billed_count(self) -> int:
        return len(self.account.billing)

    @property
    def billed_usd(self) -> Decimal:
        return sum((one.cost for one in self.account.billing), Decimal(0))

    @property
    def chats(self) -> list[ChatCall]:
        """The chat requests that came in and were JSON, in order."""
        found = []
        for one in list(self.requests):
            with contextlib.suppress(ValueError):
                if one.path.endswith("/chat/completions"):
                    found.append(ChatCall(json.loads(one.body), one.body, one.headers, one.is_reused_connection))
        return found

    def chats_about(self, word: str) -> list[ChatCall]:
        """The chat requests whose text or session id has the word."""
        return [call for call in self.chats if _is_about(call, word)]

    def billed_for(self, word: str) -> list[Billed]:
        return [one for one in self.billing if word in one.text or word == one.session_id]

    def answers(self, say: Callable[[ChatCall], str | Answer]) -> None:
        """What the model says from now on."""
        self.say = say

    def script(self, *faults: Fault, match: str | None = None, repeats: bool = False) -> None:
        """The next chat requests meet these faults, one each. With `match` only requests whose text, or session id,
        has that word; with `repeats` a fault stays in place."""
        with self._lock:
            self._script.extend((match, fault, repeats) for fault in faults)

    def forget_script(self) -> None:
        with self._lock:
            self._script.clear()

    def script_path(self, method: str, path: str, *replies: Reply) -> None:
        """The next requests of another path, such as GET /models, get these replies, one each."""
        with self._lock:
            self._replies.setdefault((method, path), []).extend(replies)

    def next_fault(self, call: ChatCall) -> Fault | None:
        with self._lock:
            for place, (match, fault, repeats) in enumerate(self._script):
                if match is None or _is_about(call, match):
                    if not repeats:
                        del self._script[place]
                    return fault
        return None

    def next_reply(self, method: str, path: str) -> Reply | None:
        with self._lock:
            waiting = self._replies.get((method, path))
            return waiting.pop(0) if waiting else None


def _is_about(call: ChatCall, word: str) -> bool:
    return word in call.text or word == call.session_id


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, standin: StandIn, host: str) -> None:
        self.standin = standin
        self._open: set[Any] = set()
        self._lock = threading.Lock()
        super().__init__((host, 0), _Handler)

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)  # HTTPServer's own asks the name service for its name
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._open.add(request)
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._open.discard(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), OSError):  # that is a client that went away
            super().handle_error(request, client_address)  # type: ignore[no-untyped-call]

    def close_connections(self) -> None:
        with self._lock:
            for one in self._open:
                with contextlib.suppress(OSError):
                    one.shutdown(2)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    timeout = 60
    carried = 0  # requests that this connection has carried

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self._serve("GET")

    def do_POST(self) -> None:
        self._serve("POST")

    def _serve(self, method: str) -> None:
        standin = self.server.standin
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        received = Received(method, self.path, headers, body, is_reused_connection=self.carried > 0)
        self.carried += 1
        standin.requests.append(received)
        delivery = Delivery(self, standin.closing)
        try:
            self._answer(standin, received, delivery)
        except ClientGoneError:
            self.close_connection = True

    def _answer(self, standin: StandIn, received: Received, delivery: Delivery) -> None:
        url = urlsplit(received.path)
        path = url.path.removeprefix(PREFIX).removeprefix("/v1")
        if scripted := standin.next_reply(received.method, path):
            delivery.send(scripted)
        elif (received.method, path) == ("POST", "/chat/completions"):
            try:
                body = json.loads(received.body)
            except ValueError:
                delivery.send(json_reply(400, failures.invalid_request(["the body is no JSON"])))
                return
            call = ChatCall(body, received.body, received.headers, received.is_reused_connection)
            complete(standin, call, delivery)
        else:
            delivery.send(_look_up(standin, received, path, parse_qs(url.query)))


def _look_up(standin: StandIn, received: Received, path: str, query: dict[str, list[str]]) -> Reply:
    """The paths that only tell something."""
    if path == "/models":
        return json_reply(200, _generic_listing(standin) if standin.is_generic else listing(standin.models))
    if standin.is_generic:
        return json_reply(404, {"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}})
    if received.headers.get("authorization") != f"Bearer {standin.key}":
        return json_reply(401, failures.unauthorized())
    if path == "/key":
        return json_reply(200, standin.account.key_state())
    if path == "/credits":
        return json_reply(403, failures.failure(403, "Only management keys can fetch credits", "permission_denied"))
    if path == "/generation":
        id_ = query.get("id", [""])[0]
        known = standin.account.generation(id_)
        return json_reply(200, known) if known else json_reply(404, failures.not_found(f"Generation {id_}"))
    for model in standin.models:
        if path == f"/models/{model.id}/endpoints":
            return json_reply(200, {"data": model.offers()})
    return json_reply(404, failures.not_found("Resource"))  # also /generation/content: logging is not opted in to


def _generic_listing(standin: StandIn) -> dict[str, Any]:
    return {
        "object": "list",
        "data": [{"id": one.id, "object": "model", "owned_by": "local"} for one in standin.models],
    }
