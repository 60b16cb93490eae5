"""A transcript is found again only where audio and settings are the same and the file reads as one."""

import json
from pathlib import Path
from typing import Any

import pytest

from services.whisper.outputs import Destination
from services.whisper.reuse import find_transcript, outdated

SETTINGS = "5e771465"
AUDIO: list[tuple[str | None, str]] = [(None, "a" * 64)]
SEGMENT = {
    "id": 0,
    "start": 0.0,
    "end": 2.0,
    "text": "Hei.",
    "avg_logprob": -0.2,
    "no_speech_prob": 0.1,
    "compression_ratio": 1.0,
}
TRANSCRIPT: dict[str, Any] = {
    "schema": 1,
    "settings_hash": SETTINGS,
    "text": "Hei.",
    "language": "no",
    "duration": 2.0,
    "segments": [SEGMENT],
    "dropped": [],
    "flags": [],
    "notes": [],
    "source": {"path": "ep.mp3", "sha256": "a" * 64, "bytes": 1},
}


@pytest.fixture
def place(tmp_path: Path) -> Destination:
    return Destination("media", tmp_path, ".", "ep")


def put(place: Destination, content: object, language: str = "no") -> Path:
    file = place.root / f"ep.{language}.transcript.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


def find(place: Destination, language: str = "no", sources: list[tuple[str | None, str]] = AUDIO) -> object:
    return find_transcript([place], language, SETTINGS, sources)


def test_transcript_of_the_same_audio_and_settings_is_found(place: Destination) -> None:
    put(place, TRANSCRIPT)

    assert find(place) == (place, TRANSCRIPT)
    assert find(place, "auto") == (place, TRANSCRIPT)


def test_the_first_place_that_has_it_counts(place: Destination, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    other = Destination("output", tmp_path / "out", ".", "ep")
    put(other, TRANSCRIPT)

    assert find_transcript([place, other], "no", SETTINGS, AUDIO) == (other, TRANSCRIPT)


def test_one_without_speech_is_found_under_the_unknown_language(place: Destination) -> None:
    put(place, {**TRANSCRIPT, "language": None, "segments": [], "text": ""}, "und")

    assert find(place, "auto") is not None


def test_tracks_are_the_same_when_speakers_and_their_audio_are(place: Destination) -> None:
    tracks = [{"speaker": "Kari", "sha256": "b" * 64}, {"speaker": "Ola", "sha256": "c" * 64}]
    put(place, {key: value for key, value in TRANSCRIPT.items() if key != "source"} | {"tracks": tracks})

    assert find(place, sources=[("Kari", "b" * 64), ("Ola", "c" * 64)])
    assert not find(place, sources=[("Kari", "c" * 64), ("Ola", "b" * 64)])
    assert not find(place)


@pytest.mark.parametrize(
    "change",
    [
        {"settings_hash": "other"},
        {"schema": 2},
        {"source": {"sha256": "d" * 64}},
        {"source": None},
        {"segments": [{**SEGMENT, "start": -1}]},
        {"segments": [{**SEGMENT, "text": None}]},
        {"segments": "none"},
        {"flags": ["trial_model", "unit_skipped"]},
        {"text": 5},
    ],
    ids=str,
)
def test_what_does_not_fit_is_not_used(place: Destination, change: dict[str, Any]) -> None:
    put(place, TRANSCRIPT | change)

    assert find(place) is None


@pytest.mark.parametrize("content", ["", "{", "[" * 100_000, "null", json.dumps(TRANSCRIPT)[:-20]], ids=len)
def test_what_is_no_transcript_is_not_used(place: Destination, content: str) -> None:
    put(place, content)

    assert find(place) is None


def test_no_link_is_followed(place: Destination, tmp_path: Path) -> None:
    file = put(place, TRANSCRIPT)
    file.rename(tmp_path / "elsewhere.json")
    file.symlink_to(tmp_path / "elsewhere.json")

    assert find(place) is None


def test_files_that_are_missing_or_differ_are_outdated(place: Destination) -> None:
    (place.root / "ep.no.vtt").write_text("WEBVTT")
    (place.root / "ep.no.srt").write_text("old")

    assert outdated(place, {"vtt": "WEBVTT", "srt": "new", "txt": "Hei."}, "no") == {"srt": "new", "txt": "Hei."}
