"""A worker that asks one question per job and can kill itself at a chosen point of the ledger. Run by tests alone."""

import os
import signal
from collections.abc import Callable
from typing import Any

from openrouter_client.asking import LanguageModel
from openrouter_client.catalogue import Catalogue
from openrouter_client.ledger import Ledger
from openrouter_client.profile import Profile
from openrouter_client.request import Message, Question
from openrouter_client.settings import ClientSettings
from openrouter_client.transport import Client
from sidelinja_jobs import Context, Job, load_settings
from tests.services.asking_support import SCHEMA, check, reask

settings = load_settings(ClientSettings)
client = Client(Profile.from_settings(settings), settings)
model = LanguageModel(client, Catalogue(client), settings)


def die() -> None:
    """As `kill -9` does: no line of Python runs after this."""
    os.kill(os.getpid(), signal.SIGKILL)


def dying(method: Callable[..., Any], *, is_before: bool) -> Callable[..., Any]:
    def call(*args: Any, **named: Any) -> Any:
        if is_before:
            die()
        done = method(*args, **named)
        die()
        return done

    return call


METHODS = {
    "reserved": ("reserve", False),  # the money is held, nothing is sent
    "sent": ("mark_sent", False),  # the ledger says sent, and not a byte has left
    "headers": ("note_generation", False),  # the answer has begun
    "answered": ("settle", True),  # it is all here, and stands nowhere
    "received": ("settle", False),  # it stands in the ledger, and nobody has looked at it
}
point = os.environ.get("DIE_AT", "")
if point in METHODS:
    name, before = METHODS[point]
    setattr(Ledger, name, dying(getattr(Ledger, name), is_before=before))


def handle(job: Job[dict[str, Any]], ctx: Context) -> dict[str, Any]:
    question = Question(
        "whole", (Message("user", f"Hva handler {job.id} om?"),), SCHEMA, 1000, session_id=str(job.id)
    )  # fmt: skip
    answer = model.ask(question, job, ctx, check=check, reask=reask, accepts=lambda _: False)
    if point == "finished":
        die()
    return {
        "data": answer.data,
        "is_reused": answer.is_reused,
        "is_cache_hit": answer.is_cache_hit,
        "is_possible_duplicate": answer.is_possible_duplicate,
        "cost_usd": str(answer.cost_usd),
    }
