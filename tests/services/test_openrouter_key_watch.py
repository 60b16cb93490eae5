"""The watch of the key: which pauses it makes and ends, and which it leaves alone."""

import itertools
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
import structlog

from openrouter_client.key_watch import KeyWatch
from openrouter_client.metrics import ModelMetrics
from openrouter_client.settings import ClientSettings
from sidelinja_jobs import queue
from sidelinja_jobs.settings import DatabaseSettings
from tests.databases import Database
from tests.openrouter_standin import StandIn
from tests.services.asking_support import own_registry
from tests.sessions import worker_session
from tests.waiting import stays, wait_until
from tests.worker_processes import WorkerProcesses

WRONG_KEY = "sk-or-v1-" + "0" * 40
MakeWatch = Callable[..., KeyWatch]


@pytest.fixture
def make_watch(database: Database, standin: StandIn) -> Iterator[MakeWatch]:
    started: list[KeyWatch] = []

    def make(key: str | None = standin.key, **options: Any) -> KeyWatch:
        settings = ClientSettings(
            api_key=key,
            base_url=options.pop("base_url", standin.base_url),
            profile=options.pop("profile", "openrouter"),
            model="google/gemini-2.5-flash",
        )
        url = options.pop("url", database.dsn("worker_test"))
        watch = KeyWatch(
            settings, DatabaseSettings(url=url), "test_job", structlog.get_logger(),
            **({"probe_seconds": 0.1, "soon_seconds": 0.05} | options),
        )  # fmt: skip
        started.append(watch)
        return watch

    yield make
    for watch in started:
        if watch._thread.ident is not None:
            watch.close()
            watch._thread.join(5)


def pause_of(database: Database) -> tuple[str | None, str | None]:
    row = database.row("select pause_origin, pause_class from job_type where name = 'test_job'")
    return row["pause_origin"], row["pause_class"]


def in_hours(hours: float) -> datetime:
    return datetime.now(UTC) + timedelta(hours=hours)


def test_without_a_key_the_type_is_paused_at_once_and_nothing_is_asked(
    database: Database, standin: StandIn, make_watch: MakeWatch
) -> None:
    assert make_watch(None).look() is not None

    row = database.row("select * from job_type where name = 'test_job'")
    assert (row["pause_origin"], row["pause_class"]) == ("worker", "no_api_key")
    assert "OPENROUTER_API_KEY" in row["pause_reason"]
    assert row["paused_until"] is not None  # never for ever
    assert standin.requests == []


def test_a_refused_key_pauses_and_one_that_works_ends_it(database: Database, make_watch: MakeWatch) -> None:
    assert make_watch(WRONG_KEY).look() is not None
    assert pause_of(database) == ("worker", "auth")
    assert WRONG_KEY not in str(database.rows("select * from job_type"))

    assert make_watch().look() is None
    assert pause_of(database) == (None, None)


def test_a_pause_outlasts_the_look_that_would_renew_it(database: Database, make_watch: MakeWatch) -> None:
    make_watch(WRONG_KEY, probe_seconds=1000.0).look()

    rest = database.value("select extract(epoch from paused_until - now()) from job_type where name = 'test_job'")
    assert 1900 < rest <= 2000


def test_a_key_whose_limit_is_spent_pauses(database: Database, standin: StandIn, make_watch: MakeWatch) -> None:
    standin.account.balance = Decimal(0)

    assert make_watch().look() is not None

    assert pause_of(database) == ("worker", "key_limit")
    standin.account.balance = Decimal(5)
    assert make_watch().look() is None
    assert pause_of(database) == (None, None)


@pytest.mark.parametrize("key", [WRONG_KEY, None])
def test_an_operators_pause_stays_whatever_the_key_does(database: Database, make_watch: MakeWatch, key: Any) -> None:
    database.connect("operator").execute("select pause_job_type('test_job', null, 'vedlikehold')")

    make_watch(key).look()
    assert pause_of(database) == ("operator", None)
    make_watch().look()
    assert pause_of(database) == ("operator", None)


@pytest.mark.parametrize(("origin", "pause_class"), [("budget", "budget_exceeded"), ("worker", "credits")])
def test_a_key_that_works_ends_no_pause_for_another_cause(
    database: Database, make_watch: MakeWatch, origin: str, pause_class: str
) -> None:
    queue.pause_job_type(worker_session(database), "test_job", in_hours(1), "x", origin, pause_class)

    assert make_watch().look() is None

    assert pause_of(database) == (origin, pause_class)


def test_a_server_that_is_away_says_nothing_of_the_key(
    database: Database, standin: StandIn, make_watch: MakeWatch
) -> None:
    away = make_watch(base_url="http://127.0.0.1:9/api/v1")

    assert away.look() is not None
    assert pause_of(database) == (None, None)
    make_watch(None).look()
    assert away.look() is not None
    assert pause_of(database) == ("worker", "no_api_key")


def test_a_server_of_ones_own_needs_no_key_and_is_not_asked(database: Database, make_watch: MakeWatch) -> None:
    make_watch(None).look()

    assert make_watch(None, profile="generic", base_url="http://127.0.0.1:9/v1").look() is None

    assert pause_of(database) == (None, None)


def test_a_job_that_comes_without_a_key_costs_no_attempt_and_rests_its_type(
    database: Database, standin: StandIn, worker_process: WorkerProcesses
) -> None:
    """Where the watch has not come so far: a real worker, which goes on living."""
    job_id = database.enqueue()
    environ = {"OPENROUTER_BASE_URL": standin.base_url, "OPENROUTER_PROFILE": "openrouter"}
    worker = worker_process.start(database, Path(__file__).with_name("asking_worker.py"), environ=environ)

    wait_until(lambda: pause_of(database) == ("worker", "no_api_key"), what="the pause")

    job = wait_until(lambda: (found := database.job(job_id))["status"] == "pending" and found, what="the job put back")
    assert (job["attempts"], job["error_class"]) == (0, None)
    assert worker.is_alive()
    assert database.rows("select charged from job_attempt") == [{"charged": False}]


# The thread.


def test_it_waits_for_a_database_that_is_not_there_yet(
    database: Database, make_watch: MakeWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = make_watch(None)
    real, tries = watch._pause, itertools.count(1)

    def away(*arguments: Any) -> None:
        if next(tries) < 3:
            raise psycopg.OperationalError("the database system is starting up")
        real(*arguments)

    monkeypatch.setattr(watch, "_pause", away)
    watch.start()

    wait_until(lambda: pause_of(database) == ("worker", "no_api_key"), what="the pause")


def test_a_key_that_recovers_resumes_the_type_by_itself(
    database: Database, standin: StandIn, make_watch: MakeWatch
) -> None:
    standin.account.balance = Decimal(0)
    make_watch().start()
    wait_until(lambda: pause_of(database) == ("worker", "key_limit"), what="the pause")

    standin.account.balance = Decimal(5)

    wait_until(lambda: pause_of(database) == (None, None), what="the pause to end")


def test_a_key_that_works_is_not_asked_about_again_until_somebody_doubts_it(
    standin: StandIn, make_watch: MakeWatch
) -> None:
    watch = make_watch()
    watch.start()
    wait_until(lambda: len(standin.requests) == 1, what="the first look")
    stays(lambda: len(standin.requests) == 1, 0.4)

    watch.doubt()

    wait_until(lambda: len(standin.requests) == 2, what="the second look")
    stays(lambda: len(standin.requests) == 2, 0.4)


def test_while_it_does_not_work_it_is_looked_at_at_bounded_intervals(
    standin: StandIn, make_watch: MakeWatch, database: Database
) -> None:
    watch = make_watch(WRONG_KEY, probe_seconds=0.3)
    watch.start()
    for _ in range(50):
        watch.doubt()
    wait_until(lambda: len(standin.requests) >= 3, what="three looks")

    first, *_, last = (request.at for request in standin.requests)
    assert last - first >= 0.3 * (len(standin.requests) - 1) * 0.9


def test_the_gauge_says_whether_the_key_works(
    standin: StandIn, make_watch: MakeWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = own_registry(monkeypatch)
    metrics = ModelMetrics("google/gemini-2.5-flash", Decimal("5"))

    def gauge() -> float | None:
        return registry.get_sample_value("openrouter_key_usable")

    watch = make_watch(metrics=metrics)
    watch.look()
    assert gauge() == 1
    watch.doubt()
    assert gauge() == 0
    make_watch(WRONG_KEY, metrics=metrics).look()
    assert gauge() == 0
