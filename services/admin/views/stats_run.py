"""A run of the statistics: what it read, what it left out and why, and which days it touched."""

from typing import Any

import msgspec


class File(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    start: int = 0
    end: int = 0
    lines: int = 0
    bad: int = 0
    state: str = ""


class StatsRun(msgspec.Struct, frozen=True, kw_only=True):
    """What the view shows of a result of stats_parse. Days: ISO date -> figures."""

    v: int
    lines: int
    counted_requests: int
    method: str = ""
    list_version: str | int | None = None
    more: bool = False
    files: list[File] = []
    excluded: dict[str, int] = {}
    bad: dict[str, int] = {}
    late: int = 0
    lost_bytes: int = 0
    query_dropped: int = 0
    days: dict[str, dict[str, Any]] = {}
    max_ts: str | None = None
    lag_s: float | None = None
    lines_per_s: float | None = None
    duration_s: float | None = None
    warnings: list[str] = []

    @property
    def figures(self) -> list[str]:
        """Names of the days' figures, in the order in which they first stand."""
        return list(dict.fromkeys(name for day in self.days.values() for name in day))


def read_stats_run(result: str) -> StatsRun:
    """The run in a result.

    Raises:
        msgspec.ValidationError: it is none.
    """
    return msgspec.json.decode(result, type=StatsRun)
