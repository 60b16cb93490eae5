"""A client and the scripted server that it asks."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from openrouter_client.profile import Profile, ProfileKind, Secret
from openrouter_client.request import AnswerSchema, ChatRequest, Message, Question, build_request
from openrouter_client.settings import ClientSettings
from openrouter_client.transport import Client, Reply
from tests.unit.scripted_server import Peer, Script, ScriptedServer

KEY = "sk-or-v1-c4n4ry0123456789abcdef"
TEXT = '{"tittel": "på «tur» 😀"}'


def profile_of(url: str, **changes: Any) -> Profile:
    made = Profile(url, ProfileKind.OPENROUTER, Secret(KEY), "google/gemini-2.5-flash", cache_seconds=3600)
    return replace(made, **changes)


def question(text: str = "Hei på deg") -> Question:
    return Question("analyze", (Message("user", text),), AnswerSchema("a", "1", {"type": "object"}), 100, "job-1")


@contextmanager
def serving(*scripts: Script, read: float = 2.0, total: float = 10.0, **changes: Any) -> Iterator[tuple[Client, Any]]:
    with ScriptedServer(list(scripts)) as server:
        settings = ClientSettings(read_seconds=read, total_seconds=total)
        client = Client(profile_of(server.url, **changes), settings)
        try:
            yield client, server
        finally:
            client.close()


def request_of(client: Client, text: str = "Hei på deg") -> ChatRequest:
    return build_request(client.profile, question(text))


def ask(*scripts: Script, **options: Any) -> Reply:
    with serving(*scripts, **options) as (client, _server):
        return client.send(request_of(client))


def answering(*pieces: bytes, pause: float = 0.0) -> Script:
    def script(peer: Peer) -> None:
        peer.read()
        for piece in pieces:
            peer.send(piece)
            time.sleep(pause)

    return script
