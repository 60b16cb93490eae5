"""What worker and cleaning process hold in memory together, over the largest pastes one after another."""

import os
import subprocess
import sys
import threading
from functools import partial
from typing import Any
from uuid import UUID

import psutil
import pytest

from tests.databases import ROOT, Database
from tests.openrouter_standin import StandIn
from tests.services.research_describing import Describing
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcess, WorkerProcesses

pytestmark = pytest.mark.timeout(300)
SENTENCE = "Det er fylkesrådet som nå legger fram en ny avtale med rederiet, og den gjelder fra {} av. "
MOST_MB = 195  # of both together; 200 are promised, and 185 measured


def text_of(size: int) -> str:
    return "\n\n".join(SENTENCE.format(number) * 4 for number in range(size // 300))[:size]


def page_of(size: int) -> str:
    return "".join(f"<p>{SENTENCE.format(number) * 4}</p>" for number in range(size // 300))[:size]


LARGE: dict[str, dict[str, Any]] = {
    "page with an emoji": {"html": "🚢" + page_of(4_850_000)},
    "less-than signs": {"html": "<" * 5_000_000},
    "page and its text": {"html": page_of(4_850_000), "text": text_of(950_000)},
    "page of short lines": {"html": "".join(f"<p>Linje {number} i ei liste</p>" for number in range(50_000))},
}


class Peak(threading.Thread):
    """The largest memory of a worker and its children together, looked at again and again."""

    def __init__(self, worker: WorkerProcess) -> None:
        super().__init__(daemon=True)
        self._worker, self._ended = worker, threading.Event()
        self.bytes = 0
        self.parts: list[int] = []

    def run(self) -> None:
        while not self._ended.wait(0.01):
            held = [held_by(pid) for pid in (self._worker.pid, *(child.pid for child in self._worker.children()))]
            if sum(held) > self.bytes:
                self.bytes, self.parts = sum(held), held

    def end(self) -> None:
        self._ended.set()
        self.join()


def held_by(pid: int) -> int:
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


@pytest.fixture
def research(database: Database, worker_process: WorkerProcesses, standin: StandIn) -> Describing:
    return Describing(database, worker_process, standin)


def test_worker_and_its_cleaner_stay_small_over_the_largest_pastes(research: Describing) -> None:
    """With a key, and one on another: what one leaves behind must not add to the next."""
    worker = research.start()
    peaks: list[tuple[int, str, list[int]]] = []
    for name in [*LARGE, "page with an emoji"]:
        peak = Peak(worker)
        peak.start()
        job = research.enqueue(**LARGE[name], mode="clean_only")
        ending = wait_until(partial(ending_of, research.database, job), 60)
        assert ending in (("completed", None), ("error", "too_long")), name
        peak.end()
        peaks.append((peak.bytes >> 20, name, [part >> 20 for part in peak.parts]))

    print(*peaks, sep="\n")
    assert max(peaks)[0] <= MOST_MB, peaks


def ending_of(database: Database, job: UUID) -> tuple[str, str | None] | None:
    """How a job ended; the job itself is too large to be read again and again."""
    row = database.row("select status, error_class from job_queue where id = %s", job)
    return None if row["status"] in ("pending", "running") else (row["status"], row["error_class"])


def test_process_that_cleans_loads_neither_the_database_driver_nor_the_client() -> None:
    """What it does not load is room for the paste."""
    code = "import sys, sidelinja_jobs.child_server, services.research.cleaning_answer; print(*sys.modules)"
    path = os.pathsep.join((str(ROOT), str(ROOT / "shared")))
    run = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": path}, capture_output=True, text=True, check=True, timeout=30
    )

    assert {"psycopg", "httpx", "prometheus_client", "structlog"} & set(run.stdout.split()) == set()
    assert "services.research.cleaner" in run.stdout.split()
