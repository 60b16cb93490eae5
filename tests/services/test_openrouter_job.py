"""openrouter_analyze by a real worker on a real database, against the stand-in of OpenRouter."""

import json
import resource
import threading
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from services.openrouter.transcript import Transcript
from tests.databases import Database
from tests.openrouter_standin import ChatCall, StandIn
from tests.services.openrouter_analyst import analysis, analyst
from tests.services.openrouter_jobs import add_transcription, enqueue, error_of, peak_rss_mb, result_of
from tests.services.openrouter_service import JOB_TYPE, SENTENCES, OpenrouterService
from tests.unit.analysis_support import Scripted, analysed, empty_answer, transcripts
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcesses

IDLE_RSS_MB = 60


@pytest.fixture
def service(database: Database, worker_process: WorkerProcesses, standin: StandIn) -> OpenrouterService:
    return OpenrouterService(database, worker_process, standin)


def test_a_transcription_becomes_metadata_and_files(service: OpenrouterService, tmp_path: Path) -> None:
    outputs = tmp_path / "outputs"
    outputs.mkdir()
    worker = service.start(OUTPUT_ROOT=str(outputs))
    assert peak_rss_mb(worker) < IDLE_RSS_MB
    transcription = add_transcription(service.database)

    job_id = enqueue(
        service, transcript_job_id=str(transcription), outputs=["chapters", "shownotes"], episode_id="ep042", tema_id=7,
        hints={"show_title": "Lyd og bilde"},
    )  # fmt: skip
    result = result_of(service, job_id)

    assert (result["language"], result["title"]) == ("nb", "Fergene som ikke kommer")
    assert (result["episode_id"], result["tema_id"]) == ("ep042", 7)
    assert [(chapter["start_s"], chapter["end_s"]) for chapter in result["chapters"]] == [(0.0, 90.0), (90.0, 182.0)]
    assert result["quotes"][0]["text"] in SENTENCES[0]
    assert result["transcript"]["job_id"] == str(transcription)
    assert result["quality"]["warnings"] == []
    assert result["outputs"] == {
        "chapters": "2026/ep042.chapters.json", "shownotes": "2026/ep042.shownotes.md",
    }  # fmt: skip
    chapters = json.loads((outputs / "2026" / "ep042.chapters.json").read_text())
    assert chapters["version"] == "1.2.0"
    assert chapters["podcastName"] == "Lyd og bilde"
    assert [chapter["startTime"] for chapter in chapters["chapters"]] == [0.0, 90.0]
    assert (outputs / "2026" / "ep042.shownotes.md").read_text() == result["shownotes_md"]
    assert sorted(path.name for path in (outputs / "2026").iterdir()) == ["ep042.chapters.json", "ep042.shownotes.md"]
    provenance = result["provenance"]
    assert provenance["plan"] == "single"
    assert provenance["cost_usd"] == f"{service.standin.billed_usd:f}"
    assert service.standin.contract_problems == []


def test_a_transcription_that_is_not_there_yet_is_waited_for_at_no_cost(service: OpenrouterService) -> None:
    service.start()
    running = enqueue(service, transcript_job_id=str(add_transcription(service.database, "running")))
    failed = enqueue(service, transcript_job_id=str(add_transcription(service.database, "error")))
    missing = enqueue(service, transcript_job_id=str(uuid4()))
    silent = enqueue(service, transcript_job_id=str(add_transcription(service.database, segments=[])))
    other = enqueue(service, transcript_job_id=str(failed))

    waiting = service.wait_until_settled(running)[running]
    assert (waiting.job["status"], waiting.job["attempts"], waiting.job["postponements"]) == ("pending", 0, 1)
    assert "not completed yet" in waiting.attempts[0]["error_msg"]
    assert {error_of(service, job_id)[0] for job_id in (failed, missing, other)} == {"no_transcript"}
    assert error_of(service, silent)[0] == "empty_transcript"
    assert service.standin.billed_count == 0


def test_a_corrected_transcript_is_analysed_as_it_was_corrected(service: OpenrouterService) -> None:
    service.start()
    corrected = uuid4()
    segments = [{"start": 61.5 * n, "end": 61.5 * n + 60, "text": s} for n, s in enumerate(SENTENCES)]

    result = result_of(service, enqueue(service, segments=segments, duration=370, corrects_job_id=str(corrected)))

    assert result["corrects_job_id"] == str(corrected)
    assert {chapter["start_s"] for chapter in result["chapters"]} <= {segment["start"] for segment in segments}
    assert result["transcript"]["job_id"] is None


def test_bare_text_has_quotes_and_no_chapters(service: OpenrouterService) -> None:
    service.start()

    result = result_of(service, enqueue(service, text=" ".join(SENTENCES)))

    assert result["chapters"] == []
    assert (result["quotes"][0]["start_s"], result["quotes"][0]["match"]) == (None, "exact")
    assert {"no_times"} <= set(result["quality"]["warnings"])


def test_a_payload_that_does_not_fit_ends_at_once(service: OpenrouterService) -> None:
    service.start()

    error_class, message = error_of(service, enqueue(service, text="Hei.", segments=[], colour="red"))

    assert error_class == "bad_payload"
    assert "colour" in message


def test_files_that_cannot_be_written_are_told_before_anything_is_paid(
    service: OpenrouterService, tmp_path: Path
) -> None:
    outputs = tmp_path / "outputs"
    outputs.mkdir()
    (tmp_path / "elsewhere").mkdir()
    (outputs / "link").symlink_to(tmp_path / "elsewhere")
    service.start(OUTPUT_ROOT=str(outputs))
    text, wanted = " ".join(SENTENCES), ["shownotes"]

    out = [enqueue(service, text=text, outputs=wanted, output_path=path) for path in ("../up", "/etc/up", "a/../../b")]
    long = enqueue(service, text=text, outputs=wanted, output_path="a" * 250)
    assert {error_of(service, job_id)[0] for job_id in out} == {"outside_root"}
    assert error_of(service, long)[0] == "name_too_long"
    linked = enqueue(service, text=text, outputs=wanted, output_path="link/notes")
    assert error_of(service, linked)[0] == "not_writable"
    outputs.rename(tmp_path / "away")
    put_off = enqueue(service, text=text, outputs=wanted, output_path="notes")
    wait_until(lambda: service.database.job(put_off)["postponements"] == 1, what="the job to be put off")
    assert service.database.job(put_off)["attempts"] == 0
    assert service.standin.chats == []
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_without_an_output_folder_files_are_refused_before_anything_is_paid(service: OpenrouterService) -> None:
    service.start()

    error_class, message = error_of(service, enqueue(service, text=" ".join(SENTENCES), outputs=["shownotes"]))

    assert error_class == "not_writable"
    assert "OUTPUT_ROOT" in message
    assert service.standin.billed_count == 0


def test_a_full_disk_is_tried_again_with_the_answer_that_was_paid_for(
    service: OpenrouterService, tmp_path: Path
) -> None:
    outputs = tmp_path / "outputs"
    outputs.mkdir()
    worker = service.start(OUTPUT_ROOT=str(outputs), LOG_LEVEL="error")
    before = resource.prlimit(worker.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(worker.pid, resource.RLIMIT_FSIZE, (100, before[1]))
    job_id = enqueue(service, text=" ".join(SENTENCES), outputs=["shownotes"], output_path="ep")

    failed = service.wait_until_settled(job_id)[job_id]
    assert (failed.job["status"], failed.job["error_class"]) == ("retry", "disk_full")
    assert list(outputs.iterdir()) == []

    resource.prlimit(worker.pid, resource.RLIMIT_FSIZE, before)
    service.run_now(job_id)
    wait_until(lambda: service.database.job(job_id)["status"] == "completed", 30)

    assert service.database.job(job_id)["result"]["provenance"]["reused_answers"] == 1
    assert service.standin.billed_count == 1
    assert (outputs / "ep.shownotes.md").exists()


def test_without_a_key_the_worker_runs_and_its_type_is_paused_until_there_is_one(service: OpenrouterService) -> None:
    worker = service.start(OPENROUTER_API_KEY="")
    paused = service.wait_until_paused()
    job_id = service.enqueue("uten nøkkel")

    assert "OPENROUTER_API_KEY" in paused["pause_reason"]
    assert worker.is_alive()
    wait_until(worker.health_file.exists, what="the worker to be well")
    job = service.database.job(job_id)
    assert (job["status"], job["attempts"]) == ("pending", 0)
    assert service.standin.chats == []

    worker.terminate()
    assert worker.wait() == 0
    service.start()
    assert result_of(service, job_id)["title"] == "Fergene som ikke kommer"


def test_progress_says_the_stage(service: OpenrouterService) -> None:
    goes_on = threading.Event()

    def slowly(call: ChatCall) -> str:
        goes_on.wait(20)
        return analyst(call)

    service.standin.answers(slowly)
    service.database.rows("update job_type set lease_seconds = 4 where name = %s", JOB_TYPE)
    service.start(OPENROUTER_READ_SECONDS="30")
    job_id = service.enqueue("sakte")

    try:
        stage = "asking about the whole transcript, 6 blocks in one call"
        wait_until(lambda: service.database.job(job_id)["progress_note"] == stage, 15, what="the stage of the model")
    finally:
        goes_on.set()
    assert service.wait_until_settled(job_id)[job_id].job["status"] == "completed"


def test_any_letters_go_through_the_worker_into_the_database(service: OpenrouterService) -> None:
    """What PostgreSQL refuses is kept out, what is merely rare goes in and comes back."""
    odd = "Smør\u200b og \u202eøl\u202c 🧀👩‍👩‍👧 e\u0301 \ufdd0 \U0010ffff \u0001 „hei“ \u2028 ja, det sier vi igjen."

    def say(call: ChatCall) -> str:
        text = f"{odd} \x00 \ud83d"
        quotes = [{"block": "B1", "text": odd}]
        return json.dumps({**analysis(call), "title": text, "summary_long": text, "quotes": quotes})

    service.standin.answers(say)
    service.start()
    result = result_of(service, enqueue(service, segments=[{"start": 0, "end": 99, "text": odd}]))

    assert result["quotes"][0]["text"] == odd
    assert "\x00" not in result["title"]
    assert service.database.value("select count(*) from job_queue where result is not null") == 1


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    transcripts(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), max_size=200)), st.text()
)
def test_a_result_of_any_letters_is_taken_by_postgresql(database: Database, transcript: Transcript, said: str) -> None:
    """The transcript as payloads may hold it, the answer as a model may say it: NUL and surrogates, too."""
    said += "\x00\ud83d\u0085\ufeff"
    quotes = [{"block": "B1", "text": transcript.text[:300]}]
    model = Scripted(lambda question: empty_answer(question, title=said + "a", summary_long=said + "a", quotes=quotes))

    result, _ = analysed(model, transcript)

    stored = database.value("select %s::jsonb", Jsonb(result))
    assert stored == result
