"""The worker as a process, on a real database, with the real model."""

import json

import pytest

from tests.services.whisper_support import JFK, base_model, read_aloud, transcript_of, words_of
from tests.services.whisper_worker import Whisper

IDS = {"episode_id": "ep-42", "tema_id": 7}  # of the surrounding system
pytestmark = [pytest.mark.model, pytest.mark.timeout(180)]


def test_job_leaves_transcript_row_and_files_beside_the_audio(whisper: Whisper) -> None:
    whisper.add("jfk.mp3", "2026/épisode 42.mp3")
    worker = whisper.start()

    job = whisper.wait(whisper.enqueue("2026/épisode 42.mp3", language="en", word_timestamps=True, analyze=True, **IDS))

    result = job["result"]
    assert " ".join(words_of(result["text"])).endswith(JFK)
    assert (result["schema"], result["language"], result["language_source"]) == (1, "en", "forced")
    assert result["duration"] == pytest.approx(11.0, abs=0.05)
    assert {name: result[name] for name in IDS} == IDS
    assert result["model"]["sha256"] == base_model().sha256
    assert result["flags"] == ["trial_model"]
    assert "37 %" in result["notes"][0]
    assert result["output_root"] == "media"
    assert set(result["outputs"]) == {"vtt", "srt", "txt", "json", "podcast_json"}
    assert result["reused"] is False
    assert not any("words" in segment for segment in result["segments"])
    assert result["timing"]["units"] == 1
    written = json.loads((whisper.media / result["outputs"]["json"]).read_text())
    assert written["text"] == result["text"]
    assert written["segments"][0]["words"][0]["word"].strip() == "And"
    names = {file.name for file in (whisper.media / "2026").iterdir()}
    ends = (".vtt", ".srt", ".txt", ".transcript.json", ".podcast.json")
    assert names == {"épisode 42.mp3"} | {f"épisode 42.en{end}" for end in ends}
    follow_up = whisper.database.row("select * from job_queue where job_type = 'openrouter_analyze'")
    assert follow_up["payload"] == {"transcript_job_id": str(job["id"]), **IDS}
    assert follow_up["parent_id"] == job["id"]
    assert worker.log_events("model loaded")


def test_bad_input_ends_in_error_and_the_next_job_is_taken(whisper: Whisper) -> None:
    whisper.add("jfk.mp3", "jfk.mp3")
    whisper.add("edge/text.mp3", "text.mp3")
    (whisper.media / "link.mp3").symlink_to("/etc/hostname")
    whisper.start()
    expected = {
        whisper.enqueue("missing.mp3"): "not_found",
        whisper.enqueue("../../etc/hostname"): "outside_root",
        whisper.enqueue("link.mp3"): "outside_root",
        whisper.enqueue("."): "not_a_file",
        whisper.enqueue("text.mp3"): "not_audio",
        whisper.enqueue("jfk.mp3", volume=11): "bad_payload",
        whisper.enqueue("jfk.mp3", language="xx"): "bad_payload",
    }
    good = whisper.enqueue("jfk.mp3", language="en", outputs=[])

    for job_id, error_class in expected.items():
        job = whisper.wait(job_id, "error")
        assert job["error_class"] == error_class, job["error_msg"]
        assert job["attempts"] == 1
    assert whisper.wait(good)["result"]["outputs"] == {}


def test_killed_job_goes_on_after_its_finished_units_with_the_same_text(whisper: Whisper) -> None:
    whisper.make_impatient()
    whisper.add("ljspeech-2min.mp3", "episode.mp3")
    first = whisper.start()
    job_id = whisper.enqueue("episode.mp3", language="en")
    whisper.wait_for_units(job_id, 3)
    engines = first.children()

    first.kill()
    whisper.start()
    result = whisper.wait(job_id)["result"]

    whole = read_aloud(samples=whisper.samples)
    assert engines
    assert not any(process.is_running() and process.status() != "zombie" for process in engines)
    assert result["timing"]["resumed_units"] >= 3
    assert result["timing"]["units"] == len(whole)
    assert result["segments"] == transcript_of(whole)["segments"]


def test_cancelled_job_leaves_no_file_and_the_worker_takes_the_next(whisper: Whisper) -> None:
    whisper.add("ljspeech-2min.mp3", "2026/episode.mp3")
    whisper.add("jfk.mp3", "jfk.mp3")
    whisper.start(UNIT_SECONDS="10")
    job_id = whisper.enqueue("2026/episode.mp3", language="en", analyze=True)
    whisper.wait_for_units(job_id, 1)

    whisper.database.rows("select cancel_job(%s, 'no need')", job_id)
    job = whisper.wait(job_id, "error")
    whisper.wait(whisper.enqueue("jfk.mp3", language="en", outputs=[]))

    assert (job["error_class"], job["attempts"], job["result"]) == ("cancelled", 0, None)
    assert [file.name for file in (whisper.media / "2026").iterdir()] == ["episode.mp3"]
    assert whisper.database.rows("select 1 from job_queue where job_type = 'openrouter_analyze'") == []


def test_finished_units_are_not_used_for_another_file_of_that_name(whisper: Whisper) -> None:
    whisper.make_impatient()
    whisper.add("ljspeech-2min.mp3", "episode.mp3")
    first = whisper.start(UNIT_SECONDS="10")
    job_id = whisper.enqueue("episode.mp3", language="en")
    whisper.wait_for_units(job_id, 1)
    first.kill()
    whisper.add("jfk.mp3", "episode.mp3")

    whisper.start()
    result = whisper.wait(job_id)["result"]

    assert " ".join(words_of(result["text"])).endswith(JFK)
    assert result["timing"]["resumed_units"] == 0
    assert result["timing"]["units"] == 1


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"WHISPER_MODEL": "large"}, "no such folder"),
        ({"MEDIA_ROOT": "/none/such"}, "MEDIA_ROOT"),
        ({"UNIT_SECONDS": "3", "WHISPER_COMPUTE_TYPE": "int4"}, "UNIT_SECONDS"),
    ],
)
def test_worker_that_cannot_work_says_what_to_set(whisper: Whisper, environ: dict[str, str], expected: str) -> None:
    worker = whisper.start(ready=False, **environ)

    assert worker.wait(30) == 78
    assert expected in worker.log_events("cannot start")[0]["problem"]
