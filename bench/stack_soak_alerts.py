"""Whether alerts told the truth during the stack's soak: what Prometheus raised, beside what was done."""

import json
import shutil
import time
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.databases import ROOT
from tests.deploy.stack import seconds
from tests.e2e.running_stack import RunningStack

SHIPPED = ROOT / "services" / "prometheus"
EVALUATION_SECONDS = 60  # Prometheus' own default
ECHO_SECONDS = 120  # in which an alert may outlast its cause: scrape, evaluation, the exporter's ten seconds
SURELY_LOST = 6  # runs, beyond which LeasesLost has to fire: its limit is 3 of an extrapolated increase


class Deed(NamedTuple):
    """Something that was done to the stack, and the alert that has to tell of it."""

    alert: str
    subject: str  # its job type or its disk
    begun: float
    ended: float


def write_rules(folder: Path, factor: float) -> None:
    """The shipped folder with waiting times multiplied."""
    shutil.copytree(SHIPPED, folder, dirs_exist_ok=True)
    rules = yaml.safe_load((SHIPPED / "rules.yml").read_text())
    for rule in (rule for group in rules["groups"] for rule in group["rules"]):
        if "for" in rule:
            rule["for"] = f"{int(seconds(rule['for']) * factor)}s"
    (folder / "rules.yml").write_text(yaml.safe_dump(rules))
    config = yaml.safe_load((SHIPPED / "prometheus.yml").read_text())
    config["global"]["evaluation_interval"] = f"{max(5, int(EVALUATION_SECONDS * factor))}s"
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))


def verdicts(stack: RunningStack, diary: list[Deed], begun: float) -> list[str]:
    """What was raised without a cause, what was not raised, and what nobody was told is over."""
    raised = _raised(stack, time.time() - begun)
    told = {(row["name"], row["subject"] or ""): row["is_over"] for row in _told(stack)}
    lost = int(stack.sql("select count(*) from job_attempt where outcome = 'lost'"))
    # True of this machine, or of the hour that is looked at, whatever was done when.
    causes = [*diary, *([Deed("LeasesLost", "", begun, time.time())] if lost else [])]
    causes += [Deed("DiskNearlyFull", "volumes", begun, time.time())] if _volumes_are_tight(stack) else []
    found = []
    for (alert, subject), moments in raised.items():
        spans = [(deed.begun, deed.ended) for deed in causes if (deed.alert, deed.subject) == (alert, subject)]
        idle = [at for at in moments if not any(start <= at <= end + ECHO_SECONDS for start, end in spans)]
        if idle:
            found.append(f"{alert} {subject} fired {len(idle)} times without a cause, at {idle[0] - begun:.0f} s first")
    for deed in diary:
        name = (deed.alert, deed.subject)
        if name not in raised:
            found.append(f"{deed.alert} {deed.subject} kept silent for {deed.ended - deed.begun:.0f} s")
        elif not told.get(name):
            found.append(f"{deed.alert} {deed.subject}: nobody was told that it is over")
    if lost >= SURELY_LOST and ("LeasesLost", "") not in raised:
        found.append(f"LeasesLost kept silent, though {lost} runs were lost")
    return found


def _volumes_are_tight(stack: RunningStack) -> bool:
    """Whether this machine's own disk is near the limit of a tenth, at any time of the last hour."""
    share = 'jobqueue_disk_free_bytes{disk="volumes"} / jobqueue_disk_size_bytes'
    return bool(stack.prometheus(f"min_over_time(({share})[1h:15s]) < 0.101"))


def _raised(stack: RunningStack, span: float) -> dict[tuple[str, str], list[float]]:
    """Moments at which each alert fired, by its name and what it is about."""
    found: dict[tuple[str, str], list[float]] = {}
    for series in stack.prometheus(f'ALERTS{{alertstate="firing"}}[{int(span)}s]'):
        labels = series["metric"]
        subject = labels.get("job_type", labels.get("disk", ""))
        moments = found.setdefault((labels["alertname"], subject), [])
        moments += [float(at) for at, _ in series["values"]]
    return found


def _told(stack: RunningStack) -> list[dict[str, Any]]:
    statement = """
        select coalesce(json_agg(json_build_object(
                   'name', name, 'subject', coalesce(labels->>'job_type', labels->>'disk'), 'is_over', ends_at <= now()
               )), '[]') from alert"""
    return list(json.loads(stack.sql(statement)))
