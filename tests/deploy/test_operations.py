"""docs/operations.md names only what there is: make targets, services, variables, roles, files."""

import re

import pytest

from sidelinja_jobs.logins import secret_folders
from tests.databases import ROOT
from tests.deploy.stack import JOB_TYPES, SERVICES, code_settings, interpolated

PAGE = (ROOT / "docs" / "operations.md").read_text()
CONTAINERS_MK = (ROOT / "containers.mk").read_text()
MAKEFILES = (ROOT / "Makefile").read_text() + CONTAINERS_MK
COMPOSES_OWN = {"COMPOSE_FILE"}
OF_A_SWARM = {"stack"}  # told in docs/scaling.md


def test_every_target_is_there_and_every_container_target_is_told() -> None:
    told = set(re.findall(r"`make ([a-z-]+)", PAGE))
    assert told <= targets(MAKEFILES)
    assert told >= targets(CONTAINERS_MK) - OF_A_SWARM


def targets(makefile: str) -> set[str]:
    return set(re.findall(r"^([a-z][a-z-]*):.*##", makefile, flags=re.MULTILINE))


def test_every_variable_is_there() -> None:
    told = set(re.findall(r"`([A-Z][A-Z]*_[A-Z_]+)(?:=[^`]*)?`", PAGE))
    assert told <= interpolated().keys() | code_settings().keys() | COMPOSES_OWN
    assert len(told) > 10


def test_every_variable_of_make_is_there() -> None:
    for line in re.findall(r"`make [a-z-]+ ([^`]*)`", PAGE):
        for name in re.findall(r"\b([A-Z]+)=", line):
            assert f"({name})" in MAKEFILES or f"{{{name}" in MAKEFILES or f'"$${name}"' in MAKEFILES, name


def test_every_service_and_role_is_there() -> None:
    assert set(re.findall(r"docker compose run (?:--\S+ )*([a-z]+)", PAGE)) <= SERVICES.keys()
    assert all(f"`{name}`" in PAGE for name in SERVICES)
    assert all(f"`{role}`" in PAGE for role in secret_folders(JOB_TYPES.values()))
    assert set(re.findall(r"\b(jobbko_[a-z]+)@", PAGE)) <= secret_folders([]).keys()


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)]+)\)", PAGE))
def test_every_link_leads_somewhere(target: str) -> None:
    file, _, anchor = target.partition("#")
    text = (ROOT / "docs" / file).read_text() if file else PAGE
    headings = [re.sub(r"[^a-z0-9 -]", "", line.lstrip("# ").lower()).replace(" ", "-") for line in text.splitlines()]
    assert not anchor or anchor in headings


@pytest.mark.parametrize("name", sorted(SERVICES.keys() - {"jobs", "add"}))  # which share a row
def test_networks_of_the_table_are_those_of_the_stack(name: str) -> None:
    (row,) = re.findall(rf"^\| `{name}` \|.*$", PAGE, flags=re.MULTILINE)

    assert set(re.findall(r"`(backend|egress|frontend)`", row)) == set(SERVICES[name].get("networks", []))
