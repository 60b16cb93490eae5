"""Connections that break, are stale, are led elsewhere, or are stopped by a signal."""

import json
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from openrouter_client.connection import Connection, is_loopback
from openrouter_client.settings import ClientSettings
from openrouter_client.transport import Client
from openrouter_client.verdicts import Kind
from sidelinja_jobs import JobStopped, StopReason
from tests.unit.openrouter_clients import TEXT, answering, ask, profile_of, request_of, serving
from tests.unit.scripted_server import WHOLE, Peer, ScriptedServer, event, http, stream_head
from tests.waiting import wait_until


@pytest.mark.parametrize(
    "cut",
    [
        stream_head() + event('{"tittel": "halv'),
        stream_head(),
        stream_head() + b": OPENROUTER PROCESSING\n\n",
        http(200, event("halv"), content_type="text/event-stream", content_length="9999"),
        http(200, b"", content_type="text/event-stream", content_length="", transfer_encoding="chunked") + b"5\r\ndat",
        http(200, '{"choices": [', content_type="application/json", content_length="9999"),
        b"HTTP/1.1 200 OK\r\nContent-",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"",
    ],
)
def test_an_answer_that_breaks_off_is_a_failure_and_no_half_of_it_is_kept(cut: bytes) -> None:
    with serving(answering(cut)) as (client, server):
        reply = client.send(request_of(client))

    assert (reply.verdict.kind, reply.verdict.error_class) == (Kind.RETRY, "transport")
    assert reply.verdict.is_billed is None
    assert (reply.body, reply.text, reply.was_sent) == (None, "", True)
    assert len(server.requests) == 1, "the server may have worked for it: no second try on a fresh connection"


def test_a_stream_that_says_why_it_ended_needs_no_last_word() -> None:
    assert ask(answering(stream_head(), event("Hei", "stop"))).verdict.kind is Kind.OK


def test_an_answer_that_had_ended_before_the_line_broke_is_kept() -> None:
    """It was paid for."""
    ended = http(200, event("Hei", "stop"), content_type="text/event-stream", content_length="9999")
    reply = ask(answering(ended))

    assert (reply.verdict.kind, reply.text) == (Kind.OK, "Hei")


def test_a_refusal_is_judged_by_its_status_even_if_its_body_is_cut() -> None:
    reply = ask(answering(http(429, '{"error": {"mess', retry_after="7", content_length="500")))

    assert (reply.verdict.kind, reply.verdict.wait_seconds) == (Kind.COME_BACK, 7)


@pytest.mark.parametrize(
    ("raw", "kind", "error_class"),
    [
        (http(429, {"error": {"code": 429, "message": "Slow"}}, retry_after="7"), Kind.COME_BACK, "rate_limited"),
        (http(524, "<html><h1>A timeout occurred</h1></html>", content_type="text/html"), Kind.RETRY, "timeout"),
        (http(200, "<html>Log in</html>", content_type="text/html"), Kind.RETRY, "upstream"),
        (http(200, {"error": {"code": 402, "message": "No credit"}}), Kind.PAUSE, "credits"),
        (http(401, {"error": {"code": 401, "message": "User not found."}}), Kind.PAUSE, "auth"),
        (http(404), Kind.PERMANENT, "model_unavailable"),
        (stream_head() + event("", "error", error={"code": 502, "message": "died"}), Kind.RETRY, "upstream"),
    ],
)
def test_what_the_server_says_is_judged(raw: bytes, kind: Kind, error_class: str) -> None:
    reply = ask(answering(raw))

    assert (reply.verdict.kind, reply.verdict.error_class) == (kind, error_class)
    assert reply.verdict.http_status == reply.status


def test_redirects_are_not_followed() -> None:
    """The key would go wherever a server points to."""
    with ScriptedServer([answering(http(200))]) as elsewhere:
        reply = ask(answering(http(307, location=elsewhere.url)))

        assert elsewhere.connection_count == 0
    assert (reply.verdict.kind, reply.verdict.error_class) == (Kind.PERMANENT, "config")


def test_a_closed_kept_connection_is_tried_once_more() -> None:
    """open-webui/terminals#24: the server closes what it kept just as it is used again."""

    def refuses_then_closes(peer: Peer) -> None:
        peer.read()
        peer.send(http(429, {"error": {"code": 429, "message": "Slow"}}))
        peer.read()

    with serving(refuses_then_closes, answering(stream_head(), WHOLE)) as (client, server):
        assert client.send(request_of(client)).status == 429
        reply = client.send(request_of(client))

    assert (reply.verdict.kind, reply.text) == (Kind.OK, TEXT)
    assert (server.connection_count, len(server.requests)) == (2, 3)


def test_a_fresh_connection_that_fails_too_is_not_tried_a_third_time() -> None:
    def refuses_then_closes(peer: Peer) -> None:
        peer.read()
        peer.send(http(429, {"error": {"code": 429, "message": "Slow"}}))
        peer.read()

    with serving(refuses_then_closes, answering()) as (client, server):
        client.send(request_of(client))
        reply = client.send(request_of(client))

    assert reply.verdict.error_class == "transport"
    assert (server.connection_count, len(server.requests)) == (2, 3)


def test_a_kept_connection_that_answered_in_part_is_not_tried_again() -> None:
    def refuses_then_breaks(peer: Peer) -> None:
        peer.read()
        peer.send(http(429, {"error": {"code": 429, "message": "Slow"}}))
        peer.read()
        peer.send(stream_head() + event("ha"))

    with serving(refuses_then_breaks, answering(stream_head(), WHOLE)) as (client, server):
        client.send(request_of(client))
        reply = client.send(request_of(client))

    assert (reply.verdict.error_class, server.connection_count) == ("transport", 1)


def test_nobody_there_means_nothing_was_sent() -> None:
    with ScriptedServer([answering()]) as server:
        url = server.url
    client = Client(profile_of(url), ClientSettings())
    reply = client.send(request_of(client))

    assert (reply.verdict.kind, reply.verdict.error_class) == (Kind.RETRY, "transport")
    assert (reply.status, reply.was_sent, reply.verdict.is_billed) == (None, False, False)
    assert reply.verdict.advice is not None


def test_a_letter_cut_in_half_does_not_stop_a_request() -> None:
    """Aider-AI/aider#3693."""
    with serving(answering(stream_head(), WHOLE)) as (client, server):
        reply = client.send(request_of(client, "sånn \ud83d"))

    assert reply.verdict.kind is Kind.OK
    assert json.loads(server.requests[0].body)["messages"][0]["content"] == "sånn \ufffd"


def test_a_proxy_of_the_environment_is_not_used_for_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    assert ask(answering(stream_head(), WHOLE)).verdict.kind is Kind.OK


def test_a_proxy_of_the_environment_is_used_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedServer([answering(stream_head(), WHOLE)]) as proxy:
        for name in ("http_proxy", "HTTP_PROXY"):
            monkeypatch.setenv(name, proxy.url.removesuffix("/api/v1"))
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        client = Client(profile_of("http://model.invalid/v1"), ClientSettings())
        reply = client.send(request_of(client))
        client.close()

    assert reply.verdict.kind is Kind.OK
    assert proxy.requests[0].line == "POST http://model.invalid/v1/chat/completions HTTP/1.1"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://localhost:1/v1", True),
        ("http://127.8.9.1/v1", True),
        ("http://[::1]:8080/v1", True),
        ("http://localhost.evil.example/v1", False),
        ("https://openrouter.ai/api/v1", False),
        ("http://10.0.0.1/v1", False),
    ],
)
def test_loopback_is_told_from_other_hosts(url: str, expected: bool) -> None:
    assert is_loopback(url) is expected


@contextmanager
def stopped_after(seconds: float) -> Iterator[None]:
    """A signal raises JobStopped in this thread, as the worker's guards do."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise JobStopped(StopReason.CANCELLED)

    before = signal.signal(signal.SIGUSR2, stop)
    thread = threading.Timer(seconds, lambda: signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR2))
    thread.start()
    try:
        yield
    finally:
        thread.cancel()
        thread.join()
        signal.signal(signal.SIGUSR2, before)


@pytest.mark.parametrize("sent_before", [b"", stream_head(), stream_head() + event("Hei"), stream_head() + b"data: {"])
def test_a_stop_closes_the_connection_at_once_and_the_client_works_on(sent_before: bytes) -> None:
    closed: list[bool] = []

    def hangs(peer: Peer) -> None:
        peer.read()
        peer.send(sent_before)
        closed.append(peer.is_closed_within(3))

    with serving(hangs, answering(stream_head(), WHOLE), read=5) as (client, _server):
        started = time.monotonic()
        with stopped_after(0.2), pytest.raises(JobStopped):
            client.send(request_of(client))
        waited = time.monotonic() - started
        wait_until(lambda: closed, what="the server to see the end")

        assert closed == [True]
        assert waited < 3, "the silence would end it after five seconds"
        assert client.send(request_of(client)).text == TEXT


def test_a_stop_between_two_lines_leaves_no_connection_behind() -> None:
    """The answer is open and nobody holds it yet: the one place of the pool would stay taken."""
    closed: list[bool] = []

    def hangs(peer: Peer) -> None:
        peer.read()
        peer.send(stream_head())
        closed.append(peer.is_closed_within(3))

    def stop_on_return(frame: FrameType, event: str, _value: Any) -> Any:
        if frame.f_code is not Connection._open.__code__:
            return None
        if event == "return":
            raise JobStopped(StopReason.CANCELLED)
        return stop_on_return

    with serving(hangs, answering(stream_head(), WHOLE), read=5) as (client, _server):
        before = sys.gettrace()
        sys.settrace(stop_on_return)
        try:
            with pytest.raises(JobStopped) as caught:
                client.send(request_of(client))
        finally:
            sys.settrace(before)
        started = time.monotonic()

        assert client.send(request_of(client)).text == TEXT
        assert time.monotonic() - started < 3
        wait_until(lambda: closed, what="the server to see the end")
        assert closed == [True]
        assert caught.value.reason is StopReason.CANCELLED


def test_what_the_callback_raises_goes_through_and_closes_the_connection() -> None:
    closed: list[bool] = []

    def hangs(peer: Peer) -> None:
        peer.read()
        peer.send(stream_head(X_Generation_Id="gen-9"))
        closed.append(peer.is_closed_within(3))

    def fails(_id: str) -> None:
        raise LookupError("the ledger is gone")

    with serving(hangs, read=5) as (client, _server), pytest.raises(LookupError, match="the ledger is gone"):
        client.send(request_of(client), fails)

    assert closed == [True]
