"""Workers of research_clip that are killed: the clip is completed once, is the one that would have been without, and is
paid for once where the ledger or the cache has the answer."""

import contextlib
import os
import signal
from typing import Any
from uuid import UUID

import psutil
import pytest

from tests.databases import Database
from tests.openrouter_standin import Gate, StandIn, faults
from tests.services.research_describing import TEXT, Describing
from tests.sessions import expire, make_due
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcess, WorkerProcesses

pytestmark = pytest.mark.timeout(90)
POINTS = (f"{n}. Rederiet skriver i punkt {n} at båten skal slepes i dag." for n in range(400))
PASTE = "\n\n".join((*TEXT["nb"], *POINTS))


@pytest.fixture
def research(database: Database, worker_process: WorkerProcesses, standin: StandIn) -> Describing:
    database.rows("update job_type set backoff_base_seconds = 1 where name = 'research_clip'")
    return Describing(database, worker_process, standin)


@pytest.fixture
def undisturbed(research: Describing) -> dict[str, Any]:
    """The clip of the same paste by a worker that nobody kills; it asks one question and is paid for it."""
    worker = research.start()
    clip = research.clip(PASTE)
    worker.end()
    assert research.standin.billed_count == 1
    return clip


def kill_and_finish(research: Describing, worker: WorkerProcess, job_id: UUID) -> dict[str, Any]:
    """Kills the worker at work; the job's result, from the next one."""
    children = worker.children()
    worker.kill()
    for child in children:
        with contextlib.suppress(psutil.NoSuchProcess):
            child.resume()  # one that was stopped before it had bound its life to its parent's sees the end now
    psutil.wait_procs(children, timeout=10)
    assert not any(child.is_running() for child in children), "the cleaner outlived its worker"
    assert research.database.job(job_id)["status"] == "running"
    expire(research.database, job_id)  # in place of waiting for it, and for the next worker's sweep
    research.database.rows("select * from sweep_jobs()")
    make_due(research.database, job_id)
    research.start()
    job = research.wait(job_id)
    ends = "select count(*) from job_event where job_id = %s and new_status = 'completed'"
    assert research.database.value(ends, job_id) == 1
    result: dict[str, Any] = job["result"]
    return result


def at_work(worker: WorkerProcess) -> psutil.Process | None:
    """The cleaning process, as soon as it has begun to load what it cleans with."""
    return next((child for child in worker.children() if child.memory_info().rss > 20 << 20), None)


def without_costs(clip: dict[str, Any]) -> dict[str, Any]:
    """The clip but for what is said about money: what a killed call cost is known if its answer had begun to come."""
    quality = clip["quality"]
    warnings = [warning for warning in quality["warnings"] if "may have cost" not in warning]
    told = {name: value for name, value in clip.items() if name != "provenance"}
    return {**told, "quality": {**quality, "warnings": warnings}}


def test_killed_while_it_cleans_nothing_was_asked_and_it_is_paid_once(
    research: Describing, undisturbed: dict[str, Any]
) -> None:
    worker = research.start()
    job_id = research.enqueue(text=PASTE)
    cleaner = wait_until(lambda: at_work(worker), 20, every=0.002, what="the cleaning process")
    os.kill(cleaner.pid, signal.SIGSTOP)
    assert len(research.standin.chats) == 1

    clip = kill_and_finish(research, worker, job_id)

    assert without_costs(clip) == without_costs(undisturbed)
    assert research.standin.billed_count == 2
    assert clip["provenance"]["reused_answers"] == 0


def test_killed_while_the_model_answers_it_ends_once_and_says_what_may_have_been_paid_twice(
    research: Describing, undisturbed: dict[str, Any]
) -> None:
    gate = Gate()
    research.standin.script(faults.held(gate))
    worker = research.start()
    job_id = research.enqueue(text=PASTE)
    sent = "select count(*) from llm_call where job_id = %s and state = 'sent'"
    wait_until(lambda: len(research.standin.chats) == 2 and research.database.value(sent, job_id), 30)

    worker.freeze()
    gate.opened.set()
    clip = kill_and_finish(research, worker, job_id)

    assert without_costs(clip) == without_costs(undisturbed)
    calls = research.database.rows("select * from llm_call where job_id = %s order by reserved_at", job_id)
    assert [call["state"] for call in calls] == ["unknown", "received"]
    assert calls[1]["is_possible_duplicate"]
    assert calls[1]["cost_source"] in ("cache", "provider")
    assert research.standin.billed_count <= 3


def test_killed_between_the_answer_and_the_end_it_is_paid_once(
    research: Describing, undisturbed: dict[str, Any]
) -> None:
    worker = research.start(OPENROUTER_CACHE_SECONDS="0")
    gate = Gate()
    research.standin.script(faults.held(gate))
    job_id = research.enqueue(text=PASTE)
    wait_until(lambda: len(research.standin.chats) == 2, 30)
    received = "select count(*) from llm_call where job_id = %s and state = 'received'"
    with research.database.connect(autocommit=False) as holding:
        holding.execute("select id from job_queue where id = %s for update", [job_id])  # it cannot be completed
        gate.opened.set()
        wait_until(lambda: research.database.value(received, job_id), 30, what="the answer in the ledger")
        worker.kill()

    clip = kill_and_finish(research, worker, job_id)

    assert without_costs(clip) == without_costs(undisturbed)
    assert research.standin.billed_count == len(research.standin.chats) == 2
    assert clip["provenance"]["reused_answers"] == 1
