"""compose.yaml read as data: every service is confined, every worker wired the same, nothing open that need not be."""

import json
import os
import re
import subprocess

import pytest

from tests.databases import ROOT
from tests.deploy.stack import COMPOSE, INTERPOLATED, JOB_TYPES, ONE_SHOTS, SERVICES, environment, seconds, volumes

WORKERS = sorted(JOB_TYPES)
EVERY = pytest.mark.parametrize("name", sorted(SERVICES))
EVERY_WORKER = pytest.mark.parametrize("name", WORKERS)
# Volumes that a service may write to.
WRITES = {
    "secrets": {"secrets"}, "db": {"pgdata"}, "model": {"models"}, "whisper": {"media", "outputs"},
    "openrouter": {"outputs"}, "add": {"media"}, "prometheus": {"prometheus"},
}  # fmt: skip
VARIABLE = re.compile(r"\$\{[A-Z_]+:-([^}]*)\}")
# The database's image starts as root to hand its folder to its user, and reaps processes itself.
DATABASE_CAPABILITIES = {"CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"}


@EVERY
def test_service_is_confined(name: str) -> None:
    service = SERVICES[name]

    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert 0 < service["pids_limit"] <= (1024 if name == "db" else 512)
    assert service["mem_limit"]
    assert not service.keys() & {"privileged", "devices", "pid", "ipc", "container_name", "extra_hosts", "userns_mode"}
    assert set(service.get("cap_add", [])) == (DATABASE_CAPABILITIES if name == "db" else set())
    assert service.get("init", False) is (name != "db")
    assert not any("docker.sock" in mount["source"] for mount in volumes(name))
    assert service.get("network_mode", "none") == "none"


@EVERY
def test_service_cannot_fill_the_disk_with_its_log(name: str) -> None:
    assert SERVICES[name]["logging"] == {"driver": "json-file", "options": {"max-size": "10m", "max-file": "3"}}


@EVERY
def test_service_has_sized_temporary_folders(name: str) -> None:
    assert all("size=" in folder for folder in SERVICES[name].get("tmpfs", []))


@EVERY
def test_service_comes_back_by_itself_unless_it_ends_by_itself(name: str) -> None:
    tools = SERVICES[name].get("profiles") == ["tools"]
    assert SERVICES[name].get("restart", "no") == ("no" if name in ONE_SHOTS else "unless-stopped")
    assert tools == (name in ("jobs", "add"))
    if name not in ONE_SHOTS:
        assert seconds(SERVICES[name]["stop_grace_period"]) >= 30
        assert SERVICES[name]["healthcheck"]["interval"] == "30s"
        assert SERVICES[name]["healthcheck"]["start_interval"] == "1s"


@EVERY
def test_image_is_pinned_and_never_pulled_when_it_is_ours(name: str) -> None:
    image, _, tag = SERVICES[name]["image"].partition(":")
    assert tag
    assert tag != "latest"
    if image.startswith("jobbko-"):
        assert "build" in SERVICES[name] or SERVICES[name]["pull_policy"] == "never"


def test_each_image_is_built_once() -> None:
    """Built for several services at once it has several ids, and the next `up` recreates what runs."""
    builders = [(service["image"], service["build"]) for service in SERVICES.values() if "build" in service]
    images = [image for image, _ in builders]

    assert sorted(images) == sorted(
        {image for service in SERVICES.values() if "jobbko-" in (image := service["image"])}
    )
    for image, build in builders:
        folder = image.partition(":")[0].removeprefix("jobbko-")
        assert (build["context"], build["dockerfile"]) == (".", f"services/{folder}/Dockerfile")


@EVERY
def test_published_ports_are_on_loopback_and_have_no_way_out(name: str) -> None:
    ports = SERVICES[name].get("ports", [])
    assert all(port.startswith("127.0.0.1:${") for port in ports)
    assert bool(ports) == ("frontend" in SERVICES[name].get("networks", []))


@EVERY
def test_service_writes_only_what_is_its_to_write(name: str) -> None:
    """Recordings are the transcriber's and `add`'s to write, the model is `model`'s: all else is mounted to read."""
    written = {VARIABLE.sub(r"\1", mount["source"]) for mount in volumes(name) if not mount["read_only"]}

    assert written == WRITES.get(name, set())


def test_nothing_starts_before_what_it_needs() -> None:
    waits = {name: SERVICES[name].get("depends_on", {}) for name in SERVICES}
    after = {name: {other: each["condition"] for other, each in needs.items()} for name, needs in waits.items()}
    ready = {"db": "service_healthy", "migrate": "service_completed_successfully"}

    assert after.pop("db") == {"secrets": "service_completed_successfully"}
    assert after.pop("migrate") == {"db": "service_healthy"}
    assert after.pop("whisper") == ready | {"model": "service_completed_successfully"}
    assert all(after.pop(name) == {} for name in ("secrets", "model", "prometheus", "jobs", "add"))
    assert all(needs == ready for needs in after.values())


@EVERY
def test_service_sees_its_own_secrets_alone(name: str) -> None:
    """secrets makes them and migrate sets all passwords; every other service gets its own folder, to read."""
    mounts = [mount for mount in volumes(name) if mount["source"] == "secrets"]
    if name in ("secrets", "migrate"):
        assert [mount["read_only"] for mount in mounts] == [name == "migrate"]
        return
    for mount in mounts:
        assert (mount["read_only"], mount["target"], mount["volume"]["nocopy"]) == (True, "/run/secrets", True)
        own = {"admin": "admin", "delivery": "delivery", "db": "db", "jobs": "operator", "watch": "worker_whisper"}.get(
            name
        ) or JOB_TYPES[name].role
        assert mount["volume"]["subpath"] == own
    assert not any("PASSWORD" in key and not key.endswith("_FILE") for key in environment(name))


def test_only_the_network_egress_leads_out_and_only_for_who_needs_it() -> None:
    assert COMPOSE["networks"]["backend"] == {"internal": True}
    masquerade = "com.docker.network.bridge.enable_ip_masquerade"
    assert COMPOSE["networks"]["frontend"] == {"driver_opts": {masquerade: "false"}}
    assert {name for name in SERVICES if "egress" in SERVICES[name].get("networks", [])} == {
        "delivery", "model", "openrouter", "research",
    }  # fmt: skip
    assert {name for name in SERVICES if "networks" not in SERVICES[name]} == {"secrets", "add"}
    assert all("network_mode" in SERVICES[name] for name in ("secrets", "add"))


def test_database_is_reached_from_inside_alone() -> None:
    assert SERVICES["db"]["networks"] == ["backend"]
    assert "ports" not in SERVICES["db"]


def test_database_volume_lies_where_its_major_version_keeps_it() -> None:
    """The image of 18 keeps its data one folder higher; with the wrong pair it starts empty."""
    assert SERVICES["db"]["image"].startswith("postgres:17")
    targets = {mount["source"]: mount for mount in volumes("db")}
    assert targets["pgdata"]["target"] == "/var/lib/postgresql/data"
    assert targets["./db/init"] == {
        "source": "./db/init", "target": "/docker-entrypoint-initdb.d", "read_only": True,
    }  # fmt: skip


def test_database_is_well_only_when_it_answers_over_tcp() -> None:
    """While the image fills an empty volume, its server listens on the socket alone."""
    assert "127.0.0.1" in SERVICES["db"]["healthcheck"]["test"]


def test_database_keeps_what_it_has_confirmed() -> None:
    assert not any(word in str(SERVICES["db"]["command"]) for word in ("fsync", "synchronous_commit", "full_page"))


@EVERY_WORKER
def test_worker_is_wired_like_every_worker(name: str) -> None:
    job_type, service = JOB_TYPES[name], SERVICES[name]

    assert job_type.role == f"worker_{name}"
    assert service["image"].startswith(f"jobbko-{name}:")
    assert service["networks"]["backend"] == {"aliases": ["workers"]}
    assert "ports" not in service
    assert environment(name)["DATABASE_URL"] == f"postgresql://{job_type.role}@db:5432/jobbko"
    assert environment(name)["DATABASE_PASSWORD_FILE"] == "/run/secrets/password"
    assert service["depends_on"]["db"] == {"condition": "service_healthy"}
    assert service["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
    assert environment(name).keys() >= SERVICES["whisper"]["environment"].keys() & COMPOSE["x-worker-settings"].keys()


@EVERY_WORKER
def test_worker_is_well_while_it_touches_its_file(name: str) -> None:
    """No Python starts for a check; HEALTH_FILE stays at its default."""
    assert SERVICES[name]["healthcheck"]["test"] == ["CMD-SHELL", "find /tmp/healthy -mmin -1 | grep -q ."]
    assert any(folder.startswith("/tmp:") for folder in SERVICES[name]["tmpfs"])  # noqa: S108


@EVERY_WORKER
def test_worker_has_time_to_drain(name: str) -> None:
    """Ten seconds to release the job and close its connections remain, else the job waits for its lease to run out."""
    assert seconds(SERVICES[name]["stop_grace_period"]) >= JOB_TYPES[name].drain_seconds + 10


def test_every_worker_has_its_folder_and_stanza() -> None:
    by_alias = {
        name
        for name, service in SERVICES.items()
        if isinstance(service.get("networks"), dict) and "workers" in str(service["networks"].get("backend"))
    }
    assert by_alias == set(JOB_TYPES)


def test_stack_is_called_the_same_in_every_checkout() -> None:
    assert COMPOSE["name"] == "jobbko"


@pytest.mark.containers
def test_compose_reads_it_as_we_do() -> None:
    """With nothing set: what Compose makes of it names no unset variable, and its defaults hold."""
    environ = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME")}
    asked = subprocess.run(
        ["docker", "compose", "--env-file", "/dev/null", "--profile", "tools", "config", "--format", "json"],
        cwd=ROOT, env=environ, capture_output=True, text=True,
    )  # fmt: skip

    assert (asked.returncode, asked.stderr) == (0, "")
    read = json.loads(asked.stdout)["services"]
    assert read.keys() == SERVICES.keys()
    assert not INTERPOLATED.search(json.dumps(read))
    assert read["whisper"]["user"] == "10001:10001"
