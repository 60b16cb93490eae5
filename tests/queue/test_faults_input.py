"""Bad input and bad errors through a real worker: each a clear row, the worker alive and taking the next job."""

import re
from typing import Any
from uuid import UUID

import pytest

from tests.databases import Database
from tests.fault_tools import attempts_of, wait_for_status
from tests.sessions import make_due
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcesses

STRICT = """
import msgspec

class Payload(msgspec.Struct, forbid_unknown_fields=True):
    path: str
    size: int = 0
    names: list[str] = []

def handle(job, ctx):
    return {"path": job.payload.path, "size": job.payload.size, "priority": job.priority}
"""

# JSON text of a payload -> words that the error must hold
BAD_PAYLOADS = {
    "[1, 2]": ["list"],
    '"text"': ["str"],
    "null": ["NoneType"],
    "17": ["int"],
    "{}": ["missing required field `path`"],
    '{"path": "a", "colour": 1}': ["unknown field `colour`"],
    '{"path": 5}': ["Expected `str`, got `int`", "$.path"],
    '{"path": "a", "size": "big"}': ["Expected `int`, got `str`", "$.size"],
    '{"path": "a", "size": 1e400}': ["size"],
    '{"path": "a", "size": 1.5}': ["$.size"],
    '{"path": "a", "names": ["b", 1]}': ["$.names[1]"],
    '{"path": "data:audio/mpeg;base64,SUQzBAAAAAAAI1RTU0UAAAAP"}': ["payload.path is a data: URL"],
    '{"path": "' + "QUJD" * 500 + '"}': ["payload.path"],
    '{"path": "a", "names": ["' + "QUJD" * 500 + '"]}': ["payload.names[0]", "base64"],
    '{"path": "' + "å/" * 600 + '"}': ["payload.path has 1200 characters, a path may have 1024"],
    '{"path": "a", "size": 1' + "0" * 5000 + "}": [],
    '{"path": ' + "[" * 5000 + "]" * 5000 + "}": [],
}


def insert(database: Database, payload: str, **columns: Any) -> UUID:
    """As a foreign program does, past every check of enqueue."""
    job_id: UUID = database.value(
        "insert into job_queue (job_type, payload, priority) values ('test_job', %s::jsonb, %s) returning id",
        payload,
        columns.get("priority", 0),
    )
    return job_id


def test_each_bad_payload_ends_in_an_error_that_names_the_place(
    database: Database, worker_process: WorkerProcesses
) -> None:
    database.rows("update job_type set payload_limit_bytes = 20000 where name = 'test_job'")
    ids = {payload: insert(database, payload) for payload in BAD_PAYLOADS}
    too_large = insert(database, '{"path": "' + "long words " * 3000 + '"}')
    good = insert(database, '{"path": "a"}', priority=-32768)
    worker = worker_process.start(database, STRICT)

    assert wait_for_status(database, good, "completed", timeout=20)["result"]["path"] == "a"
    for payload, job_id in ids.items():
        job = database.row("select status, error_class, error_msg, attempts from job_queue where id = %s", job_id)
        assert (job["status"], job["error_class"], job["attempts"]) == ("error", "bad_payload", 1), payload[:60]
        assert len(job["error_msg"]) < 1000
        for words in BAD_PAYLOADS[payload]:
            assert words in job["error_msg"], payload[:60]
    large = database.job(too_large)
    assert (large["status"], large["error_class"]) == ("error", "payload_too_large")
    assert "over the limit of 20000 bytes" in large["error_msg"]
    assert worker.is_alive()


def test_every_priority_is_taken_highest_first(database: Database, worker_process: WorkerProcesses) -> None:
    priorities = [0, 32767, -32768, -1, 7]
    ids = [insert(database, '{"path": "a"}', priority=priority) for priority in priorities]

    worker_process.start(database, STRICT)
    for job_id in ids:
        wait_for_status(database, job_id, "completed")

    order = database.rows("select priority from job_queue order by started_at")
    assert [row["priority"] for row in order] == sorted(priorities, reverse=True)


RAISING = r"""
import sys
from sidelinja_jobs import PermanentError

class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no text for you")

class Mean(Exception):
    def __str__(self):
        sys.exit(5)

class NoText(Exception):
    def __str__(self):
        return 5

def deeper(n):
    return deeper(n + 1)

def chain():
    try:
        1 / 0
    except ZeroDivisionError as error:
        raise ValueError("second \x00 \ud800") from error

ERRORS = {
    "nul": lambda: ValueError("a\x00b"),
    "surrogate": lambda: ValueError("a\ud800b\udfffc"),
    "huge": lambda: ValueError("x" * 5_000_000),
    "huge emoji": lambda: ValueError("\U0001f600" * 2_000_000),
    "mute": Mute,
    "mean": Mean,
    "no text": NoText,
    "bytes": lambda: ValueError(b"\xff\x00\xfe"),
    "empty": ValueError,
    "odd name": lambda: type("Odd\x00\ud800Name" * 100, (Exception,), {})("odd"),
    "group": lambda: ExceptionGroup("many", [ValueError("one"), KeyError("two")]),
    "permanent": lambda: PermanentError("p\x00\ud800" * 5000, error_class="class\x00\ud800"),
    "unicode": lambda: "\ud800".encode(),
    "recursion": lambda: deeper(0),
    "memory": lambda: MemoryError(),
    "stop iteration": lambda: StopIteration("x"),
    "chain": chain,
    "os": lambda: FileNotFoundError(2, "missing\ud800", "/media/\udcffx.mp3"),
}

def handle(job, ctx):
    ctx.log.info("about to raise \ud800", what=job.payload["what"], odd="\ud800\x00")
    error = ERRORS[job.payload["what"]]()
    if isinstance(error, BaseException):
        raise error
"""
RECORDED = re.findall(r'^    "([a-z ]+)": ', RAISING, re.MULTILINE)


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_every_error_of_a_handler_is_recorded(
    database: Database, worker_process: WorkerProcesses, log_format: str
) -> None:
    environ = {"LOG_FORMAT": log_format, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    worker = worker_process.start(database, RAISING, environ=environ)
    ids = {what: database.enqueue(payload={"what": what}) for what in RECORDED}

    wait_until(
        lambda: (
            not database.rows("select 1 from job_queue where status in ('pending', 'running')") or not worker.is_alive()
        ),
        20,
    )
    assert worker.is_alive(), worker.log_text()[-2000:]
    jobs = {what: database.job(job_id) for what, job_id in ids.items()}

    for what, job in jobs.items():
        assert job["status"] == ("error" if what == "permanent" else "retry"), what
        assert job["attempts"] == 1, what
        assert 0 < len(job["error_msg"]) <= 8000, what
        assert 0 < len(job["error_class"]) <= 200, what
        (attempt,) = attempts_of(database, ids[what])
        assert len(attempt["traceback"] or "") <= 32000, what
    assert jobs["nul"]["error_msg"] == "a\ufffdb"
    assert jobs["surrogate"]["error_msg"] == "a\ufffdb\ufffdc"
    assert jobs["huge"]["error_msg"].startswith("xxxx")
    assert jobs["huge emoji"]["error_msg"].startswith("\U0001f600" * 100)
    assert "Mute" in jobs["mute"]["error_msg"]
    assert jobs["empty"]["error_msg"] == "ValueError"
    assert jobs["recursion"]["error_class"] == "RecursionError"
    chain = attempts_of(database, ids["chain"])[0]["traceback"]
    assert "ZeroDivisionError" in chain
    assert "ValueError" in chain
    make_due(database, ids["nul"])
    wait_for_status(database, ids["nul"], "retry", attempts=2)


def test_a_log_that_cannot_be_written_stops_nobody(database: Database, worker_process: WorkerProcesses) -> None:
    """The disk of the log is full, or whoever read it is gone."""
    worker = worker_process.start(
        database,
        """
import os, sys
def handle(job, ctx):
    os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
    ctx.log.info("nobody reads this")
    return "done"
""",
    )
    ids = [database.enqueue() for _ in range(2)]

    jobs = [wait_for_status(database, job_id, "completed", timeout=5) for job_id in ids]

    assert [job["result"] for job in jobs] == ["done", "done"]
    assert worker.is_alive()
