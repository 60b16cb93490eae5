"""The OpenAPI document: it says what there is, and what there is keeps to it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from services.admin.api.documentation import openapi
from services.admin.api.problems import KINDS
from services.admin.api.routes import OPERATIONS, routes
from tests.databases import ROOT
from tests.services.admin_crawl import invalid, look_at
from tests.services.admin_site import AdminSite, logged_in_page
from tests.services.api_client import make_token

# A rule that no schema can say (a type that nobody works, a year that the database does not take, 280.0 for a whole
# number, a cursor of another database) may refuse what fits the schema; every other operation takes whatever fits.
CONFIG = "".join(
    f"""
[[operations]]
include-name = "{name}"
checks.positive_data_acceptance.expected-statuses = ["2xx", 404, 409, 410, 422]
"""
    for name in (
        "POST /jobs",
        "POST /jobs/batch",
        "POST /jobs/{id}/priority",
        "POST /job-types/{name}/pause",
        "GET /events",
    )
)


def run_schemathesis(site: AdminSite, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """All checks against the running service, over a socket."""
    jobs = [site.database.enqueue() for _ in range(3)]
    site.database.rows(
        "update job_queue set status = 'completed', completed_at = now(), result = '{}' where id = %s", jobs[1]
    )
    site.database.rows(
        "update job_queue set status = 'error', completed_at = now(), error_class = 'boom' where id = %s", jobs[2]
    )
    (folder / "schemathesis.toml").write_text(CONFIG)
    environ = os.environ | {
        "JOBBKO_TEST_JOBS": ",".join(map(str, jobs)),
        "JOBBKO_TEST_EPOCH": site.database.value("select left(epoch::text, 8) from event_epoch"),
        "SCHEMATHESIS_HOOKS": "tests.services.schemathesis_hooks",
        "PYTHONPATH": str(ROOT),
    }
    command = [
        Path(sys.executable).with_name("schemathesis"), "--config-file", folder / "schemathesis.toml", "run",
        f"{site.url}/api/v1/openapi.json", "--header", f"Authorization: Bearer {make_token(site)}",
        "--exclude-path", "/events/stream", "--checks", "all", "--continue-on-failure", "--seed", "1",
        "--request-timeout", "20", "--no-color", "--workers", "2", "--suppress-health-check", "all", *options,
    ]  # fmt: skip
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=900)


def test_the_service_keeps_to_its_document(admin_site: AdminSite, tmp_path: Path) -> None:
    """Bounded: the values at the edges of each schema are for the long run."""
    ended = run_schemathesis(admin_site, tmp_path, "--phases", "fuzzing", "--max-examples", "8")

    assert ended.returncode == 0, ended.stdout[-8000:] + ended.stderr[-2000:]
    assert len(OPERATIONS) - 1 == int(re.findall(r"Tested: (\d+)", ended.stdout)[0]), ended.stdout


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_service_keeps_to_its_document_at_the_edges(admin_site: AdminSite, tmp_path: Path) -> None:
    ended = run_schemathesis(admin_site, tmp_path, "--phases", "coverage,fuzzing", "--max-examples", "200")

    assert ended.returncode == 0, ended.stdout[-8000:] + ended.stderr[-2000:]


def test_the_document_has_every_operation_with_its_problems() -> None:
    document = openapi(OPERATIONS)

    served = {route.path.replace(":path", "") for route in routes[0].routes} - {"/openapi.json", "/docs"}
    assert set(document["paths"]) == served == {operation.path for operation in OPERATIONS}
    for operation in OPERATIONS:
        described = document["paths"][operation.path][operation.method.lower()]
        assert described["operationId"] == operation.name
        statuses = {int(status) for status in described["responses"]}
        assert statuses == {operation.status, *operation.also} | {
            KINDS[code].status for code in operation.all_problems
        }, operation.name
    assert len({operation.name for operation in OPERATIONS}) == len(OPERATIONS)


def references(node: Any) -> set[str]:
    if isinstance(node, dict):
        found = {node["$ref"]} if "$ref" in node else set()
        return found.union(*(references(value) for value in node.values()))
    return set().union(*(references(value) for value in node)) if isinstance(node, list) else set()


def test_every_reference_of_the_document_leads_somewhere_and_every_schema_is_used() -> None:
    document = openapi(OPERATIONS)

    names = {reference.removeprefix("#/components/schemas/") for reference in references(document)}
    assert names == set(document["components"]["schemas"])


def test_document_and_manual_are_open_and_say_nothing_of_this_installation(admin_site: AdminSite) -> None:
    for path in ("openapi.json", "docs"):
        answer = httpx.get(f"{admin_site.url}/api/v1/{path}")
        assert answer.status_code == 200
        assert "test_job" not in answer.text
    assert json.loads(httpx.get(f"{admin_site.url}/api/v1/openapi.json").text)["openapi"] == "3.1.0"
    manual = httpx.get(f"{admin_site.url}/api/v1/docs").text
    ids = re.findall(r'\bid="([^"]+)"', manual)
    assert len(ids) == len(set(ids))
    assert {link for link in re.findall(r'href="#([^"]+)"', manual)} <= set(ids)
    assert "<script" not in manual
    assert all(f"{operation.method} {operation.path}" in manual for operation in OPERATIONS)


def test_the_manual_is_valid_and_can_be_read_by_everybody(browser: Any, admin_site: AdminSite, tmp_path: Path) -> None:
    with logged_in_page(browser, admin_site, account=None) as page:
        answer = page.goto("/api/v1/docs")
        (tmp_path / "manual.html").write_text(f"{answer.text()}<!-- /api/v1/docs -->")
        found = look_at(page, "/api/v1/docs", [(1280, "light"), (320, "dark")])

    assert found == []
    assert invalid(tmp_path) == []
