"""The payload of openrouter_analyze: one transcript, sound times, nothing unknown."""

from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest

from services.openrouter.payload import AnalyzePayload

SEGMENTS = [{"start": 0, "end": 2.5, "text": "Hei."}, {"start": 2.5, "end": 4, "text": "Ha det.", "speaker": "Kari"}]


def read(**fields: Any) -> AnalyzePayload:
    return msgspec.convert(fields, AnalyzePayload)


def test_each_of_the_three_sources_is_enough() -> None:
    job_id = uuid4()

    assert read(transcript_job_id=str(job_id)).transcript_job_id == job_id
    assert read(text="Hei og velkommen.").text == "Hei og velkommen."
    segments = read(segments=SEGMENTS, duration=4.0).segments
    assert segments is not None
    assert segments[1].speaker == "Kari"


def test_ids_corrections_and_limits_are_taken_as_they_are() -> None:
    corrected = uuid4()
    payload = read(text="Hei.", episode_id="ep042", tema_id=17, corrects_job_id=str(corrected), max_cost_usd=0.05)

    assert (payload.episode_id, payload.tema_id, payload.corrects_job_id) == ("ep042", 17, UUID(str(corrected)))
    assert payload.max_cost_usd == Decimal("0.05")


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({}, "expected one of transcript_job_id, segments and text, found none"),
        ({"text": "a", "segments": SEGMENTS}, "found segments and text"),
        ({"text": "a", "colour": "red"}, "unknown field `colour`"),
        ({"text": "a", "hints": {"sponsor": "x"}}, "unknown field `sponsor`"),
        ({"text": "  \n"}, "text is empty"),
        ({"segments": []}, "segments is empty"),
        ({"segments": [{"start": 0, "end": 1, "text": " "}]}, r"segments\[0\].text is empty"),
        ({"segments": [{"start": 2, "end": 2, "text": "a"}]}, "expected start before end"),
        ({"segments": [{"start": -1, "end": 2, "text": "a"}]}, ">= 0"),
        ({"segments": SEGMENTS[::-1]}, r"segments\[1\] starts at 0.0, before the one above it"),
        ({"segments": SEGMENTS, "duration": 2.9}, r"segments\[1\] ends at 4.0, after the audio's 2.9"),
        ({"segments": [{"start": i, "end": i + 1, "text": "a"} for i in range(20_001)]}, "20001 segments"),
        ({"text": "a" * 3_000_001}, "3000001 characters"),
        ({"text": "a", "duration": 3.0}, "duration goes with segments"),
        ({"transcript_job_id": str(uuid4()), "language": "nb"}, "language goes with segments or text"),
        ({"transcript_job_id": "ep042"}, "UUID"),
        ({"text": "a", "output_language": "de"}, "output_language"),
        ({"text": "a", "wants": ["poem"]}, "wants"),
        ({"text": "a", "wants": []}, "length >= 1"),
        ({"text": "a", "max_cost_usd": 0}, "expected more than 0"),
        ({"text": "a", "max_cost_usd": "NaN"}, "expected more than 0"),
        ({"text": "a", "wants": ["title"], "outputs": ["chapters"]}, "outputs has 'chapters', which wants does not"),
        ({"text": "a", "schema_version": 2}, "schema_version"),
    ],
)
def test_what_is_wrong_is_refused_and_named(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=problem):
        read(**fields)


def test_a_recognizer_s_last_segment_may_end_a_little_after_the_audio() -> None:
    assert read(segments=SEGMENTS, duration=3.2).duration == 3.2


def test_the_schema_for_producers_can_be_made() -> None:
    schema = msgspec.json.schema(AnalyzePayload)["$defs"]["AnalyzePayload"]

    assert set(schema["properties"]) == set(AnalyzePayload.__struct_fields__)
    assert schema["additionalProperties"] is False
