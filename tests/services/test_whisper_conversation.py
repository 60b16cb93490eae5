"""A conversation recorded on one track per speaker, made from the samples: who says what, and when."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import webvtt

from services.whisper.messages import SAMPLE_RATE
from tests.services.whisper_sound import read_sound, write_wave
from tests.services.whisper_support import words_of
from tests.services.whisper_worker import Whisper

pytestmark = [pytest.mark.model, pytest.mark.timeout(180)]

# Turns on the clock of the conversation: speaker, start, and what is heard from when to when of which sample. The
# last turn of Ms. Reader begins while Mr. President still speaks.
READER, PRESIDENT = "Ms. Reader", "Mr. <President> & Co"
TURNS = [
    (READER, 1.0, "ljspeech-2min.mp3", 11.2, 22.7),
    (PRESIDENT, 14.0, "jfk.mp3", 0.0, 11.0),
    (READER, 22.0, "ljspeech-2min.mp3", 22.7, 35.2),
    (PRESIDENT, 36.0, "jfk.mp3", 0.0, 11.0),
]
LENGTH = 48.0


def record(folder: Path, samples: Path) -> dict[str, str]:
    """The two tracks: each as long as the conversation, silent where the other speaks. Speaker -> file."""
    files = {READER: "reader.wav", PRESIDENT: "president.wav"}
    for speaker, name in files.items():
        track = np.zeros(int(LENGTH * SAMPLE_RATE), dtype=np.float32)
        for who, at, sample, start, end in TURNS:
            if who == speaker:
                piece = read_sound(samples / "audio" / sample)[int(start * SAMPLE_RATE) : int(end * SAMPLE_RATE)]
                track[int(at * SAMPLE_RATE) :][: len(piece)] = piece
        write_wave(folder / name, track)
    return files


def test_every_segment_has_its_speaker_in_order_and_overlaps_stay(whisper: Whisper) -> None:
    whisper.make_impatient()
    files = record(whisper.media, whisper.samples)
    tracks = [{"path": file, "speaker": speaker} for speaker, file in files.items()]
    first = whisper.start(UNIT_SECONDS="20")
    job_id = whisper.database.enqueue("whisper_transcribe", {"tracks": tracks, "language": "en"})
    whisper.wait_for_units(job_id, 4)  # the first track and some of the second
    first.kill()
    whisper.start(UNIT_SECONDS="20")

    result = whisper.wait(job_id)["result"]

    assert result["timing"]["resumed_units"] >= 4
    segments = result["segments"]
    assert segments == sorted(segments, key=lambda row: row["start"])
    for row in segments:
        middle = (row["start"] + row["end"]) / 2
        speaking = {who for who, at, _, start, end in TURNS if at - 0.5 <= middle <= at + end - start + 0.5}
        assert row["speaker"] in speaking, row
    said = {who: " ".join(words_of(" ".join(r["text"] for r in segments if r["speaker"] == who))) for who in files}
    assert said[PRESIDENT].count("ask not what your country") == 2
    assert "country" not in said[READER]
    assert "in the only sense with which we are at present concerned" in said[READER]
    assert "took impressions from wood blocks engraved in relief" in said[READER]
    overlap = [row["speaker"] for row in segments if row["start"] < 25.0 and row["end"] > 22.0]
    assert set(overlap) == set(files)
    assert [track["speaker"] for track in result["tracks"]] == list(files)
    assert result["duration"] == pytest.approx(LENGTH, abs=0.1)
    assert_outputs_name_the_speakers(whisper.media, result)


def assert_outputs_name_the_speakers(media: Path, result: dict[str, Any]) -> None:
    captions = webvtt.read(media / result["outputs"]["vtt"])
    lines = (media / result["outputs"]["txt"]).read_text().splitlines()

    assert result["outputs"]["vtt"] == "reader.en.vtt"
    assert {caption.raw_text.split(">")[0] for caption in captions} == {
        "<v Ms. Reader",
        "<v Mr. &lt;President&gt; &amp; Co",
    }
    assert all(line.startswith((f"{READER}: ", f"{PRESIDENT}: ")) for line in lines)
    assert len(lines) == len(result["segments"])
