"""The payload takes what is documented and nothing else."""

from typing import Any

import msgspec
import pytest

from services.whisper.languages import LANGUAGES
from services.whisper.payload import WhisperPayload


def read(payload: dict[str, Any]) -> WhisperPayload:
    return msgspec.convert(payload, WhisperPayload)


def test_path_alone_is_enough() -> None:
    payload = read({"path": "2026/ep042.mp3"})

    assert payload.language is None  # the show's, else Norwegian
    assert payload.outputs == ("vtt", "srt", "txt", "json", "podcast_json")
    assert not payload.analyze
    assert not payload.word_timestamps


def test_everything_at_once() -> None:
    payload = read(
        {
            "path": "a.mp3",
            "sha256": "0" * 64,
            "show": "Lyd",
            "language": "auto",
            "hotwords": ["Kygo"],
            "prompt": "Hei.",
            "word_timestamps": True,
            "outputs": [],
            "subtitle_lines": True,
            "force": True,
            "lenient": True,
            "analyze": True,
            "episode_id": 42,
            "tema_id": "t-7",
        }
    )

    assert (payload.language, payload.hotwords, payload.outputs, payload.ids) == (
        "auto", ("Kygo",), (), {"episode_id": 42, "tema_id": "t-7"},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("payload", "named"),
    [
        ({}, "path"),
        ({"path": ""}, "path"),
        ({"path": "a" * 1025}, "path"),
        ({"path": None}, "path"),
        ({"path": ["a.mp3"]}, "path"),
        ({"path": "a", "langage": "no"}, "langage"),
        ({"path": "a", "language": "norsk"}, "language"),
        ({"path": "a", "language": "xx"}, "language"),
        ({"path": "a", "sha256": "A" * 64}, "sha256"),
        ({"path": "a", "sha256": "0" * 63}, "sha256"),
        ({"sha256": "0" * 64, "tracks": [{"path": n, "speaker": n} for n in "ab"]}, "each names its own"),
        ({"path": "a", "show": ""}, "show"),
        ({"path": "a", "hotwords": "Kygo"}, "hotwords"),
        ({"path": "a", "hotwords": [""]}, "hotwords"),
        ({"path": "a", "hotwords": ["a"] * 101}, "hotwords"),
        ({"path": "a", "prompt": "a" * 1001}, "prompt"),
        ({"path": "a", "word_timestamps": "yes"}, "word_timestamps"),
        ({"path": "a", "outputs": ["docx"]}, "outputs"),
        ({"path": "a", "subtitle_lines": 42}, "subtitle_lines"),
        ({"path": "a", "force": "yes"}, "force"),
        ({"path": "a", "lenient": 2}, "lenient"),
        ({"path": "a", "analyze": 1}, "analyze"),
        ({"path": "a", "episode_id": {"id": 1}}, "episode_id"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(payload: dict[str, Any], named: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=named):
        read(payload)


KARI, OLA = {"path": "kari.mp3", "speaker": "Kari"}, {"path": "ola.mp3", "speaker": "Ola"}


def test_tracks_stand_in_place_of_the_path() -> None:
    tracks = read({"tracks": [KARI, OLA]}).tracks

    assert [(track.path, track.speaker) for track in tracks] == [("kari.mp3", "Kari"), ("ola.mp3", "Ola")]


@pytest.mark.parametrize(
    ("payload", "named"),
    [
        ({"path": "a", "tracks": [KARI, OLA]}, "either path .* or tracks"),
        ({"tracks": []}, "either path .* or tracks"),
        ({"tracks": [KARI]}, "one file, expected 2 to 16"),
        ({"tracks": [KARI] * 17}, "tracks"),
        ({"tracks": [KARI, {**OLA, "speaker": "Kari "}]}, "a speaker twice"),
        ({"tracks": [KARI, {**OLA, "path": "kari.mp3"}]}, "a path twice"),
        ({"tracks": [KARI, {**OLA, "speaker": " "}]}, "speaker of blanks"),
        ({"tracks": [KARI, {"path": "ola.mp3"}]}, "speaker"),
        ({"tracks": [KARI, {**OLA, "speaker": ""}]}, "speaker"),
        ({"tracks": [KARI, {**OLA, "speaker": "O" * 81}]}, "speaker"),
        ({"tracks": [KARI, {**OLA, "voice": "deep"}]}, "voice"),
    ],
)
def test_tracks_that_do_not_fit_are_refused_by_name(payload: dict[str, Any], named: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=named):
        read(payload)


def test_languages_are_those_of_the_library() -> None:
    from faster_whisper.tokenizer import _LANGUAGE_CODES

    assert set(_LANGUAGE_CODES) == LANGUAGES


def test_schema_can_be_shown_to_people() -> None:
    schema = msgspec.json.schema(WhisperPayload)["$defs"]["WhisperPayload"]

    assert schema["additionalProperties"] is False
    assert all("description" in str(field) for field in schema["properties"].values())
