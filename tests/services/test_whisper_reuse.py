"""The same audio with the same settings is transcribed once, unless the job insists."""

import json

import pytest

from tests.services.whisper_support import JFK, words_of
from tests.services.whisper_worker import Whisper

pytestmark = [pytest.mark.model, pytest.mark.timeout(180)]


def test_a_show_gives_its_episodes_their_language_and_names(whisper: Whisper) -> None:
    whisper.add("jfk.mp3", "tale/jfk.mp3")
    whisper.database.rows("insert into show (name, folder, language, hotwords) values ('Tale', 'tale', 'en', '{JFK}')")
    whisper.start()

    result = whisper.wait(whisper.enqueue("tale/jfk.mp3"))["result"]
    unknown = whisper.wait(whisper.enqueue("tale/jfk.mp3", show="Ingen"), "error")

    assert (result["show"], result["language"], result["language_source"]) == ("Tale", "en", "forced")
    assert unknown["error_class"] == "unknown_show"
    whisper.database.rows("update show set hotwords = '{Kennedy}'")
    assert whisper.wait(whisper.enqueue("tale/jfk.mp3"))["result"]["reused"] is False


def test_transcript_that_is_there_is_used_again_until_audio_or_settings_change(whisper: Whisper) -> None:
    whisper.add("jfk.mp3", "jfk.mp3")
    whisper.start()
    first = whisper.wait(whisper.enqueue("jfk.mp3", language="en", episode_id=1))["result"]
    files = {file: file.stat().st_mtime_ns for file in whisper.media.glob("jfk.en.*")}
    vtt, srt = whisper.media / "jfk.en.vtt", whisper.media / "jfk.en.srt"

    again = whisper.wait(whisper.enqueue("jfk.mp3", language="en", episode_id=1))["result"]

    assert again["reused"] is True
    assert again["segments"] == first["segments"]
    assert again["outputs"] == first["outputs"]
    assert again["timing"]["units"] == 0
    assert {file: file.stat().st_mtime_ns for file in files} == files

    vtt.unlink()
    srt.write_text("edited")
    mended = whisper.wait(whisper.enqueue("jfk.mp3", language="auto", episode_id=2, analyze=True))
    assert mended["result"]["reused"] is False  # a detected language is another setting
    mended = whisper.wait(whisper.enqueue("jfk.mp3", language="auto", episode_id=3, analyze=True))
    assert mended["result"]["reused"] is True
    assert mended["result"]["episode_id"] == 3
    assert json.loads((whisper.media / "jfk.en.transcript.json").read_text())["episode_id"] == 3
    assert vtt.read_text().startswith("WEBVTT\n\n00:00:0")
    assert srt.read_text().startswith("1\n")
    assert whisper.database.value(
        "select count(*) from job_queue where job_type = 'openrouter_analyze' and parent_id = %s", mended["id"]
    )

    forced = whisper.wait(whisper.enqueue("jfk.mp3", language="auto", force=True))["result"]
    assert forced["reused"] is False
    assert forced["timing"]["units"] == 1

    (whisper.media / "jfk.mp3").write_bytes((whisper.samples / "audio" / "edge" / "s48.mp3").read_bytes())
    changed = whisper.wait(whisper.enqueue("jfk.mp3", language="auto"))["result"]
    assert changed["reused"] is False
    assert " ".join(words_of(changed["text"])).endswith(JFK)
