"""docs/openrouter.md says what the code does."""

import dataclasses
import re
from decimal import Decimal
from pathlib import Path

import pytest

from openrouter_client.settings import DEFAULT_MODEL, ClientSettings
from services.openrouter import blocks, payload, result
from services.openrouter.payload import AnalyzePayload, Hints
from services.openrouter.plan import token_bound
from services.openrouter.settings import AnalyzeSettings
from services.openrouter.wording import WORDING
from sidelinja_jobs import JobType, PermanentError
from tests.databases import ROOT
from tests.unit.analysis_support import FISH, Scripted, analysed, episode, good, sensible

DOC = (ROOT / "docs" / "openrouter.md").read_text(encoding="utf-8")
SERVICE = ROOT / "services" / "openrouter"
(READ_SECONDS,) = (field for field in dataclasses.fields(ClientSettings) if field.name == "read_seconds")
# What the page says of settings without a default of their own.
DEFAULTS = {
    "api_key": "none", "base_url": "OpenRouter", "model": DEFAULT_MODEL, "fallback_models": "none",
    "type_day_budget_usd": "none", "output_root": "not set",
}  # fmt: skip


def first_column(heading: str, table: int = 0) -> list[str]:
    """The names in backquotes in the first column of a table of the section."""
    section = re.split(r"\n###? ", DOC.split(f"## {heading}\n", 1)[1])[0]
    tables = re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE)
    return [name for line in tables[table].splitlines()[2:] for name in re.findall(r"`([^`]+)`", line.split("|")[1])]


def test_payload_fields_are_all_there() -> None:
    assert first_column("Analyse a transcript") == list(AnalyzePayload.__struct_fields__)
    assert all(f"`{name}`" in DOC for name in Hints.__struct_fields__)


def test_result_fields_are_all_there() -> None:
    made, _ = analysed(
        Scripted(good), FISH, episode_id=1, tema_id=2, corrects_job_id="6f1c9d3e-6f3c-4c43-9a53-0d7f4cde2a11"
    )

    assert {*made, "outputs"} == set(first_column("Read the result"))
    assert [name for name in {**made["quality"], **made["provenance"]} if f"`{name}`" not in DOC] == []
    for rows in ("chapters", "guests", "quotes"):
        assert [name for name in made[rows][0] if f"`{name}`" not in DOC] == []


def test_warnings_are_all_there() -> None:
    code = (SERVICE / "result.py").read_text()
    raised = re.findall(r'^        "(\w+)": ', code.split("warnings = {", 1)[1].split("}", 1)[0], re.MULTILINE)

    assert set(raised) == set(first_column("Read the result", table=1))


def test_settings_are_all_there_with_their_defaults() -> None:
    for kind, table in ((AnalyzeSettings, 0), (ClientSettings, 1)):
        fields = dataclasses.fields(kind)
        assert {field.metadata["env"] for field in fields} <= set(first_column("Settings", table))
        for field in fields:
            row = next(line for line in DOC.splitlines() if line.startswith(f"| `{field.metadata['env']}`"))
            told = row.rstrip("| ").rsplit("| ", 1)[1].strip("`")
            if field.name in DEFAULTS:
                assert told.startswith(DEFAULTS[field.name]), row
            else:
                is_number = isinstance(field.default, int | float | Decimal) and not isinstance(field.default, bool)
                assert told == (f"{field.default:g}" if is_number else str(field.default).lower()), row


def test_error_classes_are_all_there() -> None:
    files = [*SERVICE.glob("*.py"), *(ROOT / "shared" / "openrouter_client").glob("*.py")]
    raised = {name for file in files for name in re.findall(r'error_class\s*=\s*"(\w+)"', file.read_text())}

    assert len(raised) > 8
    assert [name for name in raised if f"`{name}`" not in DOC] == []


def test_error_classes_that_it_names_are_those_of_the_code() -> None:
    folders = (SERVICE, ROOT / "shared" / "openrouter_client", ROOT / "shared" / "sidelinja_jobs")
    code = "\n".join(file.read_text() for folder in folders for file in folder.glob("*.py"))
    named = re.findall(r"`([a-z_]+)`", DOC.split("## When it goes wrong\n", 1)[1].split("\n### ", 1)[0])

    assert len(named) > 20
    assert [name for name in named if f'"{name}"' not in code] == []


@pytest.mark.parametrize(
    "words",
    [
        f"`title` | at most {result.TITLE} characters",
        f"`summary_short` | at most {result.SHORT} characters",
        f"at most {payload.MOST_SEGMENTS:,} with {payload.MOST_LETTERS // 1_000_000} million characters",
        f"blocks of {blocks.LEAST_SECONDS:.0f} to {blocks.MOST_SECONDS:.0f} seconds",
        f"the longest silence ({READ_SECONDS.metadata['bounds'][1]} at most)",
    ],
)
def test_limits_are_those_of_the_code(words: str) -> None:
    assert words in " ".join(DOC.split())


def test_what_it_says_of_three_hours_is_so(samples: Path) -> None:
    """Of the context that a long transcript needs, and how much it is asked in small ones."""
    transcript = episode(samples, "nb", hours=3)
    assert "three hours of talk are about 85,000 tokens at most" in " ".join(DOC.split())
    assert 80_000 < token_bound(transcript.text) < 90_000

    said = "makes about thirty calls of three hours, and under 5,200 a long transcript does not fit"
    assert said in " ".join(DOC.split())
    model = Scripted(sensible, context_tokens=8192)
    analysed(model, transcript)
    assert 25 <= len(model.questions) <= 35
    analysed(Scripted(sensible, context_tokens=5200), transcript)
    with pytest.raises(PermanentError, match="OPENROUTER_CONTEXT_TOKENS"):
        analysed(Scripted(sensible, context_tokens=5000), transcript)


def test_the_job_type_and_the_prompts_are_the_documented_ones() -> None:
    assert f"# Analysis: `{JobType.load(SERVICE).name}`" in DOC
    assert f"LANGUAGE.{WORDING.version}.md" in DOC
