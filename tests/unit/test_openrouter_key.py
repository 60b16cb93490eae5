"""The key goes out in one header and comes back in nothing; what the server says of it."""

from datetime import UTC, datetime

import pytest

from openrouter_client.key_state import key_state_of
from openrouter_client.profile import ProfileKind, Secret
from openrouter_client.settings import ClientSettings
from openrouter_client.transport import Client
from openrouter_client.verdicts import Kind
from sidelinja_jobs import load_settings
from tests.unit.openrouter_clients import KEY, answering, ask, profile_of, request_of, serving
from tests.unit.openrouter_shapes import HOUR
from tests.unit.scripted_server import WHOLE, event, http, stream_head


def test_a_key_with_a_line_end_is_sent_without_it() -> None:
    settings = load_settings(ClientSettings, {"OPENROUTER_API_KEY": f"{KEY}\n"})
    with serving(answering(stream_head(), WHOLE), key=Secret(settings.api_key or "")) as (client, server):
        client.send(request_of(client))

    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("end", ["\n", "\r\n", " x", "\x00", "ø"])
def test_a_damaged_key_is_refused_before_the_library_can_print_it(end: str) -> None:
    """httpx says "Illegal header value" with the whole key in it."""
    with pytest.raises(ValueError, match="OPENROUTER_API_KEY") as caught:
        Client(profile_of("http://127.0.0.1:9/v1", key=Secret(KEY + end)), ClientSettings())

    error: BaseException | None = caught.value
    while error is not None:
        assert KEY not in repr(error)
        error = error.__cause__ or error.__context__


def test_a_key_that_the_server_repeats_is_in_nothing_that_comes_back() -> None:
    told = {"error": {"code": 400, "message": f"Bad {KEY}", "metadata": {"raw": f"Bearer {KEY}", "remedy_hint": KEY}}}
    for raw in (
        http(400, told | {"provider": KEY}, x_echo=KEY),
        http(400, f"<p>{KEY}</p>", content_type="text/html"),
        stream_head() + event(f"the key is {KEY}", "stop"),
        http(302, location=f"https://elsewhere/?k={KEY}"),
    ):
        reply = ask(answering(raw))
        shown = f"{reply!r} {reply.body} {reply.text} {reply.headers} {reply.verdict}"
        assert KEY not in shown
        assert "(key hidden)" in shown


def test_without_a_key_openrouter_is_not_asked() -> None:
    with serving(answering(stream_head(), WHOLE), key=None) as (client, server):
        reply = client.send(request_of(client))
        state = client.key_state()

    assert (reply.verdict.kind, reply.verdict.error_class, reply.was_sent) == (Kind.PAUSE, "no_api_key", False)
    assert "OPENROUTER_API_KEY" in (reply.verdict.advice or "")
    assert state.verdict == reply.verdict
    assert server.connection_count == 0


def test_a_server_of_ones_own_is_asked_without_a_key() -> None:
    with serving(answering(stream_head(), WHOLE), key=None, kind=ProfileKind.GENERIC) as (client, server):
        assert client.send(request_of(client)).verdict.kind is Kind.OK
        assert client.key_state().is_usable

    assert "authorization" not in server.requests[0].headers
    assert len(server.requests) == 1


def test_the_key_can_be_asked_about() -> None:
    data = {"limit_remaining": 0.25, "limit_reset": "daily", "usage_daily": "1.75", "is_free_tier": True}
    with serving(answering(http(200, {"data": data}))) as (client, server):
        state = client.key_state()

    assert server.requests[0].line == "GET /api/v1/key HTTP/1.1"
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert state.is_usable
    assert (str(state.limit_remaining), str(state.usage_daily), state.is_free_tier) == ("0.25", "1.75", True)


@pytest.mark.parametrize(
    ("period", "remaining", "seconds"),
    [("daily", 0, 8 * HOUR), ("daily", -0.25, 8 * HOUR), ("monthly", 0, 24 * HOUR), (None, 0, HOUR)],
)
def test_a_spent_key_rests_until_its_reset_a_day_at_most(period: str | None, remaining: float, seconds: float) -> None:
    evening = datetime(2026, 11, 12, 16, tzinfo=UTC)
    state = key_state_of({"limit_remaining": remaining, "limit_reset": period}, evening)

    assert (state.verdict.kind, state.verdict.error_class) == (Kind.PAUSE, "credits")
    assert state.verdict.wait_seconds == seconds


@pytest.mark.parametrize(
    ("raw", "kind", "error_class"),
    [
        (http(401, {"error": {"code": 401, "message": "No"}}), Kind.PAUSE, "auth"),
        (http(200, {"error": {"code": 401, "message": "No"}}), Kind.PAUSE, "auth"),
        (http(503), Kind.RETRY, "upstream"),
        (b"", Kind.RETRY, "transport"),
        (http(200, "<html>"), Kind.RETRY, "upstream"),
        (http(200, {"data": {"limit_remaining": "much", "limit_reset": 7}}), Kind.OK, ""),
        (http(200, {"data": None}), Kind.OK, ""),
    ],
)
def test_trouble_with_the_question_is_no_verdict_on_the_key(raw: bytes, kind: Kind, error_class: str) -> None:
    with serving(answering(raw)) as (client, _server):
        verdict = client.key_state().verdict

    assert (verdict.kind, verdict.error_class) == (kind, error_class)


def test_a_generation_is_found_or_not_yet() -> None:
    found = {"data": {"id": "gen-1", "total_cost": 0.01}}
    scripts = [answering(http(404)), answering(http(200, found)), answering(http(500)), answering(http(200, "{}"))]
    with serving(*scripts) as (client, server):
        answers = []
        for _ in scripts:
            answers.append(client.generation("gen-1&x=../key"))
            client.close()

    assert answers == [None, {"id": "gen-1", "total_cost": 0.01}, None, None]
    assert server.requests[0].line == "GET /api/v1/generation?id=gen-1%26x%3D..%2Fkey HTTP/1.1"
