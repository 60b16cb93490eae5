"""Workers that are killed at each state of the ledger: paid once where the ledger or the cache has the answer, flagged
where nobody can know, and the result stored exactly once."""

import threading
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from sidelinja_jobs.errors import HandlerError
from tests.databases import Database
from tests.openrouter_standin import Gate, StandIn, faults
from tests.services.asking_support import GOOD, Asking
from tests.sessions import expire, make_due, run_in_threads
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcess, WorkerProcesses

HANDLER = Path(__file__).with_name("asking_worker.py")


@dataclass
class Workers:
    """Workers that ask the stand-in."""

    database: Database
    standin: StandIn
    processes: WorkerProcesses

    def start(self, *, die_at: str = "", **environ: str) -> WorkerProcess:
        values = {
            "OPENROUTER_API_KEY": self.standin.key,
            "OPENROUTER_BASE_URL": self.standin.base_url,
            "OPENROUTER_PROFILE": "openrouter",
            "OPENROUTER_READ_SECONDS": "20",
            "DIE_AT": die_at,
            **environ,
        }
        return self.processes.start(self.database, HANDLER, environ=values)

    def crash(self, die_at: str, **environ: str) -> UUID:
        """A job whose worker died at that point."""
        job_id = self.database.enqueue()
        worker = self.start(die_at=die_at, **environ)
        assert worker.wait(20) == -9, worker.log_text()
        assert self.database.job(job_id)["status"] == "running"
        expire(self.database, job_id)  # in place of waiting for it, and for the next worker's sweep
        self.database.rows("select * from sweep_jobs()")
        make_due(self.database, job_id)
        return job_id

    def finish(self, job_id: UUID, **environ: str) -> dict[str, Any]:
        """The job's result, from the next worker."""
        self.start(**environ)
        return self.wait(job_id)

    def wait(self, job_id: UUID) -> dict[str, Any]:
        job = wait_until(
            lambda: (job := self.database.job(job_id))["status"] == "completed" and job, 20, what="the result"
        )
        ends = "select count(*) from job_event where job_id = %s and new_status = 'completed'"
        assert self.database.value(ends, job_id) == 1
        assert job["result"]["data"] == GOOD
        result: dict[str, Any] = job["result"]
        return result

    def calls(self) -> list[tuple[str, str, bool]]:
        rows = self.database.rows("select * from llm_call order by reserved_at")
        return [(row["state"], row["cost_source"], row["is_possible_duplicate"]) for row in rows]


@pytest.fixture
def workers(database: Database, standin: StandIn, worker_process: WorkerProcesses) -> Workers:
    database.rows("update job_type set backoff_base_seconds = 1 where name = 'test_job'")
    return Workers(database, standin, worker_process)


def test_killed_before_anything_was_sent_it_is_paid_once(workers: Workers, standin: StandIn) -> None:
    job_id = workers.crash("reserved")
    assert standin.chats == []

    result = workers.finish(job_id)

    assert not result["is_possible_duplicate"]
    assert standin.billed_count == 1
    assert workers.calls() == [("failed", "unbilled", False), ("received", "provider", False)]


def test_killed_on_the_edge_of_sending_nobody_can_know_so_it_is_flagged(workers: Workers, standin: StandIn) -> None:
    """The ledger says sent, and the first byte may or may not have left; here it had not."""
    job_id = workers.crash("sent")
    assert standin.chats == []

    result = workers.finish(job_id)

    assert result["is_possible_duplicate"]
    assert standin.billed_count == 1
    assert workers.calls() == [("unknown", "unknown", False), ("received", "provider", True)]
    counted = workers.database.value("select sum(charged_usd) from llm_call")
    assert counted > standin.billed_usd  # the day's budget counts what it may have cost


def test_killed_while_the_answer_streams_its_cost_is_asked_for(workers: Workers, standin: StandIn) -> None:
    gate = Gate()
    standin.script(faults.held(gate))
    job_id = workers.crash("headers")
    gate.opened.set()

    result = workers.finish(job_id)

    assert result["is_possible_duplicate"]
    first = workers.database.rows("select * from llm_call order by reserved_at")[0]
    assert first["generation_id"] is not None
    assert first["state"] == "unknown"
    assert len(standin.chats) == 2
    if first["cost_source"] == "generation":
        assert first["cost_usd"] == standin.billing[0].cost


def test_killed_with_the_whole_answer_in_hand_the_cache_has_it(workers: Workers, standin: StandIn) -> None:
    job_id = workers.crash("answered")
    assert standin.billed_count == 1

    result = workers.finish(job_id)

    assert standin.billed_count == 1
    assert (result["is_cache_hit"], result["is_possible_duplicate"]) == (True, False)
    assert workers.calls() == [("unknown", "generation", False), ("received", "cache", True)]
    assert workers.database.value("select sum(charged_usd) from llm_call") == standin.billed_usd


def test_killed_with_the_whole_answer_in_hand_and_no_cache_it_is_paid_twice_and_flagged(
    workers: Workers, standin: StandIn
) -> None:
    job_id = workers.crash("answered", OPENROUTER_CACHE_SECONDS="0")

    result = workers.finish(job_id, OPENROUTER_CACHE_SECONDS="0")

    assert standin.billed_count == 2
    assert result["is_possible_duplicate"]
    assert workers.calls() == [("unknown", "generation", False), ("received", "provider", True)]
    assert workers.database.value("select sum(charged_usd) from llm_call") == standin.billed_usd


@pytest.mark.parametrize("point", ["received", "finished"])
def test_killed_after_the_answer_stands_it_is_never_asked_for_again(
    workers: Workers, standin: StandIn, point: str
) -> None:
    job_id = workers.crash(point, OPENROUTER_CACHE_SECONDS="0")

    result = workers.finish(job_id, OPENROUTER_CACHE_SECONDS="0")

    assert (result["is_reused"], result["is_possible_duplicate"]) == (True, False)
    assert Decimal(result["cost_usd"]) == standin.billed_usd
    assert len(standin.chats) == standin.billed_count == 1
    assert workers.calls() == [("received", "provider", False)]


def test_a_worker_that_slept_through_its_lease_writes_nothing_but_the_ledger(
    workers: Workers, standin: StandIn
) -> None:
    gate = Gate()
    standin.script(faults.held(gate))
    job_id = workers.database.enqueue()
    sleeper = workers.start()
    wait_until(lambda: standin.chats, what="the first call")
    sleeper.freeze()

    result = workers.finish(job_id)
    gate.opened.set()
    sleeper.thaw()

    wait_until(lambda: sleeper.log_events("job ended"), 20, what="the sleeper to notice")
    assert sleeper.log_events("job ended")[0]["outcome"] == "lost_lease"
    assert workers.wait(job_id) == result
    assert result["is_possible_duplicate"] is not result["is_cache_hit"]
    assert len(standin.chats) == 2


def test_ten_at_once_never_bill_more_than_the_day_has(database: Database, standin: StandIn) -> None:
    """Ten runs, each with three questions, and money for a few of them."""
    database.rows("update job_type set lease_seconds = 600 where name = 'test_job'")
    asked = [Asking(database, standin, day_budget_usd=Decimal("0.02"), cache_seconds=0) for _ in range(10)]
    outcomes: list[str] = []
    over: list[Decimal] = []
    barrier = threading.Barrier(10)

    def ask(number: int) -> None:
        barrier.wait(20)
        for turn in range(3):
            try:
                asked[number].ask(asked[number].question(f"{number} spør for {turn}. gang"))
                outcomes.append("answered")
            except HandlerError as error:
                outcomes.append(error.error_class)
            if standin.billed_usd > Decimal("0.02"):
                over.append(standin.billed_usd)

    run_in_threads(ask, 10)

    counted = database.value("select sum(charged_usd) from llm_call")
    assert over == []
    assert counted == standin.billed_usd <= Decimal("0.02")
    assert set(outcomes) == {"answered", "budget_exceeded"}
    assert standin.billed_count == outcomes.count("answered")
    for one in asked:
        one.close()
