"""docs/research.md says what the code does."""

import dataclasses
import re
from datetime import UTC, datetime

from services.research.cleaner import Paste
from services.research.clip import make_clip
from services.research.payload import ClipPayload
from services.research.settings import ResearchSettings
from tests.databases import ROOT

DOC = (ROOT / "docs" / "research.md").read_text(encoding="utf-8")


def first_column(heading: str, table: int = 0) -> set[str]:
    """The names in backquotes in the first column of a table of the section."""
    section = DOC.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    tables = re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE)
    return {name for line in tables[table].splitlines()[2:] for name in re.findall(r"`([^`]+)`", line.split("|")[1])}


def test_payload_fields_are_all_there() -> None:
    assert set(ClipPayload.__struct_fields__) == first_column("Clip something")


def test_settings_are_all_there() -> None:
    assert {field.metadata["env"] for field in dataclasses.fields(ResearchSettings)} == first_column("Settings")


def test_result_fields_are_all_there() -> None:
    clip = make_clip(Paste("Et avsnitt.", pasted_at=datetime(2026, 8, 20, tzinfo=UTC)))

    assert first_column("Result") == {*clip, "tema_id", "clip_id", "episode_id", "note"}
    told = DOC.split("| `source` |", 1)[1].split("\n", 1)[0]
    assert set(re.findall(r"`(\w+)`", told)) == set(clip["source"])
    told = DOC.split("| `quality` |", 1)[1].split("\n", 1)[0]
    assert set(re.findall(r"`(\w+)`", told)) == set(clip["quality"])


def test_warnings_are_all_there() -> None:
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "services" / "research").glob("*.py"))

    assert all(f'"{name}' in sources for name in first_column("Result", 1))
