"""From compose.yaml to a Docker Swarm: nothing is lost on the way, and the swarm's own reader takes it."""

import json
import subprocess
from typing import Any

import pytest

from services.admin.stack_file import stack
from tests.databases import ROOT
from tests.deploy.stack import SERVICES

TOOLS = {name for name, service in SERVICES.items() if service.get("profiles") == ["tools"]}


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    """As `make stack` reads it."""
    asked = subprocess.run(
        ["docker", "compose", "--env-file", "/dev/null", "config", "--format", "json"],
        cwd=ROOT, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert asked.returncode == 0, asked.stderr
    return dict(json.loads(asked.stdout))


@pytest.mark.containers
def test_a_swarm_reads_what_comes_out(compose: dict[str, Any], tmp_path: Any) -> None:
    file = tmp_path / "stack.json"
    file.write_text(json.dumps(stack(compose)))
    read = subprocess.run(["docker", "stack", "config", "-c", file], capture_output=True, text=True, timeout=60)

    assert (read.returncode, read.stderr) == (0, "")


@pytest.mark.containers
def test_each_service_keeps_its_limits_its_secrets_and_its_folders(compose: dict[str, Any]) -> None:
    services = stack(compose)["services"]

    assert services.keys() == SERVICES.keys() - TOOLS
    for name, service in services.items():
        before = compose["services"][name]
        assert service["deploy"]["resources"]["limits"]["memory"] == before["mem_limit"], name
        assert service["deploy"]["resources"]["limits"]["pids"] == before["pids_limit"], name
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        targets = [mount["target"] for mount in service["volumes"]]
        assert targets[: len(before.get("volumes", []))] == [mount["target"] for mount in before.get("volumes", [])]
        assert len([mount for mount in service["volumes"] if mount["type"] == "tmpfs"]) == len(
            before.get("tmpfs", [])
        ) + ("shm_size" in before)
        secrets = [mount for mount in service["volumes"] if mount.get("source") == "secrets"]
        assert name in ("secrets", "migrate") or all(mount["volume"]["subpath"] for mount in secrets)


@pytest.mark.containers
def test_what_ends_by_itself_is_run_until_it_succeeds(compose: dict[str, Any]) -> None:
    services = stack(compose)["services"]
    conditions = {name: service["deploy"]["restart_policy"]["condition"] for name, service in services.items()}

    assert {name for name, condition in conditions.items() if condition == "on-failure"} == {
        "secrets", "migrate", "model",
    }  # fmt: skip
    assert set(conditions.values()) == {"on-failure", "any"}


@pytest.mark.containers
def test_replicas_are_found_by_name_and_ports_lie_on_the_node(compose: dict[str, Any]) -> None:
    made = stack(compose)

    assert all(service["deploy"]["endpoint_mode"] == "dnsrr" for service in made["services"].values())
    ports = [port for service in made["services"].values() for port in service.get("ports", [])]
    assert {(port["published"], port["mode"]) for port in ports} == {(8080, "host"), (9090, "host")}
    assert made["networks"]["backend"] == {"driver": "overlay", "internal": True, "attachable": True}
    assert set(made["volumes"]) == set(compose["volumes"])
