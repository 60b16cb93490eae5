"""A canary for a key: whatever the server says and however the key came in, it is nowhere but in the header."""

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.embedded_postgres import free_port
from tests.databases import Database
from tests.openrouter_standin import Answer, ChatCall, Fault, StandIn, faults
from tests.openrouter_standin.failures import failure
from tests.openrouter_standin.wire import json_reply
from tests.services.openrouter_analyst import analyst
from tests.services.openrouter_service import JOB_TYPE, OpenrouterService
from tests.worker_processes import WorkerProcess, WorkerProcesses

CANARY = "sk-or-v1-" + "kanarifugl0" * 6
PART = "kanarifugl0kanari"  # a piece of it is one, too

# Everything that a server can say with the key in it.
ECHOES = (
    faults.refused(500, f"Internal error for Authorization: Bearer {CANARY}"),
    faults.upstream(502, json.dumps({"headers": {"authorization": f"Bearer {CANARY}"}})),
    faults.refused(400, f"Bad request {CANARY}", "invalid_request", seen=[CANARY, {CANARY: CANARY}]),
    faults.all_null(429, f"key {CANARY} is too fast"),
    faults.died_halfway(502, f"lost {CANARY}"),
    faults.refuses(f"I will not tell {CANARY}"),
    faults.content(f"Nøkkelen er {CANARY}"),
    faults.redirected(f"http://127.0.0.1:9/?key={CANARY}"),
    Fault("page", 503, f"<html><body>{CANARY}</body></html>".encode()),
    Fault("header", 429, failure(429, "Slow down"), {"Retry-After": CANARY, "X-Request-Id": CANARY}),
    faults.closes_unanswered(),
    faults.breaks(),
    faults.silent(),
    faults.changed("names", model=f"x/{CANARY}", provider=CANARY, native_finish_reason=CANARY),
)


@pytest.fixture
def canary_standin() -> Iterator[StandIn]:
    with StandIn(key=CANARY) as running:
        yield running


@pytest.fixture
def service(
    database: Database, worker_process: WorkerProcesses, canary_standin: StandIn
) -> Iterator[OpenrouterService]:
    return OpenrouterService(database, worker_process, canary_standin)


def dump(database: Database) -> str:
    """Every row of every table, as text, and what the sessions show of their statements."""
    tables = database.rows("select format('%I.%I', schemaname, tablename) as name from pg_tables "
                           "where schemaname not in ('pg_catalog', 'information_schema')")  # fmt: skip
    texts = [
        str(row["line"]) for table in tables for row in database.rows(f"select t::text as line from {table['name']} t")
    ]
    sessions = database.rows("select query, application_name from pg_stat_activity")
    assert any("llm_call" in table["name"] for table in tables)
    return "\n".join([*texts, *(str(session) for session in sessions)])


def shown_by(worker: WorkerProcess, port: int) -> str:
    """Logs, metrics, health file, and the process itself as others see it."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        metrics = answer.read().decode()
    command = Path(f"/proc/{worker.pid}/cmdline").read_text()
    return "\n".join([worker.log_text(), metrics, worker.health_file.read_text(), command])


def spoil_some(call: ChatCall) -> str | Answer:
    """A whole answer that has the key in its prose."""
    return analyst(call).replace("samferdsel", f"samferdsel {CANARY}")


@pytest.mark.parametrize("form", [" {}\r\n", "file"], ids=["variable with blanks and a line break", "file"])
def test_key_is_nowhere_but_in_the_header(service: OpenrouterService, tmp_path: Path, form: str) -> None:
    standin, port = service.standin, free_port()
    standin.answers(spoil_some)
    echoes = ECHOES[:2] if form == "file" else ECHOES
    words = [f"merke{number:02d}x" for number in range(len(echoes) + 1)]
    for word, fault in zip(words, echoes, strict=False):
        standin.script(fault, match=word, repeats=True)
    (tmp_path / "key").write_text(f"{CANARY}\n")
    in_file = {"OPENROUTER_API_KEY_FILE": str(tmp_path / "key"), "OPENROUTER_API_KEY": ""}
    key = in_file if form == "file" else {"OPENROUTER_API_KEY": form.format(CANARY)}
    jobs = [service.enqueue(word) for word in words]
    worker = service.start(METRICS_PORT=str(port), METRICS_HOST="127.0.0.1", **key)
    service.wait_until_settled(*jobs)
    service.run_now(*jobs)
    service.wait_until_settled(*jobs, runs=2)
    standin.script(faults.refused(401, f"Key {CANARY} is disabled", "authentication"))
    service.enqueue("merke til slutt")
    service.wait_until_paused()

    assert service.database.job(jobs[-1])["status"] == "completed"
    assert {call.headers["authorization"] for call in standin.chats} == {f"Bearer {CANARY}"}
    assert PART not in dump(service.database)
    assert PART not in shown_by(worker, port)
    worker.terminate()
    assert worker.wait() == 0
    assert PART not in worker.log_text()


@pytest.mark.parametrize("broken", [CANARY[:30] + "\n" + CANARY[30:], CANARY + " æ", "Bearer " + CANARY])
def test_key_that_no_header_can_hold_is_refused_at_the_start_and_not_shown(
    service: OpenrouterService, broken: str
) -> None:
    worker = service.start(ready=False, OPENROUTER_API_KEY=broken)

    assert worker.wait(30) == 78
    assert "OPENROUTER_API_KEY" in worker.log_text()
    assert PART not in worker.log_text()
    assert service.standin.requests == []


def test_key_that_the_server_refuses_at_the_start_is_not_shown(service: OpenrouterService) -> None:
    service.standin.script_path(
        "GET", "/key", *[json_reply(401, failure(401, f"No user has {CANARY}", "authentication"))] * 20
    )
    worker = service.start()
    paused = service.wait_until_paused()

    assert (paused["name"], paused["pause_class"]) == (JOB_TYPE, "auth")
    assert "OPENROUTER_API_KEY" in paused["pause_reason"]
    assert PART not in dump(service.database)
    assert PART not in worker.log_text()
