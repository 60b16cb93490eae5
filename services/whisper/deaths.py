"""Which unit the engine dies on, counted over the runs of a job by records among its checkpoints.

A run begins with a record of the unit that it starts at, and ends with one when it fails. A run that left no end,
although its attempt was charged, vanished together with its worker: killed, or the machine went down. That says less
of the unit than the death of the engine alone, so it takes one more.

A released run (shutdown) costs no attempt, so the next one has the same number, and nothing is counted. A job that
somebody retries begins again with attempt 1, and with a clean slate.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

MOST_DEATHS = 2
MOST_VANISHED = 3  # deaths included


def begin_record(key: str, attempt: int, unit: int) -> dict[str, Any]:
    """A run begins at a unit."""
    return {"key": key, "run": {"attempt": attempt, "unit": unit}}


def end_record(key: str, unit: int, *, death: str | None) -> dict[str, Any]:
    """A run failed at a unit: by the engine's death, or otherwise."""
    return {"key": key, "run_end": {"unit": unit, "death": death}}


@dataclass
class Deaths:
    """What happened at one unit."""

    seen: list[str] = field(default_factory=list)
    vanished: int = 0

    @property
    def is_poison(self) -> bool:
        return len(self.seen) >= MOST_DEATHS or len(self.seen) + self.vanished >= MOST_VANISHED

    def __str__(self) -> str:
        lost = f"runs that ended with their worker: {self.vanished}" if self.vanished else ""
        return "; ".join(filter(None, [*self.seen, lost]))


@dataclass
class _Run:
    attempt: int
    unit: int
    is_open: bool = True


def deaths_on(data: Iterable[Any], key: str, unit: int, attempt: int) -> Deaths:
    """The deaths at a unit so far, read from the data of a job's checkpoints. `attempt` is the one that begins."""
    found: dict[int, Deaths] = {}
    run: _Run | None = None
    for record in (item for item in data if isinstance(item, dict) and item.get("key") == key):
        if (begun := _numbers(record.get("run"), "attempt", "unit")) is not None:
            _close(run, begun[0], found)
            run = _Run(begun[0], begun[1])
        elif (ended := _numbers(record.get("run_end"), "unit")) is not None:
            death = record["run_end"].get("death")
            if isinstance(death, str):
                found.setdefault(ended[0], Deaths()).seen.append(death)
            if run is not None:
                run.is_open = False
        elif run is not None and isinstance(record.get("index"), int):
            run.unit = record["index"] + 1
    _close(run, attempt, found)
    return found.get(unit, Deaths())


def _close(run: _Run | None, next_attempt: int, found: dict[int, Deaths]) -> None:
    """What the number of the next attempt tells of how a run ended."""
    if run is None:
        return
    if next_attempt < run.attempt:
        found.clear()
    elif run.is_open and next_attempt > run.attempt:
        found.setdefault(run.unit, Deaths()).vanished += 1


def _numbers(record: Any, *names: str) -> tuple[int, ...] | None:
    if not isinstance(record, dict) or not all(isinstance(record.get(name), int) for name in names):
        return None
    return tuple(record[name] for name in names)
