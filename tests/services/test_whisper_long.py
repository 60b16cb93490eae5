"""What takes long: an episode of three hours, ten deaths in it, and twenty files in one process (`make test-long`).

LONG_HOURS=0.2 tries the episode's tests with a shorter one.
"""

import os
import random
import time
from pathlib import Path
from typing import Any
from uuid import UUID

import av
import numpy as np
import psutil
import pytest

from services.whisper.messages import SAMPLE_RATE
from tests.services.whisper_sound import read_sound
from tests.services.whisper_worker import Whisper
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcess

pytestmark = [pytest.mark.long, pytest.mark.model, pytest.mark.timeout(0)]

HOURS = float(os.environ.get("LONG_HOURS", "3"))
MOST_BYTES = 1500 * 1_000_000  # of worker and engine together
KILLS = 10
MOST_GROWTH_BYTES = 50 * 1_000_000
SOON = 4 * 3600.0


def write_episode(file: Path, samples: Path, hours: float) -> None:
    """The read chapter over and over, a little quieter or louder each time and with another pause after it."""
    chapter = read_sound(samples / "audio" / "ljspeech-2min.mp3")
    chance = random.Random(1)  # noqa: S311 - the same episode every time
    wanted, written = int(hours * 3600 * SAMPLE_RATE), 0
    with av.open(str(file), "w", format="mp3") as container:
        stream = container.add_stream("mp3", rate=SAMPLE_RATE, bit_rate=64_000, layout="mono")
        while written < wanted:
            pause = np.zeros(int(chance.uniform(0.5, 4) * SAMPLE_RATE), dtype=np.float32)
            part = np.concatenate([chapter * chance.uniform(0.5, 1.0), pause])[: wanted - written]
            frame = av.AudioFrame.from_ndarray(part[np.newaxis].astype(np.float32), format="fltp", layout="mono")
            frame.sample_rate = SAMPLE_RATE
            frame.pts = written
            container.mux(stream.encode(frame))
            written += len(part)
        container.mux(stream.encode(None))


def memory_of(worker: WorkerProcess) -> int:
    """Resident bytes of worker and engine."""
    total = 0
    for process in [psutil.Process(worker.pid), *worker.children()]:
        try:
            total += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total


def wait_measuring(whisper: Whisper, worker: WorkerProcess, job_id: UUID) -> tuple[dict[str, Any], int]:
    """The completed job, and the most memory that was seen meanwhile."""
    most, end = 0, time.monotonic() + SOON
    while time.monotonic() < end:
        most = max(most, memory_of(worker))
        job = whisper.database.job(job_id)
        if job["status"] not in {"pending", "running", "retry"}:
            assert job["status"] == "completed", job["error_msg"]
            return job["result"], most
        time.sleep(0.2)
    raise AssertionError("the job did not end")


def kill_ten_times(whisper: Whisper, job_id: UUID) -> list[int]:
    """Kills the worker at ten random moments all over the file; returns how many units were finished at each."""
    chance = random.Random()  # noqa: S311
    count = "select count(*) from job_checkpoint where job_id = %s and data ? 'index'"
    kills = []
    least_units = max(KILLS + 1, int(HOURS * 60))  # none is longer than a minute
    for at in sorted(chance.sample(range(1, least_units), KILLS)):
        worker = whisper.start(UNIT_SECONDS="60")

        def is_there(at: int = at, pid: int = worker.pid) -> bool:
            job = whisper.database.job(job_id)
            is_taken = f":{pid}:" in (job["worker_id"] or "")
            return job["status"] == "completed" or (is_taken and whisper.database.value(count, job_id) >= at)

        wait_until(is_there, SOON, every=0.1, what="a unit")
        time.sleep(chance.uniform(0, 5))
        if whisper.database.job(job_id)["status"] == "running":
            kills.append(whisper.database.value(count, job_id))
        worker.kill()
    return kills


def test_an_episode_of_three_hours_killed_ten_times_has_the_same_text_in_bounded_memory(whisper: Whisper) -> None:
    whisper.make_impatient()
    write_episode(whisper.media / "whole.mp3", whisper.samples, HOURS)
    (whisper.media / "killed.mp3").write_bytes((whisper.media / "whole.mp3").read_bytes())
    killed = whisper.enqueue("killed.mp3", language="en")
    kills = kill_ten_times(whisper, killed)
    worker = whisper.start(UNIT_SECONDS="60")
    resumed = whisper.wait(killed, within=SOON)["result"]
    worker.terminate()
    worker.wait(60)

    worker = whisper.start(UNIT_SECONDS="60")
    whole, most = wait_measuring(whisper, worker, whisper.enqueue("whole.mp3", language="en"))

    units = whole["timing"]["units"]
    print(f"\n{HOURS:g} h: killed after {kills} of {units} units, at most {most / 1e6:.0f} MB, {whole['timing']}")
    assert len(kills) == KILLS
    assert resumed["segments"] == whole["segments"]
    assert resumed["dropped"] == whole["dropped"]
    assert resumed["timing"]["resumed_units"] >= KILLS
    assert whole["duration"] == pytest.approx(HOURS * 3600, rel=0.001)
    assert most < MOST_BYTES


def test_an_episode_in_units_of_the_default_length_stays_in_bounded_memory(whisper: Whisper) -> None:
    write_episode(whisper.media / "whole.mp3", whisper.samples, HOURS)
    worker = whisper.start(UNIT_SECONDS="300")

    whole, most = wait_measuring(whisper, worker, whisper.enqueue("whole.mp3", language="en"))

    print(f"\n{HOURS:g} h: at most {most / 1e6:.0f} MB, {whole['timing']}")
    assert most < MOST_BYTES


def test_twenty_files_in_one_process_leave_no_memory_behind(whisper: Whisper) -> None:
    names = ["jfk.mp3", "ljspeech-2min.mp3", "npsc-medium.mp3", "edge/mixed_rate.mp3", "edge/noise.mp3"]
    worker = whisper.start()
    after = []
    for number in range(20):
        path = f"{number}.mp3"
        whisper.add(names[number % len(names)], path)
        whisper.wait(whisper.enqueue(path, language="en", force=True), within=SOON)
        after.append(memory_of(worker))

    print("\nMB after each file:", [round(size / 1e6) for size in after])
    # Each of the five kinds of file has been seen once; from then on nothing is added.
    assert max(after[5:]) - max(after[:5]) < MOST_GROWTH_BYTES
