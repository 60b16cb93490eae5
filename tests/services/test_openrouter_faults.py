"""The fault matrix, through the real worker process, real PostgreSQL and real connections.

All jobs of the table are worked by one worker, each against its own faults; then those that wait are run once more.
The tests look at what became of each.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from types import EllipsisType
from uuid import UUID

import pytest

from demo.embedded_postgres import free_port
from tests.databases import Server, each_database
from tests.openrouter_standin import Fault, StandIn, faults
from tests.services.openrouter_fault_matrix import ROWS
from tests.services.openrouter_fault_rows import Row
from tests.services.openrouter_service import JOB_TYPE, OpenrouterService, Seen
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcesses

pytestmark = pytest.mark.timeout(400)  # the first test works the whole table


class Matrix:
    """What was seen of every row, after its first run and after its second."""

    def __init__(self) -> None:
        self.first: dict[str, Seen] = {}
        self.second: dict[str, Seen] = {}
        self.contract_problems: list[str] = []

    def run(self, service: OpenrouterService) -> None:
        jobs: dict[UUID, str] = {}
        for number, row in enumerate(ROWS):
            word = f"merke{number:03d}x"
            script(service.standin, word, row.faults())
            jobs[service.enqueue(word, priority=len(ROWS) - number)] = row.name
            if row.status == "pending":
                service.enqueue("vanlig", priority=len(ROWS) - number)  # is answered, or it would all be one outage
        worker = service.start(OPENROUTER_DAY_BUDGET_USD="1000", OPENROUTER_JOB_BUDGET_USD="100")  # megabytes cost
        first = service.wait_until_settled(*jobs)
        self.first = {name: first[job_id] for job_id, name in jobs.items()}
        service.run_now(*jobs)
        second = service.wait_until_settled(*jobs, runs=2)
        self.second = {name: second[job_id] for job_id, name in jobs.items()}
        self.contract_problems = service.standin.contract_problems
        assert worker.is_alive()


def script(standin: StandIn, word: str, meets: tuple[Fault | EllipsisType, ...]) -> None:
    for place, fault in enumerate(meets):
        if isinstance(fault, Fault):
            repeats = place + 1 < len(meets) and meets[place + 1] is ...
            standin.script(fault, match=word, repeats=repeats)


@pytest.fixture(scope="module")
def matrix(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Matrix]:
    processes = WorkerProcesses(tmp_path_factory.mktemp("matrix"))
    found = Matrix()
    for database in each_database(server):
        try:
            with StandIn(balance="1000") as standin:
                found.run(OpenrouterService(database, processes, standin))
        finally:
            processes.end_all()
        yield found


@pytest.fixture
def service(request: pytest.FixtureRequest) -> OpenrouterService:
    return OpenrouterService(*(request.getfixturevalue(name) for name in ("database", "worker_process", "standin")))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_fault(matrix: Matrix, row: Row) -> None:
    first, second = matrix.first[row.name], matrix.second[row.name]

    told = f"{first.job['status']} {first.job['error_class']}: {first.job['error_msg']} {first.attempts}"
    assert first.job["status"] == row.status, told
    assert (first.job["error_class"] or "") == row.error_class, told
    assert first.job["attempts"] == int(row.charged), told
    assert [attempt["charged"] for attempt in first.attempts] == ([] if row.status == "completed" else [row.charged])
    assert len(first.chats) == row.calls, told
    assert len(first.billed) == row.billed, told
    if row.wait is not None:
        assert row.wait[0] <= first.wait_seconds <= row.wait[1], first.wait_seconds
    if row.look is not None:
        row.look(first)
    if row.status != "error":
        assert second.job["status"] == row.second, second.job["error_msg"]
        assert len(second.billed) == row.billed_in_all
        # At a turn in line, uncounted, where the rows before left three questions in a row without an answer.
        put_off = [attempt for attempt in second.attempts if attempt["outcome"] == "postponed"]
        assert len(put_off) == int(row.status == "pending")


def test_no_request_of_the_matrix_broke_the_contract(matrix: Matrix) -> None:
    assert matrix.contract_problems == []


def test_what_is_billed_is_in_the_ledger(matrix: Matrix) -> None:
    """Whatever the account was charged, the ledger has, or holds as unknown with as much reserved."""
    for name, seen in matrix.second.items():
        charged = sum(call["charged_usd"] for call in seen.calls)
        assert charged >= sum(one.cost for one in seen.billed), name


def test_result_tells_what_all_calls_of_the_job_cost(matrix: Matrix) -> None:
    for name, seen in matrix.second.items():
        if seen.job["status"] == "completed" and not {"unknown"} & {call["state"] for call in seen.calls}:
            told = Decimal(seen.job["result"]["provenance"]["cost_usd"])
            assert told == sum(call["cost_usd"] for call in seen.calls), name


def test_quote_of_a_completed_job_is_the_transcript_s_own(matrix: Matrix) -> None:
    for name, seen in matrix.second.items():
        if seen.job["status"] == "completed":
            segments = seen.job["payload"]["segments"]
            for quote in seen.job["result"]["quotes"]:
                assert quote["text"] in segments[quote["seg_from"]]["text"], name
                assert quote["start_s"] == segments[quote["seg_from"]]["start"], name


def test_second_call_after_a_lost_one_is_flagged(matrix: Matrix) -> None:
    for name in ("silence", "silence halfway", "stream that ends early", "connection that breaks"):
        seen = matrix.second[name]
        assert [call["is_possible_duplicate"] for call in seen.calls] == [False, True], name
        assert any("twice" in str(warning) for warning in seen.job["result"]["quality"]["warnings"]), name


@pytest.mark.parametrize(
    ("fault", "cause", "seconds"),
    [
        (faults.refused(401, "User not found.", "authentication"), "auth", 900),
        (faults.no_credits(), "credits", 3600),
        (faults.affords(7500, 40), "credits", 3600),
        (faults.only_an_error(401, "No auth credentials found"), "auth", 900),
    ],
    ids=["401", "402", "402 that affords nothing", "200 with a 401 inside"],
)
def test_key_or_credit_pauses_the_type_and_costs_no_attempt(
    service: OpenrouterService, fault: Fault, cause: str, seconds: float
) -> None:
    service.standin.script(fault, match="merke-a")
    service.start()
    first = service.enqueue("merke-a", priority=1)
    paused = service.wait_until_paused()
    second = service.enqueue("merke-b")

    assert (paused["pause_origin"], paused["pause_class"]) == ("worker", cause)
    assert 0.9 * seconds < (paused["paused_until"] - paused["paused_at"]).total_seconds() < 1.3 * seconds + 6
    seen = service.see(first)
    assert (seen.job["status"], seen.job["attempts"], len(seen.chats)) == ("pending", 0, 1)
    service.resume()
    service.run_now(first, second)
    service.wait_until_settled(first, second, runs=2)
    assert {service.database.job(job)["status"] for job in (first, second)} == {"completed"}
    assert service.standin.billed_count == 2


def test_nothing_is_asked_before_the_time_that_the_server_named(service: OpenrouterService) -> None:
    service.standin.script(faults.rate_limited(retry_after="2"))
    service.start()
    job = service.enqueue("merke")
    wait_until(lambda: service.database.job(job)["status"] == "completed", 15, what="the job to complete")

    first, second = [one.at for one in service.standin.requests if one.path.endswith("/chat/completions")]
    assert second - first >= 2
    assert service.database.job(job)["attempts"] == 0


def test_an_outage_costs_no_attempt_however_often_it_is_met(service: OpenrouterService) -> None:
    """More often than a job may fail; from the third time on it waits its turn in line, which is not counted."""
    for _ in range(4):
        service.standin.script(faults.overloaded())
    service.start()
    job = service.enqueue("merke")
    for runs in range(1, 5):
        seen = service.wait_until_settled(job, runs=runs)[job]
        assert (seen.job["status"], seen.job["attempts"], seen.job["postponements"]) == ("pending", 0, min(runs, 2))
        assert 25 < seen.wait_seconds < 40
        service.run_now(job)
    seen = service.wait_until_settled(job, runs=5)[job]

    assert (seen.job["status"], seen.job["attempts"], len(seen.billed)) == ("completed", 0, 1)


def test_a_server_that_is_not_there_costs_no_attempt(service: OpenrouterService) -> None:
    service.start(OPENROUTER_BASE_URL=f"http://127.0.0.1:{free_port()}/v1")
    job = service.enqueue("merke")
    seen = service.wait_until_settled(job)[job]

    assert (seen.job["status"], seen.job["attempts"], seen.job["postponements"]) == ("pending", 0, 1)
    assert "cannot be reached" in seen.attempts[0]["error_msg"]
    assert [call["state"] for call in seen.calls] == ["failed"]


def test_jobs_that_were_sent_away_together_come_back_apart(service: OpenrouterService) -> None:
    service.standin.script(faults.rate_limited(retry_after="100"), repeats=True)
    service.start()
    jobs = [service.enqueue(f"merke{number}") for number in range(12)]
    service.wait_until_settled(*jobs)

    times = sorted(service.database.job(job)["scheduled_for"] for job in jobs)
    assert min(times) > datetime.now(UTC)
    assert (times[-1] - times[0]).total_seconds() > 5
    assert len({time.replace(microsecond=0) for time in times}) > 3


def test_fallback_answers_and_is_named(service: OpenrouterService) -> None:
    service.standin.script(faults.rate_limited(retry_after="100"))
    service.start(OPENROUTER_FALLBACK_MODELS="openai/gpt-small")
    job = service.enqueue("merke")
    service.wait_until_settled(job)

    result = service.database.job(job)["result"]
    assert result["provenance"]["model_used"] == "openai/gpt-small"
    assert [one.model for one in service.standin.billing] == ["openai/gpt-small"]


def test_wish_that_no_provider_meets_ends_the_job_with_its_name(service: OpenrouterService) -> None:
    service.start(OPENROUTER_MODEL="anthropic/dear", OPENROUTER_MAX_PRICE_PROMPT="3")
    job = service.enqueue("merke")
    service.wait_until_settled(job)

    told = service.database.job(job)
    assert (told["status"], told["error_class"]) == ("error", "policy_filtered"), told["error_msg"]
    assert "max_price" in told["error_msg"]
    assert service.standin.billing == []
    assert service.database.value("select paused_at from job_type where name = %s", JOB_TYPE) is None


def test_answer_that_did_not_fit_is_asked_anew_when_the_job_is_retried_by_hand(service: OpenrouterService) -> None:
    """Not taken from the ledger, and not from the server's cache, which holds the answers that did not fit."""
    service.standin.script(*[faults.content("Bare prat, og ikke noe skjema.")] * 2)
    service.start()
    job = service.enqueue("merke")
    service.wait_until_settled(job)
    assert service.database.job(job)["error_class"] == "invalid_output"
    service.database.rows("select retry_job(%s)", job)
    service.wait_until_settled(job, runs=3)

    assert service.database.job(job)["status"] == "completed", service.database.job(job)["error_msg"]
    assert service.standin.billed_count == 3
