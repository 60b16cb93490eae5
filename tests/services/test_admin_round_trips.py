"""How often a request waits for the database: over a network that is most of what it costs."""

from collections.abc import Callable, Generator
from typing import Any

import httpx
import psycopg
import pytest

from tests.services.admin_site import AdminSite
from tests.services.api_client import api_client

JOB = {"job_type": "test_job", "payload": {"path": "a.mp3"}}


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], httpx.Response]], int]:
    """How many answers of the database a request waits for. What the view does besides may add to some: the fewest."""
    wait, waited = psycopg.AsyncConnection.wait, [0]

    def noted(steps: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """The steps of one call; what has nothing to ask, such as the end of no transaction, waits for none."""
        try:
            step = next(steps)
            waited[0] += 1
            while True:
                step = steps.send((yield step))
        except StopIteration as end:
            return end.value

    async def counted(self: psycopg.AsyncConnection[Any], steps: Any, *arguments: Any) -> Any:
        return await wait(self, noted(steps), *arguments)

    monkeypatch.setattr(psycopg.AsyncConnection, "wait", counted)

    def count(ask: Callable[[], httpx.Response]) -> int:
        found = []
        for _ in range(4):
            before = waited[0]
            assert ask().is_success
            found.append(waited[0] - before)
        return min(found)

    return count


def test_an_enqueue_waits_for_the_token_the_type_and_the_job(admin_site: AdminSite, trips: Any) -> None:
    with api_client(admin_site) as api:
        assert trips(lambda: api.post("/jobs", json=JOB)) == 3
        assert trips(lambda: api.post("/jobs/batch", json={"jobs": [JOB] * 20})) == 3


def test_a_page_waits_for_its_session_and_its_rows(admin_site: AdminSite, trips: Any) -> None:
    assert trips(lambda: admin_site.operator.get("/workers")) == 2


def test_a_connection_that_the_server_has_ended_is_not_asked(admin_site: AdminSite) -> None:
    """Nobody sees that it was there: it is told apart without asking it."""
    with api_client(admin_site) as api:
        for _ in range(3):
            assert api.get("/job-types").is_success
            ended = admin_site.database.rows(
                "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
                " where usename = 'jobbko_admin' and datname = current_database()"
            )
            assert ended
            assert api.post("/jobs", json=JOB).is_success
            assert admin_site.operator.get("/workers").is_success
