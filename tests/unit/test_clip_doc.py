"""docs/research.md says what the code does."""

import dataclasses
import re
from datetime import UTC, datetime

import pytest

from openrouter_client.parts import MOST_PART_TOKENS
from services.research import cleaner, enrichment, grounding, handler
from services.research.cleaning_answer import MOST_CLIP_BYTES
from services.research.clip import make_clip
from services.research.line import LONGEST_LINE, MOST_LINES
from services.research.paste import Paste
from services.research.payload import MOST_HTML_BYTES, MOST_TEXT_BYTES, ClipPayload
from services.research.settings import ResearchSettings
from tests.databases import ROOT
from tests.unit.marked_pastes import all_pastes

MEGABYTE = 1_000_000
DOC = (ROOT / "docs" / "research.md").read_text(encoding="utf-8")


def first_column(heading: str, table: int = 0) -> set[str]:
    """The names in backquotes in the first column of a table of the section."""
    section = DOC.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    tables = re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE)
    return {name for line in tables[table].splitlines()[2:] for name in re.findall(r"`([^`]+)`", line.split("|")[1])}


def test_payload_fields_are_all_there() -> None:
    assert set(ClipPayload.__struct_fields__) == first_column("Clip something")


def test_settings_are_all_there_with_their_defaults() -> None:
    rows = re.findall(r"^\| `(CLEAN_\w+)` \| (\S+) \|", DOC, re.MULTILINE)

    assert rows == [(field.metadata["env"], f"{field.default:g}") for field in dataclasses.fields(ResearchSettings)]


@pytest.mark.parametrize(
    "words",
    [
        f"at most {MOST_TEXT_BYTES // MEGABYTE} MB; HTML or Markdown",
        f"at most {MOST_HTML_BYTES // MEGABYTE} MB; `text` is then",
        f"more than {MOST_LINES:,} lines",
        f"more than {LONGEST_LINE:,} characters",
        f"over {MOST_CLIP_BYTES // MEGABYTE} MB",
        f"comes back every hour, {handler._MOST_WAITS} times",
        f"said less than {cleaner._LEAST_SHARE:.0%}".replace("%", " %"),
        f"over {enrichment.MOST_SINGLE_TOKENS:,} tokens",
        f"parts of at most {MOST_PART_TOKENS:,}",
        f"over {grounding.LONGEST_QUOTE} characters",
        f"`spans` of at most {grounding.MOST_SPANS} places",
        f"all {len(all_pastes())} pastes of the corpus",
    ],
)
def test_limits_are_those_of_the_code(words: str) -> None:
    assert words in " ".join(DOC.split())


def test_result_fields_are_all_there() -> None:
    clip = make_clip(Paste("Et avsnitt.", pasted_at=datetime(2026, 8, 20, tzinfo=UTC)))

    assert first_column("Result") == {*clip, "tema_id", "clip_id", "episode_id", "note"}
    told = DOC.split("| `source` |", 1)[1].split("\n", 1)[0]
    assert set(re.findall(r"`(\w+)`", told)) == set(clip["source"])
    told = DOC.split("| `quality` |", 1)[1].split("\n", 1)[0]
    assert set(re.findall(r"`(\w+)`", told)) == set(clip["quality"])


def test_warnings_are_all_there_and_no_others() -> None:
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "services" / "research").glob("*.py"))
    of_cleaning = re.findall(r'warnings(?:\.append\(|=\[)"(\w+)"', code)
    with_reasons = re.findall(r'f"(\w+_\w+: )', code)
    of_model = re.findall(r'^        "(\w+)": ', code.split("warnings = {", 1)[1].split("}", 1)[0], re.MULTILINE)

    assert len(of_cleaning) > 3
    assert len(of_model) > 2
    found = {handler.NO_MODEL, *handler._WHY.values(), *of_cleaning, *with_reasons, *of_model}
    assert found == first_column("Result", 1)


def test_reasons_of_what_is_kept_apart_are_all_there() -> None:
    code = (ROOT / "services" / "research" / "grounding.py").read_text(encoding="utf-8")
    reasons = set(re.findall(r'"((?:quote|number|not|no)_\w+)"', code))

    assert reasons == first_column("What a model adds", 1)
