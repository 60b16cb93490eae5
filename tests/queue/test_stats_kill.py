"""Workers that are killed again and again while Caddy's log is written, rolled and compressed: each counts once."""

import gzip
import random
import threading
import time
from pathlib import Path

import pytest

from tests.databases import ROOT, Database
from tests.queue.stats_support import Stats
from tests.unit.stats_support import line
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcess, WorkerProcesses

WORKER = ROOT / "tests" / "queue" / "stats_worker.py"


class Writer(threading.Thread):
    """Writes a log as Caddy does: appends, renames, begins anew, compresses in the background, removes the source."""

    def __init__(self, folder: Path, lines: int, per_file: int) -> None:
        super().__init__()
        self._folder, self._lines, self._per_file = folder, lines, per_file
        self._packing: list[threading.Thread] = []

    def run(self) -> None:
        live = self._folder / "access.log"
        for number in range(self._lines):
            if number and number % self._per_file == 0:
                rolled = self._folder / f"access-2026-11-29T12-00-{number:05d}.log"
                live.rename(rolled)
                self._packing.append(threading.Thread(target=self._pack, args=[rolled]))
                self._packing[-1].start()
            with live.open("ab", buffering=0) as file:
                file.write(line(agent=f"App{number}/1"))
            if number % 20 == 0:
                time.sleep(0.01)
        for thread in self._packing:
            thread.join()

    def _pack(self, rolled: Path) -> None:
        packed = gzip.compress(rolled.read_bytes())
        target = rolled.with_name(rolled.name + ".gz")
        with target.open("wb", buffering=0) as file:  # half of it is visible for a while
            file.write(packed[: len(packed) // 2])
            time.sleep(0.05)
            file.write(packed[len(packed) // 2 :])
        rolled.unlink()


def kill_and_count(stats: Stats, workers: WorkerProcesses, *, lines: int, kills: int) -> None:
    environ = {"STATS_LOG_ROOT": str(stats.logs), "MEDIA_ROOT": str(stats.media)}
    stats.database.rows("update job_type set lease_seconds = 2, backoff_base_seconds = 1 where name = 'stats_parse'")
    draw = random.Random(3)  # noqa: S311 - the same pauses each time

    def start() -> WorkerProcess:
        return workers.start(stats.database, WORKER, job_type="stats_parse", environ=environ)

    def enqueue() -> None:
        stats.database.enqueue("stats_parse", {})

    writer = Writer(stats.logs, lines, lines // 8)
    writer.start()
    pair = [start(), start()]
    for number in range(kills):
        enqueue()
        enqueue()
        time.sleep(draw.random() * 0.5)
        pair[number % 2].kill()
        pair[number % 2] = start()
    writer.join()
    enqueue()

    def is_done() -> bool:
        unfinished = "select count(*) from job_queue where status not in ('completed', 'error')"
        return int(stats.database.value(unfinished)) == 0

    wait_until(is_done, 60, what="all runs to end")
    enqueue()  # once more, when nobody is killed and everything was written
    wait_until(is_done, 60, what="the last run to end")
    assert stats.downloads() == lines
    assert stats.database.value("select sum(requests) from stats.listener_window") == lines
    assert stats.database.value("select sum(lines) from stats.file") == lines


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_three_kills_during_rotation_count_each_line_once(
    database: Database, tmp_path: Path, worker_process: WorkerProcesses
) -> None:
    kill_and_count(Stats(database, tmp_path), worker_process, lines=1600, kills=3)


@pytest.mark.long
def test_forty_kills_during_rotation_count_each_line_once(
    database: Database, tmp_path: Path, worker_process: WorkerProcesses
) -> None:
    kill_and_count(Stats(database, tmp_path), worker_process, lines=30_000, kills=40)
