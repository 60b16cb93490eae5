"""The memory of each container during the stack's soak, and whether it grows."""

import json
import re
import threading
from collections import defaultdict
from statistics import median

from tests.e2e.running_stack import RunningStack

EVERY_SECONDS = 15
UNITS = {"B": 1 / 2**20, "KiB": 1 / 1024, "MiB": 1, "GiB": 1024}
# The database fills its shared buffers and the cache of its files, Prometheus keeps two hours in memory: theirs has to
# stay below half of the limit. What a service of ours has after a third of the time, it may exceed by this much.
HALF_OF_LIMIT = {"db": 1024, "prometheus": 256}
GROWTH, GROWTH_MB = 1.15, 10
FEWEST_SAMPLES = 12


class MemoryWatch:
    """Samples all containers as a context manager; of several replicas the largest counts."""

    def __init__(self, stack: RunningStack) -> None:
        self._stack, self._over = stack, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._samples: dict[str, list[float]] = defaultdict(list)

    def __enter__(self) -> "MemoryWatch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def medians(self) -> dict[str, list[float]]:
        """Of each service: median of the second third of the samples, median of the last, most."""
        return {name: [round(value, 1) for value in self._parts(name)] for name in sorted(self._samples)}

    def grown(self) -> dict[str, list[float]]:
        """Services whose memory is not flat."""
        found = {}
        for name in self._samples:
            early, late, most = self._parts(name)
            bound = HALF_OF_LIMIT.get(name, early * GROWTH + GROWTH_MB)
            if len(self._samples[name]) >= FEWEST_SAMPLES and (most if name in HALF_OF_LIMIT else late) > bound:
                found[name] = [early, late, most, bound]
        return found

    def _parts(self, name: str) -> tuple[float, float, float]:
        samples = self._samples[name]
        third = max(1, len(samples) // 3)
        return median(samples[third : 2 * third] or samples), median(samples[-third:]), max(samples)

    def _watch(self) -> None:
        while not self._over.wait(EVERY_SECONDS):
            running = self._stack.compose("ps", "--quiet", "--status", "running", check=False).split()
            stats = ("docker", "stats", "--no-stream", "--format", "{{json .}}")
            told = self._stack.run(*stats, *running, check=False) if running else None
            largest: dict[str, float] = {}
            for row in map(json.loads, told.stdout.splitlines() if told else []):
                service = re.sub(r"^.*?-soak-|-\d+$", "", row["Name"])
                if "-run-" not in service:  # the producer
                    largest[service] = max(largest.get(service, 0), megabytes(row["MemUsage"]))
            for service, size in largest.items():
                if size:  # one that is just starting has none
                    self._samples[service].append(size)


def megabytes(usage: str) -> float:
    """From `61.3MiB / 256MiB`, or 0 where there is nothing yet."""
    found = re.match(r"([\d.]+)([KMG]?i?B)", usage)
    return float(found[1]) * UNITS[found[2]] if found else 0.0
