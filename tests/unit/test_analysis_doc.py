"""docs/openrouter.md says what the code does."""

import dataclasses
import re

from openrouter_client.settings import ClientSettings
from services.openrouter.payload import AnalyzePayload, Hints
from services.openrouter.settings import AnalyzeSettings
from services.openrouter.wording import WORDING
from sidelinja_jobs import JobType
from tests.databases import ROOT
from tests.unit.analysis_support import Scripted, analysed
from tests.unit.test_analysis_result import FISH, good

DOC = (ROOT / "docs" / "openrouter.md").read_text(encoding="utf-8")
SERVICE = ROOT / "services" / "openrouter"


def first_column(heading: str, table: int = 0) -> list[str]:
    """The names in backquotes in the first column of a table of the section."""
    section = re.split(r"\n###? ", DOC.split(f"## {heading}\n", 1)[1])[0]
    tables = re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE)
    return [name for line in tables[table].splitlines()[2:] for name in re.findall(r"`([^`]+)`", line.split("|")[1])]


def test_payload_fields_are_all_there() -> None:
    assert first_column("Analyse a transcript") == list(AnalyzePayload.__struct_fields__)
    assert all(f"`{name}`" in DOC for name in Hints.__struct_fields__)


def test_result_fields_are_all_there() -> None:
    result, _ = analysed(
        Scripted(good), FISH, episode_id=1, tema_id=2, corrects_job_id="6f1c9d3e-6f3c-4c43-9a53-0d7f4cde2a11"
    )

    assert {*result, "outputs"} == set(first_column("Read the result"))
    assert [name for name in {**result["quality"], **result["provenance"]} if f"`{name}`" not in DOC] == []
    for rows in ("chapters", "guests", "quotes"):
        assert [name for name in result[rows][0] if f"`{name}`" not in DOC] == []


def test_warnings_are_all_there() -> None:
    code = (SERVICE / "result.py").read_text()
    raised = re.findall(r'^        "(\w+)": ', code.split("warnings = {", 1)[1].split("}", 1)[0], re.MULTILINE)

    assert set(raised) == set(first_column("Read the result", table=1))


def test_settings_are_all_there_with_their_defaults() -> None:
    for kind, table in ((AnalyzeSettings, 0), (ClientSettings, 1)):
        fields = dataclasses.fields(kind)
        assert {field.metadata["env"] for field in fields} <= set(first_column("Settings", table))
        for field in fields:
            if isinstance(field.default, int | float) and not isinstance(field.default, bool):
                row = next(line for line in DOC.splitlines() if line.startswith(f"| `{field.metadata['env']}`"))
                assert row.rstrip("| ").endswith(f"{field.default:g}"), row


def test_error_classes_are_all_there() -> None:
    files = [*SERVICE.glob("*.py"), *(ROOT / "shared" / "openrouter_client").glob("*.py")]
    raised = {name for file in files for name in re.findall(r'error_class\s*=\s*"(\w+)"', file.read_text())}

    assert len(raised) > 8
    assert [name for name in raised if f"`{name}`" not in DOC] == []


def test_the_job_type_and_the_prompts_are_the_documented_ones() -> None:
    assert f"# Analysis: `{JobType.load(SERVICE).name}`" in DOC
    assert f"LANGUAGE.{WORDING.version}.md" in DOC
