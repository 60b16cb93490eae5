"""Asks the server. A reply is a value: trouble of the network is a verdict, never an exception.

- A call is streamed and collected, so that silence can be told from a long answer, and the generation's id is known
  before the answer.
- A stop (`JobStopped`) may be raised inside any line here, by a signal. It closes the connection on its way out, which
  ends the billing at most providers.
- The one retry: the server closed a kept connection just as it was used again, and not a byte came back.

A client is for one thread.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from openrouter_client.advice import GIVE_A_KEY
from openrouter_client.connection import Asked, Connection, Flight, TroubleError
from openrouter_client.error_body import as_mapping, find_error
from openrouter_client.key_state import KeyState, key_state_of
from openrouter_client.profile import Profile
from openrouter_client.received import OnGenerationId, Received
from openrouter_client.redaction import redact
from openrouter_client.request import ChatRequest
from openrouter_client.settings import ClientSettings, key_problem
from openrouter_client.verdicts import Kind, Verdict, classify

QUICK_SECONDS = 30.0  # for the questions that no model is asked
NO_KEY = Verdict(
    Kind.PAUSE,
    "no_api_key",
    "there is no key for OpenRouter",
    advice=GIVE_A_KEY,
    is_billed=False,
)
Judge = Callable[[Received, Verdict | None], Verdict]


@dataclass(frozen=True)
class Reply:
    """What came back, without the key.

    `body` is an ordinary chat.completion, also when it was streamed; None when there is none. `text` is what the model
    said, or what came instead of a completion.
    """

    status: int | None  # None: no answer
    headers: Mapping[str, str]  # names in lower case
    body: dict[str, Any] | None = field(repr=False)
    text: str = field(repr=False)
    verdict: Verdict
    generation_id: str | None
    was_sent: bool  # False: the server cannot have seen the request
    seconds: float


class Client:
    """Calls of one profile."""

    def __init__(self, profile: Profile, settings: ClientSettings) -> None:
        if profile.key is not None and (problem := key_problem(profile.key.reveal())):
            raise ValueError(problem)
        self.profile = profile
        self._chat = Connection(profile.base_url, settings.read_seconds, settings.total_seconds)
        self._quick = Connection(profile.base_url, QUICK_SECONDS, QUICK_SECONDS)

    def send(
        self,
        request: ChatRequest,
        on_generation_id: OnGenerationId | None = None,
        on_piece: Callable[[], None] | None = None,
    ) -> Reply:
        """Asks and collects the answer. `on_generation_id` is called once, before the answer is read, if it can be;
        `on_piece` for each piece of it.

        Whatever a callback or a signal raises goes through, and closes the connection.
        """
        if not self.profile.is_usable:
            return Reply(None, {}, None, "", NO_KEY, None, was_sent=False, seconds=0.0)
        headers = {**request.headers, **self._authorization()}
        received = Received(on_generation_id, self.profile.key, on_piece)
        asked = Asked("POST", request.url, headers, request.body)
        return self._exchange(self._chat, asked, received, _judge_completion)

    def key_state(self) -> KeyState:
        """Whether the key works. A server of one's own is not asked: it knows no such question."""
        if not self.profile.is_usable:
            return KeyState(NO_KEY)
        if not self.profile.is_openrouter:
            return KeyState(Verdict(Kind.OK))
        reply = self.get("/key")
        if reply.verdict.kind is not Kind.OK:
            return KeyState(reply.verdict)
        return key_state_of(as_mapping((reply.body or {}).get("data")), datetime.now(UTC))

    def generation(self, generation_id: str) -> dict[str, Any] | None:
        """What is known of a generation: cost, tokens, provider. None when it is not known, or not yet (up to 15 s)."""
        if not self.profile.is_openrouter or not self.profile.is_usable:
            return None
        reply = self.get(f"/generation?id={quote(generation_id, safe='')}")
        data = (reply.body or {}).get("data")
        return data if reply.verdict.kind is Kind.OK and isinstance(data, dict) else None

    def get(self, path: str) -> Reply:
        """Any other question, such as the catalogue."""
        headers = {"Accept": "application/json", **self._authorization()}
        asked = Asked("GET", self.profile.base_url + path, headers)
        return self._exchange(self._quick, asked, Received(None, self.profile.key), _judge_document)

    def close(self) -> None:
        self._chat.drop()
        self._quick.drop()

    def _authorization(self) -> dict[str, str]:
        key = self.profile.key
        return {} if key is None else {"Authorization": f"Bearer {key.reveal()}"}

    def _exchange(self, connection: Connection, asked: Asked, received: Received, judge: Judge) -> Reply:
        flight = connection.flight()
        try:
            trouble = _receive(connection, asked, flight, received)
        except BaseException:
            connection.drop()
            raise
        verdict = judge(received, trouble)
        return Reply(
            status=received.status,
            headers=received.headers,
            body=received.body,
            text=received.text,
            verdict=replace(verdict, message=redact(verdict.message, self.profile.key), http_status=received.status),
            generation_id=received.generation_id,
            was_sent=flight.was_sent,
            seconds=time.monotonic() - flight.started,
        )


def _receive(connection: Connection, asked: Asked, flight: Flight, received: Received) -> Verdict | None:
    """Fills `received`. Returns the trouble that ended it early, if any did."""
    trouble = None
    try:
        with connection.ask(asked, flight) as answer:
            received.begin(answer.status, answer.headers)
            for piece in answer.pieces:
                received.take(piece)
                if received.is_done:
                    break
    except TroubleError as error:
        trouble = error.verdict
    received.end(is_cut=trouble is not None)
    return trouble


def _judge_completion(received: Received, trouble: Verdict | None) -> Verdict:
    if trouble is not None and not received.survives_a_cut:
        return trouble
    verdict = classify(received.status or 0, received.headers, _content(received))
    if not received.is_whole:
        received.forget()
        return Verdict(Kind.RETRY, "transport", "the stream ended before the answer did")
    return verdict


def _judge_document(received: Received, trouble: Verdict | None) -> Verdict:
    if trouble is not None and not received.survives_a_cut:
        return trouble
    body = received.body
    if body is not None and 200 <= (received.status or 0) < 300 and find_error(body) is None:
        return Verdict(Kind.OK)
    return classify(received.status or 0, received.headers, _content(received))


def _content(received: Received) -> object:
    return received.text if received.body is None else received.body
