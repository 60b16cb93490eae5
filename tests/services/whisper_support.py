"""The real model, and the engine run in the test's own process."""

import functools
import re
from pathlib import Path
from typing import Any

from services.whisper import engine
from services.whisper.messages import EngineRequest, ModelRequest, SpeechRequest, UnitProgress, UnitResult
from services.whisper.model import ModelFolder
from services.whisper.model_fetch import cache_root, fetch_model
from services.whisper.transcript import Origin, build_transcript

JFK = "ask not what your country can do for you ask what you can do for your country"


@functools.cache
def base_model() -> ModelFolder:
    """The base model, fetched into the cache folder the first time."""
    return fetch_model(cache_root(), "base")


def read_aloud(samples: Path) -> list[UnitResult]:
    """Two minutes of read English in units of at most 30 s, transcribed once for all tests that ask."""
    return transcribe_units(samples / "audio", "ljspeech-2min.mp3", unit_seconds=30)


@functools.cache
def transcribe_units(media_root: Path, path: str, **request: Any) -> list[UnitResult]:
    """The file's units, transcribed once for all tests that ask for the same."""
    return transcribe_anew(media_root, path, **request)


def transcribe_anew(media_root: Path, path: str, **request: Any) -> list[UnitResult]:
    """The file's units, or those from a later one on."""
    return [message for message in engine_messages(media_root, path, **request) if isinstance(message, UnitResult)]


def engine_messages(
    media_root: Path,
    path: str,
    *,
    first_unit: int = 0,
    start_sample: int = 0,
    language: str | None = "en",
    **speech: Any,
) -> list[UnitProgress | UnitResult]:
    """All that the engine sends for a file."""
    messages: list[UnitProgress | UnitResult] = []
    request = EngineRequest(
        ModelRequest(base_model().folder, "int8", 0),
        SpeechRequest(language, **speech),
        media_root,
        path,
        first_unit=first_unit,
        start_sample=start_sample,
    )
    engine.transcribe(request, messages.append)
    return messages


def transcript_of(units: list[UnitResult], *, language_was_given: bool = True) -> dict[str, Any]:
    """The units put together as the worker does it."""
    origin = Origin("a.mp3", "0" * 64, 1, base_model(), "int8", "cpu", {}, "0" * 16, language_was_given, {})
    return build_transcript(units, origin)


def text_of(units: list[UnitResult]) -> str:
    return " ".join(row["text"] for unit in units for row in unit.segments)


def words_of(text: str) -> list[str]:
    """Lower case, without punctuation."""
    return re.sub(r"[^\w\s']", " ", text.lower()).split()
