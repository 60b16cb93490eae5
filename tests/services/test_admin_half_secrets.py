"""Texts are cut in many places before anybody looks for secrets in them: no half secret is shown anywhere."""

from uuid import UUID

import pytest

from sidelinja_jobs.redaction import MASK
from tests.databases import Database
from tests.services.admin_site import AdminSite
from tests.services.api_client import api_client

PASSWORD = "hunter2"
# An address every hundred characters, such that a cut at any multiple of a hundred lies within its password.
SECRETS = "x" * 49 + f" https://me:{PASSWORD * 12}@nor" * 400


@pytest.fixture
def secretive(admin_site: AdminSite, database: Database) -> AdminSite:
    """A site whose jobs, pauses and workers say nothing but secrets."""
    database.rows("insert into worker (worker_id, job_type, version, host, pid) values ('w1', 'test_job', '1', 'h', 1)")
    database.enqueue("test_job", status="running", attempts=1, progress=0.5, progress_note=SECRETS, worker_id="w1")
    failed = database.enqueue(
        "test_job", payload={"path": SECRETS}, status="error", error_msg=SECRETS, error_class="bad", attempts=3,
        completed_at="2026-11-29 10:01+00",
    )  # fmt: skip
    database.rows(
        "insert into job_attempt (job_id, attempt, outcome, charged, error_class, error_msg, traceback)"
        " values (%s, 1, 'failed', true, 'bad', left(%s, 8000), left(%s, 32000))", failed, SECRETS, SECRETS,
    )  # fmt: skip
    database.rows("select pause_job_type('test_job', null, %s)", SECRETS)
    return admin_site


def test_no_page_shows_half_a_secret(secretive: AdminSite, database: Database) -> None:
    jobs: list[UUID] = [row["id"] for row in database.rows("select id from job_queue")]
    paths = ["/", "/jobs", "/errors", "/workers", "/audit", "/jobs/export.csv", "/feeds/failed.atom"]

    for path in [*paths, *(f"/jobs/{job}" for job in jobs)]:
        page = secretive.operator.get(path).raise_for_status().text
        assert MASK in page, path
        assert PASSWORD not in page, path


def test_no_answer_of_the_api_tells_half_a_secret(secretive: AdminSite, database: Database) -> None:
    jobs: list[UUID] = [row["id"] for row in database.rows("select id from job_queue")]

    with api_client(secretive) as api:
        for path in ("/jobs", "/job-types", *(f"/jobs/{job}" for job in jobs)):
            answer = api.get(path).raise_for_status().text
            assert MASK in answer, path
            assert PASSWORD not in answer, path


def test_no_open_page_hears_half_a_secret(secretive: AdminSite) -> None:
    heard = ""
    with secretive.operator.stream("GET", "/live") as stream:
        for piece in stream.iter_text():
            heard += piece
            if "progress" in heard and heard.endswith("\n\n"):
                break

    assert MASK in heard
    assert PASSWORD not in heard
