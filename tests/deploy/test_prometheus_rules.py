"""Alerts and dashboard: each alert tried with promtool, each metric one that the code has, each on its page of docs."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.databases import ROOT
from tests.deploy.stack import SERVICES

FOLDER = ROOT / "services" / "prometheus"
CASES = ROOT / "tests" / "deploy" / "prometheus_rules.yml"
RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load((FOLDER / "rules.yml").read_text())["groups"] for rule in group["rules"]
]
ALERTS = {rule["alert"]: rule for rule in RULES if "alert" in rule}
RECORDED = {rule["record"] for rule in RULES if "record" in rule}
DASHBOARD: dict[str, Any] = json.loads((FOLDER / "grafana.json").read_text())
PAGE = (ROOT / "docs" / "monitoring.md").read_text()
METRIC = re.compile(r"\b(?:jobqueue|openrouter|whisper|stats)_[a-z0-9_]+\b")
OF_HISTOGRAMS = re.compile(r"_(?:bucket|count|sum)$")


def registered() -> set[str]:
    """Every name of a metric that the code gives to Prometheus."""
    named = re.compile(r'"((?:jobqueue|openrouter|whisper|stats)_[a-z0-9_]+)"')
    found: set[str] = set()
    for path in [*ROOT.glob("shared/**/*.py"), *ROOT.glob("services/**/*.py")]:
        if "prometheus_client" in (text := path.read_text()):
            found |= set(named.findall(text))
    return found


def used(expression: str) -> set[str]:
    """The metrics of an expression, without what recording rules make and labels like job_type."""
    for name in RECORDED:
        expression = expression.replace(name, "")
    return {OF_HISTOGRAMS.sub("", name) for name in METRIC.findall(expression)}


def expressions() -> list[str]:
    panels = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    return [rule["expr"] for rule in RULES] + panels


def promtool(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """In the image that the stack runs, which brings it."""
    mount = f"{folder}:/rules:ro"
    image = SERVICES["prometheus"]["image"]
    return subprocess.run(
        ["docker", "run", "--rm", "--network", "none", "--volume", mount, "--workdir", "/rules",
         "--user", "0", "--entrypoint", "promtool", image, *arguments],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """A folder with the rules, their cases, and the dashboard's expressions as rules of their own."""
    shutil.copy(FOLDER / "rules.yml", tmp_path)
    shutil.copy(CASES, tmp_path / "cases.yml")
    panels = [
        {"record": f"panel:{number}", "expr": expression}
        for number, expression in enumerate(expressions()[len(RULES) :])
    ]
    (tmp_path / "panels.yml").write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": panels}]}))
    return tmp_path


@pytest.mark.containers
def test_every_alert_fires_when_it_should_and_is_silent_beside_it(rules: Path) -> None:
    tried = promtool(rules, "test", "rules", "cases.yml")

    assert tried.returncode == 0, tried.stdout + tried.stderr
    assert "SUCCESS" in tried.stdout


@pytest.mark.containers
def test_a_rule_that_is_changed_is_noticed(rules: Path) -> None:
    """That the cases can fail: with one threshold moved they do."""
    moved = (rules / "rules.yml").read_text().replace("jobqueue_oldest_due_age_seconds > 3600", "vector(0) > 3600")
    (rules / "rules.yml").write_text(moved)

    assert promtool(rules, "test", "rules", "cases.yml").returncode != 0


@pytest.mark.containers
def test_rules_and_panels_are_written_without_a_mistake(rules: Path) -> None:
    checked = promtool(rules, "check", "rules", "rules.yml", "panels.yml")

    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"{len(RULES)} rules found" in checked.stdout + checked.stderr


def test_each_alert_has_a_case_that_fires() -> None:
    fired = {
        case["alertname"]
        for test in yaml.safe_load(CASES.read_text())["tests"]
        for case in test["alert_rule_test"]
        if case["exp_alerts"]
    }

    assert fired == set(ALERTS)


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_says_what_is_wrong_what_to_do_and_how_bad_it_is(name: str) -> None:
    alert = ALERTS[name]

    assert set(alert["annotations"]) == {"summary", "next_step"}
    assert alert["labels"]["severity"] in ("warning", "critical")
    assert alert["for"]
    assert f"`{name}`" in PAGE, "docs/monitoring.md says what it means"


def test_rules_and_panels_use_metrics_that_the_code_has() -> None:
    assert {name for expression in expressions() for name in used(expression)} <= registered()


def test_the_page_on_monitoring_names_every_metric_and_no_other() -> None:
    assert {OF_HISTOGRAMS.sub("", name) for name in re.findall(r"^\| `([a-z0-9_]+)`", PAGE, re.M)} == registered()
