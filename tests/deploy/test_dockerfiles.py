"""Dockerfiles, the build context's allow-list and the lists of packages, read as text."""

import re
from pathlib import Path

import pytest

from tests.databases import ROOT

DOCKERFILES = sorted(ROOT.glob("services/*/Dockerfile"))
LOCKS = sorted(ROOT.glob("services/*/requirements.lock"))
EVERY = pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.parent.name)
BASE = "python:3.13-slim-trixie"
UID = "10001:10001"


def instructions(path: Path) -> list[tuple[str, str]]:
    """(INSTRUCTION, rest) with continued lines joined and comments left out."""
    text = re.sub(r"^\s*#.*\n", "", path.read_text(), flags=re.MULTILINE)
    joined = re.sub(r"\\\n\s*", " ", text)
    return [(word, rest) for line in joined.splitlines() if line for word, _, rest in [line.partition(" ")]]


@EVERY
def test_image_is_built_in_stages_on_the_one_base(path: Path) -> None:
    bases = [rest for word, rest in instructions(path) if word == "FROM"]
    assert bases == [f"{BASE} AS deps", BASE]
    assert "# syntax" not in path.read_text(), "it would fetch a front end from elsewhere"


@EVERY
def test_packages_come_by_their_hashes_and_nothing_else_comes(path: Path) -> None:
    runs = [rest for word, rest in instructions(path) if word == "RUN"]
    installs = [run for run in runs if "pip install" in run]
    assert len(installs) == 1
    assert "--require-hashes --no-deps --only-binary :all:" in installs[0]
    assert "-r /requirements.lock" in installs[0]
    assert not re.search(r"curl|wget|git |apt|https?:|uv |gcc", " ".join(runs))
    assert not any(word == "ADD" for word, _ in instructions(path))


@EVERY
def test_final_stage_installs_nothing_and_runs_as_a_number(path: Path) -> None:
    every = instructions(path)
    final = every[[i for i, (word, _) in enumerate(every) if word == "FROM"][-1] :]
    words = [word for word, _ in final]
    commands = [rest for word, rest in final if word in ("CMD", "ENTRYPOINT")]

    assert not any("pip" in rest for word, rest in final if word == "RUN")
    assert [rest for word, rest in final if word == "USER"] == [UID]
    assert words.index("USER") > max(i for i, word in enumerate(words) if word in ("RUN", "COPY"))
    assert all(command.startswith('["') for command in commands)
    assert "PYTHONPATH=/app/shared:/app:" in dict(final)["ENV"]


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
    assert len(path.read_text().splitlines()) <= 40


def test_build_context_is_an_allow_list() -> None:
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert rules[0] == "*"
    assert [rule for rule in rules if rule.startswith("!")] == [
        "!shared/sidelinja_jobs", "!shared/jobs", "!services", "!db/init",
    ]  # fmt: skip
    assert "**/__pycache__" in rules


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.parent.name)
def test_locked_list_has_hashes_and_no_address(path: Path) -> None:
    text = path.read_text()
    requirements = re.findall(r"^[a-z0-9].*?(?=^[a-z0-9]|\Z)", text, flags=re.MULTILINE | re.DOTALL)
    assert requirements
    assert all("==" in requirement and "--hash=sha256:" in requirement for requirement in requirements)
    assert not re.search(r"https?:|--index|--extra|--find-links|file:", text)


def test_every_service_with_a_dockerfile_has_a_locked_list() -> None:
    assert [path.parent for path in DOCKERFILES] == [path.parent for path in LOCKS]
