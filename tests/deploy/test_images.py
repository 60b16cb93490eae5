"""The images as built: what is in them, what is not, and how large they are above their base."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.databases import ROOT
from tests.deploy.containers import docker, inside
from tests.deploy.stack import SERVICES
from tests.deploy.test_dockerfiles import BASE, DOCKERFILES

pytestmark = [pytest.mark.containers, pytest.mark.timeout(600)]
NAMES = [path.parent.name for path in DOCKERFILES]
EVERY = pytest.mark.parametrize("name", NAMES)
SHARED = {
    **{name: ["/app/shared/openrouter_client/"] for name in ("openrouter", "research")},
    **{name: ["/app/shared/subtitles/"] for name in ("admin", "whisper")},
}
MEGABYTES_ABOVE_BASE = {"admin": 40, "openrouter": 30, "research": 120, "whisper": 470}
OTHERS_ABOVE_BASE = 25  # stats, and what is added with the queue's own packages


@pytest.fixture(scope="module")
def images() -> Iterator[dict[str, str]]:
    """Every image, built as compose.yaml builds it."""
    tags = {}
    for name in NAMES:
        tags[name] = f"jobbko-{name}:deploy-test"
        docker("build", "--quiet", "--tag", tags[name], "--file", f"services/{name}/Dockerfile", ".")
    yield tags
    docker("image", "rm", *tags.values(), check=False)  # the layers stay in the build's cache


@EVERY
def test_image_is_small(images: dict[str, str], name: str) -> None:
    def size_bytes(image: str) -> int:
        return int(docker("image", "inspect", "--format", "{{.Size}}", image).stdout)

    above = (size_bytes(images[name]) - size_bytes(BASE)) / 1e6
    assert above <= MEGABYTES_ABOVE_BASE.get(name, OTHERS_ABOVE_BASE), f"{name} is {above:.0f} MB above {BASE}"


@EVERY
def test_image_runs_the_command_line_as_nobody_in_particular(images: dict[str, str], name: str) -> None:
    assert "enqueue" in inside(images[name], "jobs", "--help").stdout
    assert inside(images[name], "id", "-u").stdout == "10001\n"
    assert inside(images[name], "python", "-c", "import sidelinja_jobs.migrate, services").returncode == 0


@EVERY
def test_image_holds_only_its_own_service_and_no_leftovers(images: dict[str, str], name: str) -> None:
    found = inside(
        images[name], "find", "/app", "(", "-name", "*.py", "-o", "-name", "__pycache__", "-o", "-name", ".*", ")"
    )
    strays = [
        path
        for path in found.stdout.split()
        if not path.startswith(("/app/shared/sidelinja_jobs/", f"/app/services/{name}/", *SHARED.get(name, ())))
        and not path.endswith("/cli.py")
    ]

    assert strays == []
    assert "__pycache__" not in found.stdout
    assert (
        inside(images[name], "find", "/opt", "/root", "-name", "tests", "-o", "-name", ".cache", check=False).stdout
        == ""
    )
    for tool in ("gcc", "uv", "git", "curl"):
        assert inside(images[name], "which", tool, check=False).returncode != 0


@pytest.mark.parametrize(
    ("name", "folders"),
    [
        ("admin", {"/secrets": "10001 755", "/media": "10001 755"}),
        ("whisper", {"/media": "10001 755", "/models": "10001 755", "/outputs": "0 1777"}),
        ("openrouter", {"/outputs": "0 1777"}),
    ],
)
def test_a_new_volume_can_be_written_by_who_has_to(images: dict[str, str], name: str, folders: dict[str, str]) -> None:
    """It takes owner and rights of the image's folder; outputs are written by whoever owns the recordings."""
    found = inside(images[name], "stat", "--format", "%u %a", *folders).stdout.splitlines()

    assert dict(zip(folders, found, strict=True)) == folders


@pytest.mark.parametrize("name", [name for name in NAMES if name != "whisper"])
def test_image_does_without_what_only_whisper_needs(images: dict[str, str], name: str) -> None:
    asked = "import sys; from importlib.util import find_spec; print([n for n in sys.argv[1:] if find_spec(n)])"
    found = inside(images[name], "python", "-c", asked, "numpy", "av", "faster_whisper", "click").stdout
    assert found.strip() == "['click']"


def test_tools_image_knows_every_job_type(images: dict[str, str]) -> None:
    found = inside(images["admin"], "find", "/app/services", "-name", "job_type.toml").stdout.split()
    assert sorted(found) == sorted(f"/app/{path.relative_to(ROOT)}" for path in ROOT.glob("services/*/job_type.toml"))


def test_build_context_holds_nothing_but_the_parts_of_images(tmp_path: Path) -> None:
    docker(
        "build",
        "--quiet",
        "--output",
        f"type=local,dest={tmp_path}",
        "--file",
        "-",
        ".",
        stdin="FROM scratch\nCOPY . /\n",
    )
    files = [path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()]

    assert {path.parts[0] for path in files} == {"shared", "services", "db"}
    assert not any(part.startswith(".") or part == "__pycache__" for path in files for part in path.parts)


def test_prometheus_accepts_its_configuration() -> None:
    folder = ROOT / "services" / "prometheus"
    image = SERVICES["prometheus"]["image"]
    checked = docker(
        "run", "--rm", "--network", "none", "--volume", f"{folder}:/etc/prometheus:ro", "--entrypoint", "promtool",
        image, "check", "config", "/etc/prometheus/prometheus.yml",
    )  # fmt: skip
    assert "SUCCESS" in checked.stdout
