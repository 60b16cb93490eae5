"""docs/admin.md and docs/admin-jobs.md say what the code does: settings, commands, files, figures."""

import dataclasses
import re

import pytest

from services.admin.access import attempts, passwords
from services.admin.access.commands import account
from services.admin.pages import job_bulk, job_filter, job_line, job_list, job_source, transcripts
from services.admin.server import GRACE_SECONDS, HEALTH_SECONDS
from services.admin.settings import AdminSettings
from sidelinja_jobs.settings import DatabaseSettings
from tests.databases import ROOT

PAGE = (ROOT / "docs" / "admin.md").read_text()
JOBS_PAGE = (ROOT / "docs" / "admin-jobs.md").read_text()
SHARED = {field.metadata["env"] for field in dataclasses.fields(DatabaseSettings)} | {
    "HEALTH_FILE", "LOG_FORMAT", "LOG_LEVEL", "METRICS_HOST", "METRICS_PORT",
}  # fmt: skip


def test_every_setting_is_told_with_its_default() -> None:
    table = PAGE[PAGE.index("## Settings") : PAGE.index("## Behind a proxy")]
    rows = {line.split("`")[1]: line for line in table.splitlines() if line.startswith("| `")}
    fields = {field.metadata["env"]: field.default for field in dataclasses.fields(AdminSettings)}

    assert rows.keys() == fields.keys() - SHARED
    for name, row in rows.items():
        told = row.strip("| ").rpartition("|")[2].strip().strip("`")
        default = fields[name]
        shown = "none" if default is None else "empty" if default == "" else str(default).removesuffix(".0")
        assert told == shown, name
    assert all(f"`{name}`" in PAGE for name in SHARED)


def test_the_commands_that_are_told_are_there() -> None:
    told = set(re.findall(r"jobs account ([a-z]+)", PAGE))

    assert told
    assert told <= set(account.commands)


@pytest.mark.parametrize(
    "figure",
    [
        f"N 2^{passwords.LOG2_N}, r {passwords.R}, p {passwords.P}",
        f"after {'five' if attempts.FREE == 5 else attempts.FREE} failures",
        f"wait {attempts.FIRST_WAIT_SECONDS:g} s",
        f"up to {attempts.LONGEST_WAIT_SECONDS / 60:g} minutes",
        f"every {HEALTH_SECONDS:g} s",
        f"requests within {GRACE_SECONDS} s",
    ],
)
def test_the_figures_are_those_of_the_code(figure: str) -> None:
    assert figure.lower() in PAGE.lower()


@pytest.mark.parametrize(
    "figure",
    [
        f"first {['no', 'one', 'two', 'three', 'four'][job_filter.SHORTEST_PREFIX]} characters",
        f"{job_list.SHOWN_JOBS} to a page",
        f"newest {job_source.SCANNED_ROWS:,} jobs ({job_source.SEARCHED_ROWS:,} of them",
        f"and {job_source.SEARCHED_BYTES // 10**6} MB of stored payloads",
        f"up to {job_source.SCANNED_ROWS:,} waiting ones",
        f"batches of {job_bulk.BATCH}",
        f"longer than {job_bulk.REQUEST_SECONDS:g} seconds",
        f"once a {'twentieth' if job_line.LEAST_SHARE == 1 / 20 else job_line.LEAST_SHARE} is done",
        f"for {'ten' if job_line.STILL_SECONDS == 600 else job_line.STILL_SECONDS} minutes",
        f"lines, {transcripts.EDITED_LINES} at a time",
    ],
)
def test_the_figures_of_the_job_pages_are_those_of_the_code(figure: str) -> None:
    assert figure in " ".join(JOBS_PAGE.split())
