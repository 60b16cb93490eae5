"""Three hours of Norwegian, and answers in another language, by a real worker against the stand-in."""

import json
import re
from pathlib import Path
from uuid import UUID

import pytest

from tests.databases import Database
from tests.openrouter_standin import ChatCall, StandIn
from tests.services.openrouter_analyst import NORWEGIAN, analysis
from tests.services.openrouter_jobs import add_transcription, enqueue, peak_rss_mb, result_of
from tests.services.openrouter_service import OpenrouterService
from tests.unit.analysis_support import sentences
from tests.worker_processes import WorkerProcesses

ENGLISH = "In this episode they talk about why the ferries in the north are so often late, and what to do about it."
MOST_RSS_MB = 150
pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def service(database: Database, worker_process: WorkerProcesses, standin: StandIn) -> OpenrouterService:
    return OpenrouterService(database, worker_process, standin)


def test_an_answer_that_drifts_to_english_is_asked_for_once_more(service: OpenrouterService, samples: Path) -> None:
    drifts = [ENGLISH, NORWEGIAN]

    def say(call: ChatCall) -> str:
        words = drifts.pop(0)
        return json.dumps({**analysis(call), "summary_short": words, "summary_long": words}, ensure_ascii=False)

    service.standin.answers(say)
    service.start()
    lines = [segment.text for segment in sentences(samples, "nb", hours=0.1)]
    result = result_of(service, enqueue(service, text="\n".join(lines)))

    calls = service.standin.chats
    assert len(calls) == 2
    assert calls[0].raw != calls[1].raw
    assert "bokmål" in calls[1].body["messages"][-1]["content"].split("\n")[-1]
    assert (result["language"], result["summary_long"]) == ("nb", NORWEGIAN)
    assert result["quality"]["warnings"] == ["no_times"]
    assert result["provenance"]["calls"] == service.standin.billed_count == 2


def three_hours(database: Database, samples: Path) -> UUID:
    rows = [
        {"id": number, "start": segment.start, "end": segment.end, "text": segment.text}
        for number, segment in enumerate(sentences(samples, "nb", hours=3))
    ]
    return add_transcription(database, segments=rows, duration=rows[-1]["end"])


def test_three_hours_of_norwegian_are_one_call_in_little_memory(service: OpenrouterService, samples: Path) -> None:
    worker = service.start(OPENROUTER_READ_SECONDS="30")
    result = result_of(service, enqueue(service, transcript_job_id=str(three_hours(service.database, samples))))

    assert (result["language"], result["provenance"]["plan"], result["provenance"]["calls"]) == ("nb", "single", 1)
    assert result["transcript"]["duration_s"] == pytest.approx(10_800, abs=60)
    assert len(service.standin.chats) == service.standin.billed_count == 1
    assert peak_rss_mb(worker) < MOST_RSS_MB


def from_notes(call: ChatCall) -> str:
    """Of the chapters in the notes on parts, the first and the middle one; else what the analyst says."""
    answer, noted = analysis(call), re.findall(r"^  (B\d+): ", call.text, re.MULTILINE)
    if noted:
        chosen = dict.fromkeys([noted[0], noted[len(noted) // 2]])
        answer["chapters"] = [{"start_block": block, "title": f"Om {block}"} for block in chosen]
    return json.dumps(answer, ensure_ascii=False)


def test_three_hours_are_asked_in_parts_of_a_server_of_one_s_own(
    database: Database, worker_process: WorkerProcesses, samples: Path
) -> None:
    """A generic server of 16k tokens, no key: the parts together are the whole transcript."""
    with StandIn(is_generic=True, key="") as standin:
        service = OpenrouterService(database, worker_process, standin)
        standin.answers(from_notes)
        worker = service.start(
            OPENROUTER_API_KEY="", OPENROUTER_PROFILE="generic", OPENROUTER_MODEL=standin.models[0].id,
            OPENROUTER_CONTEXT_TOKENS="16384", OPENROUTER_READ_SECONDS="30",
        )  # fmt: skip
        transcription = three_hours(database, samples)
        result = result_of(service, enqueue(service, transcript_job_id=str(transcription)), within=100)

        said = [row["text"] for row in database.job(transcription)["result"]["segments"]]
        parts = [call for call in standin.chats if "summary" in (call.schema or {})["properties"]]
        asked = " ".join(call.body["messages"][1]["content"] for call in parts)

    assert result["provenance"]["plan"] == "map_reduce"
    assert (result["provenance"]["cost_usd"], result["provenance"]["cost_source"]) == ("0", "local")
    assert len(parts) > 4
    assert [sentence for sentence in said if " ".join(sentence.split()) not in asked] == []
    assert len(result["chapters"]) >= 2
    assert len({quote["start_s"] for quote in result["quotes"]}) == len(result["quotes"]) > 4
    assert peak_rss_mb(worker) < MOST_RSS_MB, peak_rss_mb(worker)
