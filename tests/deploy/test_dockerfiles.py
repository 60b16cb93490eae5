"""Dockerfiles and the allow-list of the build context, read as text."""

import re
from pathlib import Path

import pytest

from tests.databases import ROOT

DOCKERFILES = sorted(ROOT.glob("services/*/Dockerfile"))
EVERY = pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.parent.name)
BASE = "python:3.13-slim-trixie"
UID = "10001:10001"


def instructions(path: Path) -> list[tuple[str, str]]:
    """(INSTRUCTION, rest) with continued lines joined and comments left out."""
    text = re.sub(r"^\s*#.*\n", "", path.read_text(), flags=re.MULTILINE)
    joined = re.sub(r"\\\n\s*", " ", text)
    return [(word, rest) for line in joined.splitlines() if line for word, _, rest in [line.partition(" ")]]


def stages(path: Path) -> dict[str, list[tuple[str, str]]]:
    """The instructions of each stage by its name; a stage that only installs packages is called …deps."""
    found: dict[str, list[tuple[str, str]]] = {}
    for word, rest in instructions(path):
        if word == "FROM":
            base, _, name = rest.partition(" AS ")
            assert base in (BASE, *found), f"{base} is not {BASE} or a stage above"
            current = found.setdefault(name or "final", [])
        else:
            current.append((word, rest))
    return found


@EVERY
def test_image_is_built_in_stages_on_the_one_base(path: Path) -> None:
    """Packages are installed in a stage of their own, and only their folder is taken over."""
    names = list(stages(path))
    assert names[0] == "deps"
    assert not names[-1].endswith("deps")
    assert "# syntax" not in path.read_text(), "it would fetch a front end from elsewhere"


@EVERY
def test_packages_come_by_their_hashes_and_nothing_else_comes(path: Path) -> None:
    for name, stage in stages(path).items():
        runs = [rest for word, rest in stage if word == "RUN"]
        installs = [run for run in runs if "pip " in run]
        assert bool(installs) is name.endswith("deps")
        for run in installs:
            assert "pip install --require-hashes --no-deps --only-binary :all:" in run
            assert re.search(r"-r /requirements[a-z-]*\.lock", run)
        assert not re.search(r"curl|wget|git |apt|https?:|uv |gcc", " ".join(runs))
        assert not any(word == "ADD" for word, _ in stage)


def test_packages_are_installed_in_the_same_way_everywhere() -> None:
    """Plain Dockerfiles cannot share a stage between images, so each has these lines."""
    installs = {str(stages(path)["deps"][:2]).replace(f"services/{path.parent.name}/", "") for path in DOCKERFILES}
    assert len(installs) == 1


@EVERY
def test_image_runs_as_a_number_without_a_shell(path: Path) -> None:
    final = [step for name, stage in stages(path).items() if not name.endswith("deps") for step in stage]
    commands = [rest for word, rest in final if word in ("CMD", "ENTRYPOINT")]

    assert [rest for word, rest in final if word == "USER"] == [UID]
    assert commands
    assert all(command.startswith('["') for command in commands)
    assert any("PYTHONPATH=/app/shared:/app:" in rest for word, rest in final if word == "ENV")


@EVERY
def test_image_has_the_command_line_and_the_package(path: Path) -> None:
    copies = [rest for word, rest in instructions(path) if word == "COPY"]
    assert "--chmod=0755 shared/jobs /usr/local/bin/jobs" in copies
    assert "shared/sidelinja_jobs shared/sidelinja_jobs" in copies
    assert copies.index("shared/sidelinja_jobs shared/sidelinja_jobs") > copies.index("--from=deps /opt/deps /opt/deps")


@EVERY
def test_image_says_what_it_is(path: Path) -> None:
    labels = " ".join(rest for word, rest in instructions(path) if word == "LABEL")
    for label in ("title", "description", "version", "revision"):
        assert f"org.opencontainers.image.{label}=" in labels


@EVERY
def test_dockerfile_is_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 60


def test_build_context_is_an_allow_list() -> None:
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert rules[0] == "*"
    assert [rule for rule in rules if rule.startswith("!")] == [
        "!shared/sidelinja_jobs", "!shared/openrouter_client", "!shared/subtitles", "!shared/jobs", "!services",
        "!db/init",
    ]  # fmt: skip
    assert "**/__pycache__" in rules


def test_every_service_with_a_dockerfile_has_a_locked_list() -> None:
    assert all((path.parent / "requirements.lock").is_file() for path in DOCKERFILES)
