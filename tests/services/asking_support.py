"""A model to ask, on the stand-in, for a job that a worker of the test holds; without a worker process."""

import functools
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import structlog
from prometheus_client import CollectorRegistry

from openrouter_client import calls, metrics
from openrouter_client.asking import Answer, LanguageModel
from openrouter_client.catalogue import Catalogue
from openrouter_client.profile import Profile
from openrouter_client.request import AnswerSchema, Message, Question
from openrouter_client.settings import ClientSettings
from openrouter_client.transport import Client
from sidelinja_jobs import queue
from sidelinja_jobs.context import Context
from sidelinja_jobs.database import Link, connect
from sidelinja_jobs.models import Claim, Job
from sidelinja_jobs.run import Run
from sidelinja_jobs.settings import DatabaseSettings
from tests.databases import Database

if TYPE_CHECKING:
    from tests.openrouter_standin import StandIn  # takes a second, which a worker of the tests need not pay

SCHEMA = AnswerSchema(
    "summary", "1",
    {
        "type": "object", "additionalProperties": False, "required": ["title", "words"],
        "properties": {
            "title": {"type": "string"}, "words": {"type": "array", "minItems": 2, "items": {"type": "string"}},
        },
    },
)  # fmt: skip
GOOD = {"title": "Svar", "words": ["Svar", "Svar"]}  # what the stand-in says unless told otherwise


def check(data: object) -> list[str]:
    """What is wrong with an answer to the question below."""
    if not isinstance(data, dict):
        return ["expected an object"]
    found = [f"the field {name!r} is missing" for name in ("title", "words") if name not in data]
    return found + ([] if data.get("title", "x") else ["the title is empty"])


def reask(problems: Sequence[str]) -> str:
    """What asks once more."""
    return "\n".join(["Det var noe galt med svaret:", *problems])


class Asking:
    """A job and what it takes to ask for it. `budgets` and other settings as in the environment's classes."""

    def __init__(self, database: Database, standin: "StandIn", **settings: Any) -> None:
        self.database, self.standin = database, standin
        defaults: dict[str, Any] = {
            "api_key": standin.key,
            "base_url": standin.base_url,
            "profile": "generic" if standin.is_generic else "openrouter",
            "model": "google/gemini-2.5-flash",
            "read_seconds": 20.0,
            "total_seconds": 40.0,
        }
        self.settings = ClientSettings(**(defaults | settings))
        self.doubts = 0
        self.model = self._model()
        self.job_id = database.enqueue(max_attempts=10)
        self.worker_id = f"asking-{self.job_id}"
        self._database_settings = DatabaseSettings(url=database.dsn("worker_test"))
        self.work = connect(self._database_settings, name="test work")
        self.claim = self._claim()
        self.run: Run | None = None  # in place of a fresh one

    def with_settings(self, **settings: Any) -> None:
        """Another configuration from now on, as after a restart."""
        self.model.client.close()
        self.settings = replace(self.settings, **settings)
        self.model = self._model()

    def with_metrics(self, kept: metrics.ModelMetrics) -> None:
        """The same model anew, which counts there."""
        self.model.client.close()
        self.model = self._model(kept)

    def question(self, text: str = "Hva handler dette om?", **fields: Any) -> Question:
        values: dict[str, Any] = {
            "step": "whole", "messages": (Message("system", "Svar på norsk."), Message("user", text)), "schema": SCHEMA,
            "max_output_tokens": 1000, "session_id": str(self.job_id),
        }  # fmt: skip
        return Question(**(values | fields))

    def ask(self, question: Question | None = None, **more: Any) -> Answer:
        context = Context(
            self.run or self._run(), Link(lambda: self.work, lambda: None), self._connect, structlog.get_logger()
        )
        job = Job(self.job_id, "test_job", {}, 1, 10, 0, self.claim.created_at, self.claim.scheduled_for, None)
        options = {"check": check, "reask": reask, "accepts": lambda _: False} | more
        return self.model.ask(question or self.question(), job, context, **options)

    def next_run(self) -> None:
        """The present run ends without a word to the ledger, and the job is claimed anew."""
        queue.release(self.work, self.claim, "the test wants another run")
        self.claim = self._claim()

    def lose_answer(self, **columns: Any) -> None:
        """As if the process had died after it sent: the row still says so, and the answer is nowhere."""
        values = {"state": "sent", "response": None, "cost_usd": None, "cost_source": None, "usage": None} | columns
        assignments = ", ".join(f"{name} = %s" for name in values)
        self.database.rows(f"update llm_call set {assignments} where state = 'received'", *values.values())

    def calls(self) -> list[dict[str, Any]]:
        return self.database.rows("select * from llm_call order by reserved_at")

    def states(self) -> list[tuple[str, str | None]]:
        return [(call["state"], call["cost_source"]) for call in self.calls()]

    def close(self) -> None:
        self.model.client.close()
        self.work.close()

    def _model(self, kept: metrics.ModelMetrics | None = None) -> LanguageModel:
        client = Client(Profile.from_settings(self.settings), self.settings)
        return LanguageModel(client, Catalogue(client), self.settings, metrics=kept, on_refused_key=self._doubt)

    def _doubt(self) -> None:
        self.doubts += 1

    def _claim(self) -> Claim:
        queue.register(self.work, self.worker_id, "test_job", "1.0", "host", 1, None)
        (claim,) = queue.claim(self.work, "test_job", self.worker_id, 1)
        assert claim.id == self.job_id
        return claim

    def _run(self) -> Run:
        rules = queue.register(self.work, self.worker_id, "test_job", "1.0", "host", 1, None)
        return Run(self.claim, "test_job", rules, time.monotonic())

    def _connect(self, purpose: str) -> Any:
        return connect(self._database_settings, name=f"test {purpose}")


def each_asking(database: Database, standin: "StandIn", monkeypatch: pytest.MonkeyPatch) -> Iterator[Asking]:
    """A job whose lease outlasts the test, and short waits for what a generation cost."""
    monkeypatch.setattr(calls, "GENERATION_WAITS_SECONDS", (0.0, 0.1, 0.1))
    asking = Asking(database, standin)
    database.rows("update job_type set lease_seconds = 600 where name = 'test_job'")
    yield asking
    asking.close()
    assert standin.contract_problems == []


def own_registry(monkeypatch: pytest.MonkeyPatch) -> CollectorRegistry:
    """Metrics made from now on go there, since the process's registry takes each name once."""
    registry = CollectorRegistry()
    for name in ("Counter", "Gauge", "Histogram"):
        kind = getattr(metrics, name)
        monkeypatch.setattr(metrics, name, functools.partial(kind, registry=registry))
    return registry
