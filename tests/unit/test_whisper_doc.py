"""docs/whisper.md says what the code does."""

import dataclasses
import re

from services.whisper.messages import UNIT_NOTES, DecodeCounts, UnitResult
from services.whisper.model import ModelFolder
from services.whisper.payload import WhisperPayload
from services.whisper.settings import WhisperSettings
from services.whisper.transcript import Origin, Voice, build_conversation, build_transcript
from services.whisper.watch import WatchSettings
from sidelinja_jobs import JobType
from tests.databases import ROOT

DOC = (ROOT / "docs" / "whisper.md").read_text()


def first_column(heading: str, table: int = 0) -> set[str]:
    """The names in backquotes in the first column of a table of the section."""
    section = DOC.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    tables = re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE)
    return {name for line in tables[table].splitlines()[2:] for name in re.findall(r"`([^`]+)`", line.split("|")[1])}


def test_payload_fields_are_all_there() -> None:
    assert set(WhisperPayload.__struct_fields__) == first_column("Transcribe a file")


def test_settings_are_all_there() -> None:
    assert {field.metadata["env"] for field in dataclasses.fields(WhisperSettings)} == first_column("Settings")


def test_settings_of_the_watch_are_all_there() -> None:
    found = {field.metadata["env"] for field in dataclasses.fields(WatchSettings)}
    assert found - {"MEDIA_ROOT"} == first_column("Watch a folder")


def test_result_fields_and_flags_are_all_there() -> None:
    silent = UnitResult(0, 0, 100, True, 0, None, None, [], DecodeCounts(10, 9, 9.0), {}, list(UNIT_NOTES))
    heard = dataclasses.replace(silent, segments=[{"start": 0.0, "end": 1.0, "text": "Hei."}])
    model = ModelFolder("base", ROOT, "0" * 64)
    origin = Origin("a", "b", 1, model, "int8", "cpu", {}, "c", True, {"episode_id": "ep042", "tema_id": 7})
    transcript = build_transcript([silent], origin)
    conversation = build_conversation(
        [Voice("Kari", "a", "b", 1, [silent]), Voice("Ola", "a", "b", 1, [heard])], origin
    )

    fields = {*transcript, *conversation, "outputs", "output_root", "timing", "reused", "show"}
    assert fields - {"text"} == first_column("Read the result")
    assert {*transcript["flags"], *conversation["flags"]} == first_column("Read the result", table=1)


def test_error_classes_are_all_there() -> None:
    code = "\n".join(file.read_text() for file in (ROOT / "services" / "whisper").glob("*.py"))
    raised = set(re.findall(r'error_class\s*=\s*"(\w+)"', code))
    raised |= set(re.findall(r'_refuse\(root, path, "(\w+)"', code))

    assert len(raised) > 10
    assert all(f"`{name}`" in DOC for name in raised)


def test_job_type_is_the_documented_one() -> None:
    rules = JobType.load(ROOT / "services" / "whisper")

    assert f"# Transcription: `{rules.name}`" in DOC
    assert rules.drain_seconds == 0
    assert rules.follow_ups == ["openrouter_analyze"]
