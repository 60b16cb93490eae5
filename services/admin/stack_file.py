"""Turns what `docker compose config --format json` prints into a file for `docker stack deploy`, on standard output.

One source: compose.yaml, and what you lay over it, stays the only description of the services; what a swarm has in
another form is moved here. Needs nothing but Python. `make stack` uses it, docs/scaling.md says what else that takes.
"""

import json
import sys
from typing import Any

Service = dict[str, Any]

# What a swarm neither has nor needs: images are there already, order is made by trying again.
LEFT_OUT = ("build", "depends_on", "network_mode", "profiles", "pull_policy", "restart", "shm_size")
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - where PostgreSQL and the C library put it
UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
RETRY_SECONDS = "5s"


def stack(compose: dict[str, Any]) -> dict[str, Any]:
    """The stack file of a resolved Compose file."""
    networks = compose.get("networks", {})
    return {
        "services": {name: _service(service) for name, service in compose["services"].items()},
        "networks": {name: _network(network or {}) for name, network in networks.items()},
        # The volumes that `up` made are found again, as long as the stack is called like the project.
        "volumes": {name: _without(volume or {}, "name") for name, volume in compose.get("volumes", {}).items()},
    }


def _service(service: Service) -> Service:
    found = {key: value for key, value in service.items() if key not in LEFT_OUT and value is not None}
    ends_by_itself = service.get("restart", "no") == "no"
    deploy = found.setdefault("deploy", {})
    limits = deploy.setdefault("resources", {}).setdefault("limits", {})
    if memory := found.pop("mem_limit", None):
        limits["memory"] = str(memory)
    if pids := found.pop("pids_limit", None):
        limits["pids"] = int(pids)
    if cpus := found.pop("cpus", None):
        limits["cpus"] = str(cpus)
    # Names lead to the replicas themselves, as Prometheus needs them; a virtual address would hide them.
    deploy["endpoint_mode"] = "dnsrr"
    deploy["restart_policy"] = {"condition": "on-failure" if ends_by_itself else "any", "delay": RETRY_SECONDS}
    deploy["update_config"] = {"order": "stop-first", "parallelism": 1}
    found["environment"] = {
        name: str(value) for name, value in (service.get("environment") or {}).items() if value is not None
    }
    if "ports" in found:
        found["ports"] = [_port(port) for port in found["ports"]]
    mounts = [_mount(mount) for mount in found.get("volumes", [])]
    mounts += [_in_memory(folder) for folder in found.pop("tmpfs", [])]
    if shared := service.get("shm_size"):
        mounts.append({"type": "tmpfs", "target": SHARED_MEMORY, "tmpfs": {"size": int(shared)}})
    return found | {"volumes": mounts}


def _port(port: dict[str, Any]) -> dict[str, Any]:
    """In host mode, on the node where the service runs: the routing mesh needs virtual addresses.

    A swarm publishes on all addresses of the node; docs/scaling.md says to keep a firewall in front.
    """
    return {"target": port["target"], "published": int(port["published"]), "protocol": "tcp", "mode": "host"}


def _mount(mount: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in mount.items() if key != "bind" and not (key == "volume" and not value)}


def _in_memory(folder: str) -> dict[str, Any]:
    """A tmpfs written `/tmp:size=16m,mode=1777` as a mount, which is the form that a swarm knows; 1777 is its mode."""
    target, _, options = folder.partition(":")
    size = next(option.removeprefix("size=") for option in options.split(",") if option.startswith("size="))
    return {"type": "tmpfs", "target": target, "tmpfs": {"size": int(size[:-1]) * UNITS[size[-1]]}}


def _network(network: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"driver": "overlay"}
    if network.get("internal"):
        found |= {"internal": True, "attachable": True}  # programs of your own join it, as with Compose
    return found


def _without(values: dict[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key not in names}


if __name__ == "__main__":
    json.dump(stack(json.load(sys.stdin)), sys.stdout, indent=1)
