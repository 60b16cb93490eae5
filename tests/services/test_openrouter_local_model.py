"""A real small model answers, offline, from a server of another make (`make test-local-llm`).

It speaks the protocol for real and makes up nearly everything it says, in Norwegian more than ever: so it shows that
the transport holds, that the grammar of the server keeps the schema, and that none of its inventions is let through.
"""

import json
import sys
from collections.abc import Iterator
from decimal import Decimal

import pytest

from openrouter_client.profile import Profile
from openrouter_client.request import AnswerSchema, Message, Question, build_request
from openrouter_client.settings import ClientSettings
from openrouter_client.transport import Client, Reply
from openrouter_client.verdicts import Kind
from sidelinja_jobs import load_settings
from tests.databases import Database
from tests.services.local_model import local_model
from tests.services.openrouter_service import JOB_TYPE, SENTENCES
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcesses

pytestmark = [pytest.mark.local_llm, pytest.mark.timeout(900)]
ASKED = (
    Message("system", "You write titles of podcasts. Answer with JSON."),
    Message("user", "Today we talk about ferries in the north of Norway and why they are late."),
)
TITLES = AnswerSchema(
    "titles",
    "1",
    {
        "type": "object",
        "properties": {
            "title": {"type": "string", "maxLength": 60},
            "keywords": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"type": "string", "maxLength": 20}},
        },
        "required": ["title", "keywords"],
        "additionalProperties": False,
    },
)


@pytest.fixture(scope="module")
def model_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with local_model(tmp_path_factory.mktemp("local-model")) as address:
        yield address


def ask(model_url: str, *messages: Message, most: int = 200, generations: list[str] | None = None) -> Reply:
    environ = {"OPENROUTER_BASE_URL": model_url, "OPENROUTER_MODEL": "smollm2", "OPENROUTER_CONTEXT_TOKENS": "4096"}
    settings = load_settings(ClientSettings, environ)
    profile = Profile.from_settings(settings)
    question = Question("test", messages or ASKED, TITLES, most, session_id="local")
    client = Client(profile, settings)
    try:
        return client.send(build_request(profile, question), (generations if generations is not None else []).append)
    finally:
        client.close()


def test_answer_fits_the_schema_and_tells_its_tokens(model_url: str) -> None:
    reply = ask(model_url)

    assert reply.verdict.kind is Kind.OK, reply.verdict
    answer = json.loads(reply.text)
    assert set(answer) == {"title", "keywords"}
    assert 1 <= len(answer["keywords"]) <= 3
    assert reply.body is not None
    usage = reply.body["usage"]
    assert usage["prompt_tokens"] > 20
    assert 0 < usage["completion_tokens"] <= 200


def test_answer_that_needs_more_than_its_budget_is_truncated(model_url: str) -> None:
    reply = ask(model_url, most=16)

    assert reply.verdict.kind is Kind.TRUNCATED, reply.verdict
    with pytest.raises(json.JSONDecodeError):
        json.loads(reply.text)


def test_prompt_that_is_too_long_is_told_so(model_url: str) -> None:
    reply = ask(model_url, Message("user", "The ferry was late again. " * 1_500))

    assert reply.verdict.kind is Kind.TOO_LONG, reply.verdict
    assert reply.status == 400


def test_nothing_that_the_model_invents_is_let_through(
    model_url: str, database: Database, worker_process: WorkerProcesses
) -> None:
    """Whatever it says, times and quotes are the transcript's, and what is not found there is counted."""
    settings = {
        "OPENROUTER_BASE_URL": model_url,
        "OPENROUTER_MODEL": "smollm2",
        "OPENROUTER_CONTEXT_TOKENS": "4096",
        "OPENROUTER_READ_SECONDS": "120",
    }
    command = [sys.executable, "-m", "services.openrouter"]
    worker = worker_process.start_command(database, command, "worker_openrouter", settings)
    worker_process.wait_until_registered(database, worker, 30)
    segments = [
        {"start": 30.0 * number, "end": 30.0 * number + 29.0, "text": text} for number, text in enumerate(SENTENCES)
    ]
    wants = ["title", "quotes"]  # a small model fills every list to its limit, at some ten tokens a second
    job_id = database.enqueue(JOB_TYPE, {"segments": segments, "language": "nb", "wants": wants})
    ended = "select * from job_queue where id = %s and status in ('completed', 'error', 'retry')"
    job = wait_until(lambda: database.rows(ended, job_id), 800, every=0.5, what="the job to end")[0]

    assert job["status"] == "completed", job["error_msg"]
    result = job["result"]
    starts = {segment["start"] for segment in segments}
    for quote in result["quotes"]:
        assert quote["text"] in segments[quote["seg_from"]]["text"]
        assert quote["start_s"] in starts
    assert {chapter["start_s"] for chapter in result["chapters"]} <= starts
    spoken = " ".join(SENTENCES)
    assert all(person["name"].split()[0] in spoken for person in [*result["guests"], *result["hosts"]])
    assert result["quality"]["grounded_quotes"] == len(result["quotes"])
    assert result["provenance"]["cost_source"] == "local"
    assert Decimal(result["provenance"]["cost_usd"]) == 0
