"""The transport over real sockets: what goes out, what comes back, how long it may take, how large it may be."""

import gzip
import time
import tracemalloc

import pytest

from openrouter_client.connection import Connection
from openrouter_client.verdicts import Kind
from tests.unit.openrouter_clients import KEY, TEXT, answering, ask, request_of, serving
from tests.unit.scripted_server import WHOLE, Peer, event, http, stream_head


def test_a_streamed_answer_is_collected() -> None:
    with serving(answering(stream_head(X_Generation_Id="gen-9"), WHOLE)) as (client, server):
        request = request_of(client)
        reply = client.send(request)
        sent = server.requests[0]

    assert (reply.status, reply.verdict.kind, reply.text) == (200, Kind.OK, TEXT)
    assert reply.body is not None
    assert reply.body["choices"][0]["message"]["content"] == TEXT
    assert (reply.generation_id, reply.was_sent) == ("gen-9", True)
    assert 0 < reply.seconds < 5
    assert sent.line == "POST /api/v1/chat/completions HTTP/1.1"
    assert sent.body == request.body
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert sent.headers["x-openrouter-cache-ttl"] == "3600"
    assert sent.headers["user-agent"].startswith("jobbko/")
    assert "http-referer" not in sent.headers


def test_an_answer_without_a_stream_is_taken_as_it_is() -> None:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hei \ud83d"}}
    reply = ask(answering(http(200, {"id": "chatcmpl-1", "choices": [choice]})))

    assert (reply.verdict.kind, reply.text, reply.generation_id) == (Kind.OK, "Hei \ufffd", "chatcmpl-1")


def test_a_stream_under_another_name_is_read() -> None:
    assert ask(answering(http(200, WHOLE, content_type="text/plain"))).text == TEXT


@pytest.mark.parametrize("headers", [{"X_Generation_Id": "gen-9"}, {}])
def test_the_generations_id_is_told_before_the_answer_is_there(headers: dict[str, str]) -> None:
    """The server goes on only when the client has told; the id stands in the headers or in the first event."""
    told: list[str] = []

    def script(peer: Peer) -> None:
        peer.read()
        peer.send(stream_head(**headers) + event("Hei"))
        deadline = time.monotonic() + 2
        while not told and time.monotonic() < deadline:
            time.sleep(0.01)
        peer.send(event("", "stop") if told else event("too late", "error"))

    with serving(script) as (client, _server):
        reply = client.send(request_of(client), told.append)

    assert (reply.verdict.kind, reply.text) == (Kind.OK, "Hei")
    assert told == [reply.generation_id] == [headers.get("X_Generation_Id", "gen-1")]


def test_an_id_that_is_none_is_not_told() -> None:
    for value in ("x" * 500, "a\x07b"):
        reply = ask(answering(stream_head(X_Generation_Id=value), WHOLE))
        assert reply.generation_id == "gen-1"


def test_every_time_out_is_set_and_the_setting_reaches_the_socket() -> None:
    """karakeep-app/karakeep#1586: a hidden limit of the client's own below the setting."""
    connection = Connection("http://127.0.0.1:1/v1", read_seconds=240, total_seconds=900)
    limits = connection._client().timeout.as_dict()

    assert limits == {"connect": 10.0, "read": 240.0, "write": 60.0, "pool": 30.0}
    assert Connection("http://h/v1", read_seconds=240, total_seconds=60).timeout.read == 60


def test_silence_ends_a_call() -> None:
    def silent(peer: Peer) -> None:
        peer.read()
        peer.is_closed_within(5)

    reply = ask(silent, read=0.3)

    assert (reply.verdict.kind, reply.verdict.error_class) == (Kind.RETRY, "timeout")
    assert reply.verdict.is_billed is None
    assert reply.was_sent
    assert 0.25 < reply.seconds < 4


def test_silence_in_the_middle_ends_a_call_too_and_leaves_no_half_answer() -> None:
    def halfway(peer: Peer) -> None:
        peer.read()
        peer.send(stream_head(X_Generation_Id="gen-9") + event('{"tittel": "ha'))
        peer.is_closed_within(5)

    reply = ask(halfway, read=0.3)

    assert (reply.verdict.error_class, reply.body, reply.text) == ("timeout", None, "")
    assert (reply.status, reply.generation_id) == (200, "gen-9")


def test_a_slow_drip_lives_as_long_as_it_drips() -> None:
    """AtomicBot-ai/atomic-agent PR#323: a deadline over the whole killed healthy streams."""
    drops = [
        stream_head(),
        *[b": OPENROUTER PROCESSING\n\n"] * 4,
        *(event(letter) for letter in "abc"),
        event("", "stop"),
    ]
    reply = ask(answering(*drops, pause=0.15), read=1.0)

    assert (reply.verdict.kind, reply.text) == (Kind.OK, "abc")
    assert reply.seconds > 1.0


def test_a_drip_without_an_end_is_ended() -> None:
    def endless(peer: Peer) -> None:
        peer.read()
        peer.send(stream_head())
        while True:
            peer.send(b": OPENROUTER PROCESSING\n\n")
            time.sleep(0.05)

    reply = ask(endless, read=5, total=1)

    assert (reply.verdict.kind, reply.verdict.error_class) == (Kind.RETRY, "timeout")
    assert "OPENROUTER_TOTAL_SECONDS" in reply.verdict.message
    assert reply.seconds < 3


def test_a_server_that_keeps_the_line_open_after_the_end_is_not_waited_for() -> None:
    def script(peer: Peer) -> None:
        peer.read()
        peer.send(stream_head() + WHOLE)
        peer.is_closed_within(5)

    reply = ask(script, read=3)

    assert (reply.verdict.kind, reply.text) == (Kind.OK, TEXT)
    assert reply.seconds < 2


def test_letters_are_whole_however_the_packets_fall() -> None:
    pieces = [stream_head(), *(WHOLE[at : at + 1] for at in range(len(WHOLE)))]

    assert ask(answering(*pieces, pause=0.0005)).text == TEXT


@pytest.mark.parametrize("packed_by", [1, 7, 10_000])
def test_a_packed_answer_is_unpacked(packed_by: int) -> None:
    packed = gzip.compress(WHOLE)
    pieces = [packed[at : at + packed_by] for at in range(0, len(packed), packed_by)]
    reply = ask(answering(stream_head(Content_Encoding="gzip"), *pieces))

    assert (reply.verdict.kind, reply.text) == (Kind.OK, TEXT)


@pytest.mark.parametrize(
    ("encoding", "raw"),
    [("gzip", b"not packed at all"), ("gzip", gzip.compress(WHOLE, mtime=0)[:60]), ("br", b"\x8b\x02")],
    ids=["not packed", "cut off", "packed in another way"],
)
def test_an_answer_that_cannot_be_unpacked_is_a_failure(encoding: str, raw: bytes) -> None:
    reply = ask(answering(stream_head(Content_Encoding=encoding), raw))

    assert reply.verdict.kind is Kind.RETRY
    assert reply.body is None


def test_an_answer_of_five_megabytes_is_taken_and_a_longer_one_is_not() -> None:
    fits = event("x" * 5_000_000) + event("", "stop")

    assert len(ask(answering(stream_head(), fits)).text) == 5_000_000
    too_long = ask(answering(stream_head(), *[event("x" * 1_000_000)] * 10))
    assert (too_long.verdict.kind, too_long.body) == (Kind.RETRY, None)
    assert "longer than" in too_long.verdict.message


def test_a_tightly_packed_answer_does_not_fill_the_memory() -> None:
    bomb = gzip.compress(b"\x00" * 100_000_000, 1)
    tracemalloc.start()
    try:
        reply = ask(answering(stream_head(Content_Encoding="gzip"), bomb))
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert "longer than" in reply.verdict.message
    assert peak < 40_000_000
