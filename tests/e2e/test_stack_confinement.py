"""What the containers of the running stack are confined to: looked at from outside and from inside, all services.

Data from compose.yaml: what it declares is what is there, and nothing else is open.
"""

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from services.admin.secrets import operator_files, secret_files
from tests.deploy.stack import COMPOSE, ONE_SHOTS, SERVICES
from tests.e2e.running_stack import PROJECT, RunningStack
from tests.e2e.test_stack_roles import OF_CONTAINERS, ask

pytestmark = [pytest.mark.containers, pytest.mark.slow, pytest.mark.timeout(600)]

STAYING = sorted(name for name in SERVICES if name not in ONE_SHOTS and name != "watch")  # which is off by default
ENDED = ("secrets", "migrate", "model")
UNITS = {"m": 1 << 20, "g": 1 << 30}
EVERY = pytest.mark.parametrize("name", [*STAYING, *ENDED])
EVERY_STAYING = pytest.mark.parametrize("name", STAYING)
ALL_CAPABILITIES_BUT = "0000000000000000"
# CHOWN, DAC_OVERRIDE, FOWNER, SETGID, SETUID as bits of Linux' list (include/uapi/linux/capability.h).
OF_DATABASE = f"{1 << 0 | 1 << 1 | 1 << 3 | 1 << 6 | 1 << 7:016x}"
INSIDE = """
for field in CapInh CapPrm CapEff CapBnd CapAmb NoNewPrivs Seccomp; do
  echo "$field $(sed -n "s/^$field:[[:space:]]*//p" /proc/1/status)"
done
cd /sys/fs/cgroup  # of the second version, or of the first
echo "pids $(cat pids.max pids/pids.max 2>/dev/null)"
echo "memory $(cat memory.max memory/memory.limit_in_bytes 2>/dev/null)"
echo "secrets $(ls /run/secrets 2>/dev/null | tr '\\n' ' ')"
echo "default_routes $(grep -c '^[^[:space:]]*[[:space:]]00000000[[:space:]]' /proc/net/route)"
for folder in / /bin /etc /usr /usr/bin /usr/local /lib /var /var/lib /home /root /opt /opt/deps /app /app/services \\
    /srv /mnt /run /run/secrets /proc /proc/sys/kernel /sys /sys/fs/cgroup; do
  if touch "$folder/left" 2>/dev/null; then echo "written $folder"; rm -f "$folder/left"; fi
done
while read -r _ target kind options _; do
  case "$options" in rw|rw,*) echo "mounted $target $kind" ;; esac
done </proc/mounts
"""
OF_KERNEL = ("/proc", "/sys", "/dev")  # what the engine mounts there holds no file system


@pytest.fixture(scope="module")
def declared(stack: RunningStack) -> dict[str, Any]:
    """The services of compose.yaml with its variables filled in."""
    return dict(json.loads(stack.compose("config", "--format", "json"))["services"])


def container(stack: RunningStack, name: str) -> str:
    return stack.containers(name, every=name in ENDED)[0]


@EVERY
def test_the_engine_was_told_what_compose_yaml_says(stack: RunningStack, declared: dict[str, Any], name: str) -> None:
    service, found = declared[name], stack.inspect(container(stack, name))
    host, config = found["HostConfig"], found["Config"]

    assert host["ReadonlyRootfs"] is True
    assert host["CapDrop"] == ["ALL"]
    assert set(host["CapAdd"] or []) == set(service.get("cap_add", []))
    assert host["SecurityOpt"] == ["no-new-privileges:true"]
    assert host["Privileged"] is False
    assert host["PidsLimit"] == service["pids_limit"]
    assert host["Memory"] == int(service["mem_limit"])
    assert bool(host.get("Init")) == service.get("init", False)
    assert host["LogConfig"] == {"Type": "json-file", "Config": {"max-size": "10m", "max-file": "3"}}
    assert (host["PidMode"], host["IpcMode"], host["UsernsMode"], host["Devices"]) in (
        ("", "private", "", []), ("", "private", "", None),
    )  # fmt: skip
    networks = {f"{PROJECT}_{network}" for network in service.get("networks", {})}
    assert set(found["NetworkSettings"]["Networks"]) == (networks or {"none"})
    targets = {mount["target"]: not mount.get("read_only", False) for mount in service.get("volumes", [])}
    assert {mount["Destination"]: mount["RW"] for mount in found["Mounts"]} == targets
    bound = [one for bindings in (host["PortBindings"] or {}).values() for one in bindings]
    assert {one["HostIp"] for one in bound} <= {"127.0.0.1"}
    assert len(bound) == len(service.get("ports", []))
    passwords = [line for line in config["Env"] if "PASSWORD" in line.partition("=")[0]]
    assert [line for line in passwords if not line.partition("=")[0].endswith("_FILE")] == []


@pytest.fixture(scope="module")
def inside(stack: RunningStack) -> dict[str, dict[str, list[str]]]:
    """What a shell in each service's container finds: name -> what stands after it, of each line."""
    told: dict[str, dict[str, list[str]]] = {}
    for name in STAYING:
        found = told.setdefault(name, {"written": [], "mounted": []})
        one = container(stack, name)
        status = Path(f"/proc/{stack.inspect(one)['State']['Pid']}/status").read_text()
        found["user"] = [":".join(re.findall(r"^[UG]id:\t(\d+)", status, re.M))]
        for line in stack.run(
            "docker", "exec", "--user", found["user"][0], one, "sh", "-c", INSIDE
        ).stdout.splitlines():
            key, _, value = line.partition(" ")
            found.setdefault(key, []).append(value.strip())
    return told


def own_secrets(name: str) -> set[str]:
    """Names of the files that a service may know, by what makes them."""
    mounts = [mount for mount in SERVICES[name].get("volumes", []) if "secrets" in str(mount)]
    if not mounts:
        return set()
    folder = mounts[0]["volume"]["subpath"]
    files = [*secret_files().values(), *(file for files in operator_files().values() for file in files)]
    return {file.name for file in files if file.parts[0] == folder}


@EVERY_STAYING
def test_a_shell_inside_finds_nothing_to_use(
    inside: dict[str, dict[str, list[str]]], declared: dict[str, Any], name: str
) -> None:
    service, found = declared[name], inside[name]
    bounding = OF_DATABASE if name == "db" else ALL_CAPABILITIES_BUT

    assert not found["user"][0].startswith("0:")
    assert [found[f"Cap{kind}"][0] for kind in ("Inh", "Prm", "Eff", "Amb")] == [ALL_CAPABILITIES_BUT] * 4
    assert found["CapBnd"] == [bounding]
    assert (found["NoNewPrivs"], found["Seccomp"]) == (["1"], ["2"])
    assert found["pids"] == [str(service["pids_limit"])]
    assert found["memory"] == [str(service["mem_limit"])]
    assert set(found["secrets"][0].split()) == own_secrets(name)
    assert found["written"] == []
    folders = [folder.partition(":")[0].replace("/var/run/", "/run/") for folder in service.get("tmpfs", [])]
    volumes = [mount["target"] for mount in service.get("volumes", []) if not mount.get("read_only", False)]
    mounted = {mount.split()[0] for mount in found["mounted"]}
    assert {target for target in mounted if not target.startswith(OF_KERNEL)} == {*folders, *volumes}


@EVERY_STAYING
def test_there_is_a_way_out_only_where_compose_yaml_has_one(
    inside: dict[str, dict[str, list[str]]], declared: dict[str, Any], name: str
) -> None:
    has_one = bool(declared[name]["networks"].keys() - {"backend"})

    assert (inside[name]["default_routes"] != ["0"]) == has_one


def test_the_networks_are_what_they_are_called(stack: RunningStack) -> None:
    networks = json.loads(
        stack.run("docker", "network", "inspect", *(f"{PROJECT}_{name}" for name in COMPOSE["networks"])).stdout
    )
    found = {network["Name"].removeprefix(f"{PROJECT}_"): network for network in networks}
    masquerade = "com.docker.network.bridge.enable_ip_masquerade"

    assert {name for name, network in found.items() if network["Internal"]} == {"backend"}
    assert found["frontend"]["Options"][masquerade] == "false"
    assert {name for name in found if found[name]["Options"].get(masquerade) != "false"} == {"backend", "egress"}


@pytest.fixture
def outside(stack: RunningStack) -> Iterator[tuple[str, int]]:
    """A server that does not belong to the stack, on an address of this machine that only `egress` leads to."""
    with socket.create_server((stack.host_address("egress"), 0)) as server:
        yield server.getsockname()[:2]


@pytest.mark.parametrize("name", sorted(OF_CONTAINERS.keys() - {"admin"}))  # whose answers go to this machine anyway
def test_who_needs_the_network_reaches_it_and_nobody_else_does(
    stack: RunningStack, outside: tuple[str, int], name: str
) -> None:
    told = ask(stack, name, [], addresses=[outside, ("db", 5432), ("db", 22)])["addresses"]

    assert told[0] == ("" if "egress" in SERVICES[name]["networks"] else "[Errno 101] Network is unreachable")
    assert told[1] == ""
    assert "refused" in told[2]
