"""Whether alerts told the truth during the stack's soak: what Prometheus raised, beside what was done."""

import json
import re
import shutil
import time
from pathlib import Path
from typing import NamedTuple

import yaml

from tests.databases import ROOT
from tests.e2e.running_stack import RunningStack

SHIPPED = ROOT / "services" / "prometheus"
EVALUATION_SECONDS = 60  # Prometheus' own default
ECHO_SECONDS = 120  # in which an alert may outlast its cause: scrape, evaluation, the exporter's ten seconds
SURELY_LOST = 6  # runs, beyond which LeasesLost has to fire: its limit is 3 of an extrapolated increase


class Deed(NamedTuple):
    """Something that was done to the stack, and the alert that has to tell of it."""

    alert: str
    job_type: str
    begun: float
    ended: float


def write_rules(folder: Path, factor: float, disk_share: float) -> None:
    """The shipped folder with waiting times multiplied; a disk is nearly full below `disk_share` of free space."""
    shutil.copytree(SHIPPED, folder, dirs_exist_ok=True)
    rules = yaml.safe_load((SHIPPED / "rules.yml").read_text())
    for rule in (rule for group in rules["groups"] for rule in group["rules"]):
        if "for" in rule:
            rule["for"] = f"{int(seconds(rule['for']) * factor)}s"
        if rule.get("alert") == "DiskNearlyFull":
            rule["expr"] = re.sub(r"< 0\.1$", f"< {disk_share:.6f}", rule["expr"])
    (folder / "rules.yml").write_text(yaml.safe_dump(rules))
    config = yaml.safe_load((SHIPPED / "prometheus.yml").read_text())
    config["global"]["evaluation_interval"] = f"{max(5, int(EVALUATION_SECONDS * factor))}s"
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))


def seconds(duration: str) -> int:
    return int(duration[:-1]) * {"s": 1, "m": 60, "h": 3600}[duration[-1]]


def free_and_size(stack: RunningStack) -> tuple[float, float] | None:
    """Bytes of the disk, as the alert sees it; None before it was told."""
    free, size = (stack.prometheus(f"jobqueue_disk_{what}_bytes") for what in ("free", "size"))
    return (float(free[0]["value"][1]), float(size[0]["value"][1])) if free and size else None


def verdicts(stack: RunningStack, diary: list[Deed], begun: float) -> list[str]:
    """What was raised without a cause, what was not raised, and what nobody was told is over."""
    raised = _raised(stack, time.time() - begun)
    told = {(row["name"], row["job_type"] or ""): row for row in _told(stack)}
    lost = int(stack.sql("select count(*) from job_attempt where outcome = 'lost'"))
    found = []
    for (alert, job_type), moments in raised.items():
        causes = [deed for deed in diary if (deed.alert, deed.job_type) == (alert, job_type)]
        if alert == "LeasesLost" and lost:
            continue
        idle = [at for at in moments if not any(deed.begun <= at <= deed.ended + ECHO_SECONDS for deed in causes)]
        if idle:
            found.append(
                f"{alert} {job_type} fired {len(idle)} times without a cause, first {idle[0] - begun:.0f} s in"
            )
    for deed in diary:
        if (deed.alert, deed.job_type) not in raised:
            found.append(f"{deed.alert} {deed.job_type} kept silent for {deed.ended - deed.begun:.0f} s")
        elif (deed.alert, deed.job_type) not in told or not told[deed.alert, deed.job_type]["is_over"]:
            found.append(f"{deed.alert} {deed.job_type}: its end did not arrive")
    if lost >= SURELY_LOST and ("LeasesLost", "") not in raised:
        found.append(f"LeasesLost kept silent, though {lost} runs were lost")
    return found


def _raised(stack: RunningStack, span: float) -> dict[tuple[str, str], list[float]]:
    """Moments at which each alert fired, by its name and job type."""
    found: dict[tuple[str, str], list[float]] = {}
    for series in stack.prometheus(f'ALERTS{{alertstate="firing"}}[{int(span)}s]'):
        labels = series["metric"]
        moments = found.setdefault((labels["alertname"], labels.get("job_type", "")), [])
        moments += [float(at) for at, _ in series["values"]]
    return found


def _told(stack: RunningStack) -> list[dict[str, str]]:
    statement = """select coalesce(json_agg(json_build_object(
        'name', name, 'job_type', labels->>'job_type', 'is_over', ends_at <= now())), '[]') from alert"""
    return list(json.loads(stack.sql(statement)))
