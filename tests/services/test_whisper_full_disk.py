"""A disk that is full when the transcript is written: told, tried again, and nothing is transcribed twice."""

import resource

import pytest

from tests.services.whisper_support import JFK, words_of
from tests.services.whisper_worker import Whisper

pytestmark = [pytest.mark.model, pytest.mark.timeout(180)]

ROOM_BYTES = 2000  # less than the transcript; the log at level error needs none


def test_full_disk_is_told_and_the_next_run_has_only_the_writing_to_do(whisper: Whisper) -> None:
    audio = whisper.add("jfk.mp3", "jfk.mp3")
    worker = whisper.start(LOG_LEVEL="error")
    before = resource.prlimit(worker.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(worker.pid, resource.RLIMIT_FSIZE, (ROOM_BYTES, before[1]))
    job_id = whisper.enqueue("jfk.mp3", language="en", word_timestamps=True, outputs=["txt", "json"])

    failed = whisper.wait(job_id, "retry")

    assert failed["error_class"] == "disk_full"
    assert "No room for the transcript" in failed["error_msg"]
    assert (failed["scheduled_for"] - failed["created_at"]).total_seconds() > 290
    assert {file.name for file in whisper.media.iterdir()} == {audio.name, "jfk.en.txt"}

    resource.prlimit(worker.pid, resource.RLIMIT_FSIZE, before)
    whisper.database.rows("update job_queue set scheduled_for = now()")
    result = whisper.wait(job_id)["result"]

    assert (result["timing"]["units"], result["timing"]["resumed_units"]) == (1, 1)
    assert " ".join(words_of(result["text"])).endswith(JFK)
    assert {file.name for file in whisper.media.iterdir()} == {audio.name, "jfk.en.txt", "jfk.en.transcript.json"}
