"""What an unlucky network and a hostile server did to the client, and must not do again."""

import time
from typing import Any

import pytest

from openrouter_client import connection
from openrouter_client.profile import Secret
from openrouter_client.verdicts import Kind
from tests.unit.openrouter_clients import KEY, answering, ask, request_of, serving
from tests.unit.scripted_server import WHOLE, Peer, event, http, stream_head

OTHER_KEY = "c4n4ry.of-another-make-0123456789"


def test_a_kept_connection_that_breaks_after_a_while_is_not_used_for_a_second_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server has taken the request and worked for it: sent once more without a word, it would be paid twice."""
    monkeypatch.setattr(connection, "STALE_SECONDS", 0.3)

    def first(peer: Peer) -> None:
        peer.read()
        peer.send(http(429, {"error": {"code": 429, "message": "Slow"}}))
        peer.read()
        time.sleep(0.8)

    with serving(first, answering(stream_head(), WHOLE)) as (client, server):
        client.send(request_of(client, "Hei"))
        reply = client.send(request_of(client, "Hei igjen"))

    assert (reply.verdict.kind, reply.verdict.is_billed) == (Kind.RETRY, None)
    assert len(server.requests) == 2


@pytest.mark.parametrize("name", ["x_generation_id", "id"])
def test_a_server_that_calls_its_answer_by_the_key_does_not_get_it_stored(name: str) -> None:
    noted: list[str] = []
    headers = {"x_generation_id": KEY} if name == "x_generation_id" else {}
    with serving(answering(stream_head(**headers) + event("Hei", "stop", id=KEY))) as (client, _):
        reply = client.send(request_of(client), noted.append)

    assert KEY not in repr((reply.generation_id, noted, reply.headers, reply.body))


@pytest.mark.parametrize("before", range(440, 500, 7))
def test_a_message_that_is_cut_inside_the_key_shows_no_part_of_it(before: int) -> None:
    said: dict[str, Any] = {"error": {"code": 500, "message": "x" * before + OTHER_KEY + " is not known"}}
    reply = ask(answering(http(500, said)), key=Secret(OTHER_KEY))

    assert OTHER_KEY[:5] not in reply.verdict.message


@pytest.mark.parametrize("before", range(440, 500, 7))
def test_a_page_that_is_cut_inside_the_key_shows_no_part_of_it(before: int) -> None:
    page = f"<html>{'x' * before}{OTHER_KEY}</html>"
    reply = ask(answering(http(502, page, content_type="text/html")), key=Secret(OTHER_KEY))

    assert OTHER_KEY[:5] not in reply.verdict.message


@pytest.mark.parametrize("key", ["test", "x", "ollama"])
def test_a_word_that_serves_as_a_key_does_not_garble_answers(key: str) -> None:
    """A server of one's own is often given one that is none; then it is no secret either."""
    said = f"Dette er en {key} av {key}-modellen"
    reply = ask(answering(stream_head(), event(said, "stop")), key=Secret(key))

    assert reply.text == said
    told = ask(answering(http(401, {"error": {"code": 401, "message": f"bad key {key} here"}})), key=Secret(key))
    assert f" {key} " not in told.verdict.message


@pytest.mark.parametrize("junk", [b"data: {bad\n\n", b"data: null\n\n", b"data: " + b"[" * 100_000 + b"\n\n"])
def test_a_piece_that_cannot_be_read_does_not_mean_that_nothing_was_paid(junk: bytes) -> None:
    reply = ask(answering(stream_head(), event("Hei"), junk, event("", "stop"), b"data: [DONE]\n\n"))

    assert (reply.verdict.kind, reply.verdict.error_class) == (Kind.RETRY, "upstream")
    assert reply.verdict.is_billed is None
    assert "not JSON" in reply.verdict.message


@pytest.mark.parametrize("junk", [b"data: {bad\n\n", b"data: null\n\n", b"data: 7\n\n", b"data: {bad"])
def test_what_comes_after_the_end_of_an_answer_does_not_spoil_it(junk: bytes) -> None:
    reply = ask(answering(stream_head(), event("Hei", "stop"), junk, b"data: [DONE]\n\n"))

    assert (reply.verdict.kind, reply.text) == (Kind.OK, "Hei")


def test_an_error_is_believed_over_a_piece_that_cannot_be_read() -> None:
    told = event("", "error", error={"code": 429, "message": "slow down", "metadata": {"retry_after": 7}})
    reply = ask(answering(stream_head(), b"data: {bad\n\n", told))

    assert (reply.verdict.kind, reply.verdict.wait_seconds) == (Kind.COME_BACK, 7)
