"""Units: stretches of some minutes, cut at pauses, each transcribed on its own.

Working in units keeps the memory that of one unit however long the file is, and makes each one a checkpoint. A
unit depends only on its first sample and the audio after it, so a run that begins again at the end of the last
finished unit cuts the rest exactly as the uninterrupted run would have.

Speech is found once per unit by the Silero model that comes with faster-whisper. Its result serves twice: the
longest pause in the last third is where the unit ends, and only speech is handed to the recognizer.
"""

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from faster_whisper.vad import VadOptions, get_speech_timestamps
from numpy.typing import NDArray

from services.whisper.decode import AudioReader
from services.whisper.messages import SAMPLE_RATE

VAD_THRESHOLD = 0.5
# Pauses from here on may end a unit.
SHORTEST_PAUSE_SECONDS = 0.16
# Shorter pauses stay in what the recognizer hears, longer ones are cut down to the padding on both sides. Measured
# on two minutes of read English with base: 500/400 ms 4.7 % WER, 2000/400 ms (faster-whisper's own) 6.0 %.
KEPT_PAUSE_SECONDS = 0.5
PADDING_SECONDS = 0.4
QUIET_WINDOW_SECONDS = 0.3
WINDOW_SECONDS = 30  # what the model takes at once

Waveform = NDArray[np.float32]


@dataclass(frozen=True)
class Stretch:
    """Samples from `start` to `end`."""

    start: int
    end: int

    @property
    def length(self) -> int:
        return self.end - self.start


@dataclass(frozen=True)
class Unit:
    """`start` and `end` count from the start of the file, `speech` from the start of the unit."""

    start: int
    end: int
    is_last: bool
    speech: tuple[Stretch, ...]
    audio: Waveform
    decode_seconds: float
    vad_seconds: float

    def heard(self) -> Waveform:
        """The unit's speech in one piece, pauses left out."""
        return np.concatenate([self.audio[part.start : part.end] for part in self.speech])


def joined(units: list[Unit]) -> Waveform:
    """What was said in several units, in one piece."""
    return np.concatenate([unit.heard() for unit in units])


def cut_units(reader: AudioReader, unit_seconds: int) -> Iterator[Unit]:
    """The units from the reader's position to the end of the audio."""
    limit = unit_seconds * SAMPLE_RATE
    start = reader.position
    began = time.monotonic()
    block = reader.read(limit)
    while block.size:
        is_last = block.size < limit
        audio = block.astype(np.float32) / 32768.0
        decoded = time.monotonic()
        talk = find_speech(audio)
        searched = time.monotonic()
        end = block.size if is_last else choose_cut(audio, talk)
        speech = tuple(padded(clipped(talk, 0, end), end))
        yield Unit(start, start + end, is_last, speech, audio[:end], decoded - began, searched - decoded)
        if is_last:
            return
        start += end
        began = time.monotonic()
        block = np.concatenate([block[end:], reader.read(end)])


def speech_windows(unit: Unit) -> list[Stretch]:
    """What `heard` gives, in pieces of at most 30 s that end where speech does, or at the quietest place near the end.

    For recognizers that take many pieces at once.
    """
    heard, limit = unit.heard(), WINDOW_SECONDS * SAMPLE_RATE
    ends = list(itertools.accumulate(part.length for part in unit.speech))
    windows: list[Stretch] = []
    start = 0
    while start < heard.size:
        fitting = [end for end in ends if start < end <= start + limit]
        first = start + limit * 2 // 3
        end = fitting[-1] if fitting else first + quietest(heard[first : start + limit])
        windows.append(Stretch(start, end))
        start = end
    return windows


def find_speech(audio: Waveform) -> list[Stretch]:
    """Stretches of speech without padding, parted by pauses of SHORTEST_PAUSE_SECONDS or more."""
    options = VadOptions(
        threshold=VAD_THRESHOLD,
        min_silence_duration_ms=round(SHORTEST_PAUSE_SECONDS * 1000),
        speech_pad_ms=0,
    )
    return [Stretch(found["start"], found["end"]) for found in get_speech_timestamps(audio, options)]


def choose_cut(audio: Waveform, talk: list[Stretch]) -> int:
    """The sample where the unit ends: the middle of the longest pause in the last third, else its quietest place."""
    first = audio.size * 2 // 3
    pauses = clipped(pauses_between(talk, audio.size), first, audio.size)
    if not pauses:
        return first + quietest(audio[first:])
    longest = max(pauses, key=lambda pause: pause.length)
    return (longest.start + longest.end) // 2


def pauses_between(talk: list[Stretch], size: int) -> list[Stretch]:
    """What is not speech, the ends of the audio included."""
    edges = [0, *(edge for part in talk for edge in (part.start, part.end)), size]
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return [Stretch(start, end) for start, end in pairs if end > start]


def clipped(stretches: list[Stretch], first: int, last: int) -> list[Stretch]:
    """The parts of the stretches that lie between two samples."""
    parts = (Stretch(max(part.start, first), min(part.end, last)) for part in stretches)
    return [part for part in parts if part.length > 0]


def quietest(audio: Waveform) -> int:
    """The middle of the quietest QUIET_WINDOW_SECONDS."""
    window = min(audio.size, int(QUIET_WINDOW_SECONDS * SAMPLE_RATE))
    energy = np.concatenate([[0.0], np.cumsum(np.square(audio, dtype=np.float64))])
    return int(np.argmin(energy[window:] - energy[:-window])) + window // 2


def padded(talk: list[Stretch], size: int) -> list[Stretch]:
    """Speech with padding, joined where the pause is short; two neighbours share a pause at its middle."""
    joined: list[Stretch] = []
    for part in talk:
        if joined and part.start - joined[-1].end < KEPT_PAUSE_SECONDS * SAMPLE_RATE:
            joined[-1] = Stretch(joined[-1].start, part.end)
        else:
            joined.append(part)
    if not joined:
        return []
    pad = int(PADDING_SECONDS * SAMPLE_RATE)
    middles = [(one.end + two.start) // 2 for one, two in itertools.pairwise(joined)]
    return [
        Stretch(max(low, part.start - pad), min(high, part.end + pad))
        for part, low, high in zip(joined, [0, *middles], [*middles, size], strict=True)
    ]
