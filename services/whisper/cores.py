"""How many CPU cores this process may really use: its affinity, cut by the container's CPU quota."""

import math
import os
from pathlib import Path

CGROUP_ROOT = Path("/sys/fs/cgroup")


def available_cores(cgroup_root: Path = CGROUP_ROOT) -> int:
    """Whole cores, at least one; a quota of 1.5 cores counts as 2 threads."""
    cores = len(os.sched_getaffinity(0))
    quota = quota_cores(cgroup_root)
    return cores if quota is None else max(1, min(cores, math.ceil(quota)))


def quota_cores(cgroup_root: Path) -> float | None:
    """The CPU quota in cores (cgroup v2, else v1), None where there is no limit."""
    unified = _words(cgroup_root / "cpu.max")
    if len(unified) == 2:
        return _ratio(*unified)
    quota = _words(cgroup_root / "cpu" / "cpu.cfs_quota_us")
    period = _words(cgroup_root / "cpu" / "cpu.cfs_period_us")
    return _ratio(quota[0], period[0]) if quota and period else None


def _words(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="ascii").split()
    except (OSError, UnicodeDecodeError):
        return []


def _ratio(quota: str, period: str) -> float | None:
    try:
        cores = int(quota) / int(period)
    except (ValueError, ZeroDivisionError):  # "max 100000" is no limit
        return None
    return cores if cores > 0 else None  # v1 writes -1 for no limit
