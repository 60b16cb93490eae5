"""compose.yaml, the job types and the code's settings as data, for the tests of this folder."""

import importlib
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import yaml

from sidelinja_jobs.job_type import JobType
from tests.databases import ROOT

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
JOB_TYPES = {path.parent.name: JobType.load(path.parent) for path in sorted(ROOT.glob("services/*/job_type.toml"))}
ONE_SHOTS = ("secrets", "migrate", "model", "jobs", "add")  # the last two only in the profile `tools`
INTERPOLATED = re.compile(r"(?<!\$)\$\{([A-Z_]+)(?::-([^}]*))?\}")


def volumes(service: str) -> Iterator[dict[str, Any]]:
    """The mounts of a service in Compose's long form."""
    for mount in SERVICES[service].get("volumes", []):
        if isinstance(mount, dict):
            yield mount
        else:
            source, target, *mode = re.split(r":(?!-)", mount)
            yield {"source": source, "target": target, "read_only": mode == ["ro"]}


def seconds(duration: str) -> int:
    """A duration as compose.yaml and Prometheus' files write them: 30s, 10m, 2h."""
    return int(duration[:-1]) * {"s": 1, "m": 60, "h": 3600}[duration[-1]]


def environment(service: str) -> dict[str, Any]:
    return SERVICES[service].get("environment", {})


def interpolated() -> dict[str, str]:
    """The variables that compose.yaml puts into its text, with their defaults."""
    text = "\n".join(
        line for line in (ROOT / "compose.yaml").read_text().splitlines() if not line.strip().startswith("#")
    )
    found: dict[str, str] = {}
    for name, default in INTERPOLATED.findall(text):
        assert found.setdefault(name, default) == default, f"{name} has two defaults"
    return found


def passed_on() -> set[str]:
    """The variables that some service gets only where .env sets them."""
    return {name for service in SERVICES for name, value in environment(service).items() if value is None}


def code_settings() -> dict[str, Any]:
    """Every setting that the code of shared and services reads, with its default."""
    found: dict[str, Any] = {}
    for path in sorted([*ROOT.glob("shared/*/*.py"), *ROOT.glob("services/**/*.py")]):
        if "= setting(" in path.read_text():
            for kind in vars(importlib.import_module(module_name(path))).values():
                if isinstance(kind, type) and is_dataclass(kind):
                    found |= {field.metadata["env"]: field.default for field in fields(kind) if "env" in field.metadata}
    return found


def module_name(path: Path) -> str:
    relative = path.relative_to(ROOT)
    return ".".join(relative.parts[1 if relative.parts[0] == "shared" else 0 :]).removesuffix(".py")
