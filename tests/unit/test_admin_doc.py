"""docs/admin.md says what the code does: settings with their defaults, commands, files, figures."""

import dataclasses
import re

import pytest

from services.admin.access import attempts, passwords
from services.admin.access.commands import account
from services.admin.server import GRACE_SECONDS, HEALTH_SECONDS
from services.admin.settings import AdminSettings
from sidelinja_jobs.settings import DatabaseSettings
from tests.databases import ROOT

PAGE = (ROOT / "docs" / "admin.md").read_text()
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
