"""An outage of the language model, over many jobs, with real workers whose half minutes are a second.

Nobody's attempts are spent, one job asks at every turn however many wait, and the first answer makes all others due.
"""

import time
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from sidelinja_jobs.cli.exits import ExitCode
from tests.command_line import Jobs
from tests.databases import Database
from tests.openrouter_standin import StandIn, faults
from tests.services.openrouter_service import OpenrouterService
from tests.services.research_describing import TEXT, Describing
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcesses

pytestmark = pytest.mark.timeout(120)

TURN_SECONDS = 1.0  # as impatient_worker.py has it
IMPATIENT = "tests.services.impatient_worker"
JOBS = 20
SLACK_SECONDS = 3.0  # for a poll, a run and a busy machine; the line is as long as JOBS turns


@pytest.fixture
def service(database: Database, worker_process: WorkerProcesses, standin: StandIn) -> OpenrouterService:
    made = OpenrouterService(database, worker_process, standin)
    made.program = (IMPATIENT, *made.program)
    return made


@pytest.fixture
def research(database: Database, worker_process: WorkerProcesses, standin: StandIn) -> Describing:
    made = Describing(database, worker_process, standin)
    made.program = (IMPATIENT, *made.program)
    return made


def begin_outage(standin: StandIn) -> None:
    standin.script(faults.overloaded(), repeats=True)


def in_line(database: Database) -> int:
    """How many jobs wait for their turn."""
    found: int = database.value(
        "select count(*) from job_line as line join job_queue as job on job.id = line.job_id"
        " where job.scheduled_for = line.turn_at and line.turn_at > now() and job.status = 'pending'"
    )
    return found


def turns(database: Database) -> int:
    found: int = database.value("select count(*) from job_attempt where error_class = 'in_line'")
    return found


def require_quick_and_free_recovery(service: OpenrouterService, jobs: list[UUID]) -> None:
    """From now on the model answers."""
    database = service.database
    service.standin.forget_script()
    began = time.monotonic()
    completed = "select count(*) from job_queue where status = 'completed'"
    wait_until(lambda: database.value(completed), TURN_SECONDS + SLACK_SECONDS, what="the first job to complete")
    service.wait_until_settled(*jobs, runs=10_000, within=JOBS * TURN_SECONDS * 0.6)

    took = time.monotonic() - began
    rows = database.rows("select status, attempts from job_queue")
    assert [(row["status"], row["attempts"]) for row in rows] == [("completed", 0)] * len(jobs), took
    assert database.value("select count(*) from job_attempt where charged") == 0
    assert database.value("select count(*) from job_line") == 0
    assert service.standin.billed_count == len(jobs)


def test_an_outage_over_many_jobs_and_two_workers_costs_nobody_anything(service: OpenrouterService) -> None:
    begin_outage(service.standin)
    jobs = [service.enqueue(f"merke{number}") for number in range(JOBS)]
    for _ in range(2):
        service.start()
    wait_until(lambda: in_line(service.database) >= JOBS - 1, 30, what="the jobs to stand in line")
    lined_up = len(service.standin.chats)
    since = turns(service.database)
    wait_until(lambda: turns(service.database) >= since + 4, 15, what="four turns")

    times = [row["at"] for row in service.database.rows("select turn_at as at from job_line order by turn_at")]
    gaps = [(after - before).total_seconds() for before, after in pairwise(times)]
    assert len(service.standin.chats) - lined_up <= 4 + 4  # one for each turn, whoever takes it, not one for each job
    assert min(gaps[-4:]) > 0.9 * TURN_SECONDS, gaps
    assert service.database.value("select sum(postponements) from job_queue") <= 4  # before both workers knew
    require_quick_and_free_recovery(service, jobs)


def test_a_worker_that_starts_anew_finds_the_line_and_who_never_saw_the_outage_ends_it(
    service: OpenrouterService,
) -> None:
    begin_outage(service.standin)
    jobs = [service.enqueue(f"merke{number}") for number in range(JOBS)]
    for expected in (JOBS, JOBS + 3):
        worker = service.start()
        wait_until(lambda expected=expected: turns(service.database) >= expected, 40, what="turns")
        worker.terminate()
        assert worker.wait() == 0

    assert service.database.value("select sum(postponements) from job_queue") == 2  # by the first, until it knew
    service.start()
    require_quick_and_free_recovery(service, jobs)


def test_one_question_that_the_model_cannot_answer_is_no_outage(service: OpenrouterService) -> None:
    """It is asked again ever more seldom, and counted, while others are answered."""
    service.standin.script(faults.overloaded(), match="umulig", repeats=True)
    service.start()
    bad = service.enqueue("umulig", priority=9)
    for number in range(6):
        good = service.enqueue(f"merke{number}")
        service.wait_until_settled(good, runs=10_000, within=20)
        service.run_now(bad)

    seen = service.see(bad)
    assert seen.job["attempts"] == 0
    assert {attempt["error_class"] for attempt in seen.attempts} == {"postponed"}
    assert seen.job["postponements"] == len(seen.attempts) > 2
    assert turns(service.database) == 0


def test_a_job_alone_is_tried_at_every_turn_and_makes_way_for_another(service: OpenrouterService) -> None:
    """Though it is more important: it may be its question that the model does not answer."""
    service.standin.script(faults.overloaded(), match="umulig", repeats=True)
    service.start()
    alone = service.enqueue("umulig", priority=9)
    wait_until(lambda: turns(service.database) >= 4, 20, what="four turns")

    waited = service.see(alone)
    assert (waited.job["attempts"], waited.job["postponements"]) == (0, 2)
    other = service.enqueue("merke")
    assert service.wait_until_settled(other, runs=10_000, within=20)[other].job["status"] == "completed"


def test_clips_that_need_no_model_go_on_and_those_that_do_wait_or_do_without(research: Describing) -> None:
    database = research.database
    begin_outage(research.standin)
    research.start()
    text: dict[str, Any] = {"text": "\n\n".join(TEXT["nb"])}
    full = [research.enqueue(**text, mode="full") for _ in range(10)]
    wait_until(lambda: turns(database) >= 8, 30, what="clips to wait for their turns")

    plain = research.wait(research.enqueue(**text, mode="clean_only"), within=10)
    auto = research.wait(research.enqueue(**text, mode="auto"), within=20)
    assert plain["result"]["quality"]["warnings"] == []
    assert "no_llm" in auto["result"]["quality"]["warnings"]
    assert not research.is_paused
    assert all(database.job(job)["status"] in ("pending", "running") for job in full)
    research.standin.forget_script()
    for job in full:
        described = research.wait(job, within=20)
        assert (described["result"]["mode_used"], described["attempts"]) == ("llm", 0)


def test_command_waits_for_a_clip_that_may_do_without_a_model_and_for_no_other(
    research: Describing, jobs: Jobs, tmp_path: Path
) -> None:
    begin_outage(research.standin)
    research.start()
    paste = tmp_path / "paste.txt"
    paste.write_text("Ferga går.\n")

    auto, full = jobs("clip", str(paste)), jobs("clip", "--mode", "full", str(paste))

    assert (auto.code, auto.out) == (ExitCode.OK, "Ferga går.\n")
    assert "no_llm" in auto.err
    assert full.code == ExitCode.NOT_POSSIBLE
    assert "--mode auto cleans without a model" in full.err
