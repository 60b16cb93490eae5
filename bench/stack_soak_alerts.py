"""Whether alerts told the truth during the stack's soak: what Prometheus raised, beside what was done."""

import json
import shutil
import time
from pathlib import Path
from typing import NamedTuple

import yaml

from tests.databases import ROOT
from tests.deploy.stack import seconds
from tests.e2e.running_stack import RunningStack

SHIPPED = ROOT / "services" / "prometheus"
EVALUATION_SECONDS = 60  # Prometheus' own default
ECHO_SECONDS = 120  # in which an alert may outlast its cause: scrape, evaluation, the exporter's ten seconds
SURELY_LOST = 6  # runs, beyond which LeasesLost has to fire: its limit is 3 of an extrapolated increase
Name = tuple[str, str]  # of an alert, and the job type or disk that it is about


class Deed(NamedTuple):
    """Something that was done to the stack, and the alert that has to tell of it, or may."""

    alert: str
    subject: str  # its job type or its disk
    begun: float
    ended: float
    has_to_be_told: bool = True


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
    now, raised = time.time(), _raised(stack, time.time() - begun)
    lost = int(stack.sql("select count(*) from job_attempt where outcome = 'lost'"))
    # True of this machine, or of the hour that is looked at, whatever was done when.
    causes = [*diary, *([Deed("LeasesLost", "", begun, now, has_to_be_told=False)] if lost else [])]
    causes += [Deed("DiskNearlyFull", "volumes", begun, now, has_to_be_told=False)] if _volumes_are_tight(stack) else []
    found = judge(raised, _over(stack), causes, begun)
    if lost >= SURELY_LOST and ("LeasesLost", "") not in raised:
        found.append(f"LeasesLost kept silent, though {lost} runs were lost")
    return found


def judge(raised: dict[Name, list[float]], over: set[Name], causes: list[Deed], begun: float) -> list[str]:
    """The same of the moments at which alerts fired, those of which people were told that they are over, and why."""
    found = []
    for (alert, subject), moments in raised.items():
        spans = [(deed.begun, deed.ended) for deed in causes if (deed.alert, deed.subject) == (alert, subject)]
        idle = [at for at in moments if not any(start <= at <= end + ECHO_SECONDS for start, end in spans)]
        if idle:
            found.append(f"{alert} {subject} fired {len(idle)} times without a cause, at {idle[0] - begun:.0f} s first")
    for deed in causes:
        name = (deed.alert, deed.subject)
        if deed.has_to_be_told and name not in raised:
            found.append(f"{deed.alert} {deed.subject} kept silent for {deed.ended - deed.begun:.0f} s")
        elif deed.has_to_be_told and name not in over:
            found.append(f"{deed.alert} {deed.subject}: nobody was told that it is over")
    return found


def _volumes_are_tight(stack: RunningStack) -> bool:
    """Whether this machine's own disk is near the limit of a tenth, at any time of the last hour."""
    share = 'jobqueue_disk_free_bytes{disk="volumes"} / jobqueue_disk_size_bytes'
    return bool(stack.prometheus(f"min_over_time(({share})[1h:15s]) < 0.101"))


def _raised(stack: RunningStack, span: float) -> dict[Name, list[float]]:
    """Moments at which each alert fired."""
    found: dict[Name, list[float]] = {}
    for series in stack.prometheus(f'ALERTS{{alertstate="firing"}}[{int(span)}s]'):
        labels = series["metric"]
        subject = labels.get("job_type", labels.get("disk", ""))
        moments = found.setdefault((labels["alertname"], subject), [])
        moments += [float(at) for at, _ in series["values"]]
    return found


def _over(stack: RunningStack) -> set[Name]:
    """Alerts that the service which tells people has heard of, and knows to be over."""
    statement = """
        select coalesce(json_agg(json_build_array(name, coalesce(labels->>'job_type', labels->>'disk', ''))), '[]')
          from alert where ends_at <= now()"""
    return {(name, subject) for name, subject in json.loads(stack.sql(statement))}
