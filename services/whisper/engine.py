"""The engine: what runs in the killable child process.

One request is one file, or the rest of one. Units are decoded, cut and transcribed one after the other; each is
sent to the worker as soon as it is finished, so what was sent survives whatever happens to this process. The
model stays loaded between requests.
"""

import contextlib
import ctypes
import gc
import os
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from services.whisper.cores import available_cores
from services.whisper.guards import Frame, Row, is_sparse, screen
from services.whisper.media import FileChangedError, open_source
from services.whisper.messages import (
    SAMPLE_RATE,
    DecodeCounts,
    EngineReport,
    EngineRequest,
    ModelRequest,
    SpeechRequest,
    UnitProgress,
    UnitResult,
    UnitStarted,
    seconds,
)
from sidelinja_jobs import PermanentError

if TYPE_CHECKING:
    from services.whisper.decode import AudioReader
    from services.whisper.recognizer import Recognizer
    from services.whisper.units import Unit

Emit = Callable[[Any], None]
READING_NOTE_SAMPLES = 60 * SAMPLE_RATE
RETRY_BEAM_SIZE = 5
# The language is found in so much speech, or in that of so many units.
LANGUAGE_SAMPLES, LANGUAGE_UNITS = 60 * SAMPLE_RATE, 3

_loaded: dict[ModelRequest, "Recognizer"] = {}


def transcribe(request: EngineRequest, emit: Emit) -> EngineReport:
    """Sends a UnitResult for every unit from `start_sample` on, with UnitProgress in between.

    Raises:
        PermanentError: the file is no audio, has none, or the language is not one of the model's.
        FileChangedError: the file is not the one that the worker opened.
    """
    started = time.monotonic()
    recognizer = load(request.model)
    load_seconds = time.monotonic() - started
    if request.path:
        work(recognizer, request, emit)
        give_back_memory()
    return EngineReport(
        device=recognizer.device,
        compute_type=recognizer.compute_type,
        cpu_threads=recognizer.cpu_threads,
        load_seconds=round(load_seconds, 3),
        peak_rss_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        batch_size=recognizer.batch_size,
        device_note=recognizer.device_note,
    )


def load(request: ModelRequest) -> "Recognizer":
    """The loaded model; another one is let go of first."""
    if request not in _loaded:
        _loaded.clear()
        threads = request.cpu_threads or available_cores()
        # All are read when the libraries are loaded, so they are set before the import.
        os.environ["OMP_NUM_THREADS"] = str(threads)
        os.environ["HF_HUB_OFFLINE"] = "1"
        os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # onnxruntime reports its use to its maker unless told otherwise
        from services.whisper.recognizer import Recognizer

        _loaded[request] = Recognizer(request, threads)
    return _loaded[request]


def work(recognizer: "Recognizer", request: EngineRequest, emit: Emit) -> None:
    """Decodes, cuts and transcribes the file of one request."""
    from services.whisper.decode import AudioReader

    if request.speech.language is not None:
        recognizer.require_language(request.speech.language)
    with open_source(request.media_root, request.path) as source:
        if request.identity is not None and source.identity != request.identity:
            raise FileChangedError(f"{request.path!r} was exchanged between the worker's look and the engine's")
        with AudioReader(source.descriptor) as reader:
            read_up_to(reader, request.start_sample, emit)
            for result in UnitRun(recognizer, request, reader, emit).results():
                emit(result)


def give_back_memory() -> None:
    """What one file needed goes back to the system, so that the next one begins with as much as this one did."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # a C library that has no such function
        ctypes.CDLL(None).malloc_trim(0)


def read_up_to(reader: "AudioReader", start_sample: int, emit: Emit) -> None:
    """Decodes and drops what finished units hold: seeking would not land on the same sample."""
    told = 0
    for position in reader.skip(start_sample):
        if position - told >= READING_NOTE_SAMPLES:
            told = position
            emit(UnitProgress("reading", seconds(position), reader.container_seconds))


class UnitRun:
    """The units of one request; the language found in one holds for those after it."""

    def __init__(self, recognizer: "Recognizer", request: EngineRequest, reader: "AudioReader", emit: Emit) -> None:
        self._recognizer = recognizer
        self._request = request
        self._reader = reader
        self._emit = emit
        self._language = request.speech.language
        self._probability: float | None = None
        self._language_seconds = 0.0
        self._lacks_word_times = False

    def results(self) -> Iterator[UnitResult]:
        """Transcribes unit after unit."""
        from services.whisper.units import cut_units

        index = self._request.first_unit
        if self._request.skip_first:
            yield self._skipped(index)
            index += 1
        units = self._in_one_language(cut_units(self._reader, self._request.speech.unit_seconds))
        for unit in units:
            self._emit(UnitStarted(index, unit.start, unit.end))
            began = time.monotonic()
            self._lacks_word_times = False
            found = self._segments(unit)
            infer_seconds = time.monotonic() - began + self._language_seconds
            self._language_seconds = 0.0
            yield UnitResult(
                index=index,
                start_sample=unit.start,
                end_sample=unit.end,
                is_last=unit.is_last,
                speech_samples=sum(part.length for part in unit.speech),
                language=self._language,
                language_probability=self._probability,
                segments=found.kept,
                dropped=found.dropped,
                decoding=self._counts(),
                seconds_spent={
                    "decode_s": unit.decode_seconds,
                    "vad_s": unit.vad_seconds,
                    "infer_s": infer_seconds,
                },
                flags=[*self._flags(), *found.flags],
            )
            index += 1
        if self._reader.position == 0:
            raise PermanentError(
                f"No audio in the file: expected sound, decoded 0 samples from {self._reader.packets} packets of "
                f"{self._reader.format_name}, {self._reader.bad_packets} of them unreadable. "
                "Next: check that the file plays",
                error_class="no_audio",
            )

    def _in_one_language(self, units: Iterator["Unit"]) -> Iterator["Unit"]:
        """The units; where the language is asked for, so many are cut first that there is speech to find it in."""
        waiting: list[Unit] = []
        while self._language is None and len(waiting) < LANGUAGE_UNITS and (unit := next(units, None)) is not None:
            waiting.append(unit)
            speaking = [other for other in waiting if other.speech]
            size = sum(part.length for other in speaking for part in other.speech)
            if speaking and (size >= LANGUAGE_SAMPLES or unit.is_last or len(waiting) == LANGUAGE_UNITS):
                self._find_language(speaking)
        yield from waiting
        del waiting
        for unit in units:
            if self._language is None and unit.speech:
                self._find_language([unit])
            yield unit

    def _find_language(self, units: list["Unit"]) -> None:
        from services.whisper.units import joined

        began = time.monotonic()
        self._language, self._probability = self._recognizer.detect_language(joined(units))
        self._language_seconds += time.monotonic() - began

    def _skipped(self, index: int) -> UnitResult:
        """As long as a unit may be, decoded and nothing more."""
        start, limit = self._reader.position, self._request.speech.unit_seconds * SAMPLE_RATE
        size = self._reader.read(limit).size
        return UnitResult(
            index=index,
            start_sample=start,
            end_sample=start + size,
            is_last=size < limit,
            speech_samples=0,
            language=self._language,
            language_probability=None,
            segments=[],
            decoding=self._counts(),
            seconds_spent=dict.fromkeys(UnitResult.SPENT, 0.0),
            flags=[*self._flags(), "unit_skipped"],
        )

    def _segments(self, unit: "Unit") -> "Screened":
        """What was said in the unit; once more, and without hints, where much speech gave next to no text."""
        if not unit.speech:
            return Screened([], [], [])
        assert self._language is not None  # noqa: S101 - there is speech, so it was looked for
        speech = self._request.speech
        frame = frame_of(unit, speech)
        kept, dropped = screen(self._recognized(unit, self._language, speech), frame)
        if not is_sparse(kept, frame):
            return Screened(kept, dropped, [])
        plain = replace(speech, hotwords=(), prompt=None, beam_size=max(speech.beam_size, RETRY_BEAM_SIZE))
        again, dropped_again = screen(self._recognized(unit, self._language, plain), frame_of(unit, plain))
        if len(text_of(again)) > len(text_of(kept)):
            kept, dropped = again, dropped_again
        return Screened(kept, dropped, ["low_density"] if is_sparse(kept, frame) else [])

    def _recognized(self, unit: "Unit", language: str, speech: SpeechRequest) -> list[Row]:
        try:
            return self._heard(unit, language, speech)
        except IndexError:  # faster-whisper's search for the times of words, on some audio
            if not speech.word_timestamps:
                raise
            self._lacks_word_times = True
            return self._heard(unit, language, replace(speech, word_timestamps=False))

    def _heard(self, unit: "Unit", language: str, speech: SpeechRequest) -> list[Row]:
        rows: list[Row] = []

        def tell() -> None:
            reached = rows[-1]["end"] if rows else seconds(unit.start)
            self._emit(UnitProgress("transcribing", reached, self._reader.container_seconds))

        for row in self._recognizer.transcribe(unit, language, speech, tell):
            rows.append(row)
            tell()
        return rows

    def _flags(self) -> list[str]:
        """What is true up to here, apart from the text."""
        hotwords = self._request.speech.hotwords
        is_cut = len(self._recognizer.fitting(hotwords)) < len(hotwords)
        flags = {
            "hotwords_cut": is_cut,
            "joined_rates": self._reader.has_joined_rates,
            "no_word_times": self._lacks_word_times,
        }
        return [flag for flag, holds in flags.items() if holds]

    def _counts(self) -> DecodeCounts:
        reader = self._reader
        return DecodeCounts(reader.packets, reader.bad_packets, reader.container_seconds, reader.is_length_stated)


@dataclass(frozen=True)
class Screened:
    """The segments of a unit, those that were dropped, and what is to be said about it."""

    kept: list[Row]
    dropped: list[Row]
    flags: list[str]


def frame_of(unit: "Unit", speech: SpeechRequest) -> Frame:
    """The unit as the guards see it."""
    return Frame(
        seconds(unit.start),
        seconds(unit.end),
        unit.is_last,
        tuple((seconds(unit.start + part.start), seconds(unit.start + part.end)) for part in unit.speech),
        speech.prompt,
        speech.hotwords,
    )


def text_of(rows: list[Row]) -> str:
    """The segments in one line."""
    return " ".join(row["text"] for row in rows)
