"""A transcript: its lines with times, how sure the recognizer was of each, and what was left out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

# Whisper's own mark of a failed decoding is -1.0; half of it is unsure, and worth a listen.
UNSURE_LOGPROB = -0.7
UNSURE_SILENCE = 0.5
MOST_SECONDS = 1_000_000.0


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """One line, in seconds from the start of the audio."""

    start: float
    end: float
    text: str
    id: int | None = None
    speaker: str | None = None
    avg_logprob: float | None = None
    no_speech_prob: float | None = None
    reason: str | None = None

    @property
    def is_unsure(self) -> bool:
        """Whether the recognizer doubted it."""
        return (self.avg_logprob is not None and self.avg_logprob < UNSURE_LOGPROB) or (
            self.no_speech_prob is not None and self.no_speech_prob > UNSURE_SILENCE
        )


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """Where the audio lies, relative to MEDIA_ROOT."""

    path: str
    speaker: str | None = None


class Model(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    device: str | None = None
    compute_type: str | None = None


class Transcript(msgspec.Struct, frozen=True, kw_only=True):
    """What the view shows of a result of whisper_transcribe."""

    segments: list[Segment]
    text: str = ""
    language: str | None = None
    language_probability: float | None = None
    language_source: str | None = None
    duration: float | None = None
    speech_seconds: float | None = None
    dropped: list[Segment] = []
    flags: list[str] = []
    notes: list[str] = []
    model: Model | None = None
    source: Source | None = None
    tracks: list[Source] = []
    outputs: dict[str, str] | None = None
    reused: bool = False
    episode_id: str | int | None = None
    tema_id: str | int | None = None

    @property
    def sources(self) -> list[Source]:
        """The audio files, one for each speaker where there are tracks."""
        return self.tracks or ([self.source] if self.source else [])

    @property
    def unsure(self) -> int:
        """How many lines the recognizer doubted."""
        return sum(segment.is_unsure for segment in self.segments)


@dataclass(frozen=True)
class Line:
    """A line of the page; `start` and `end` as the script reads them."""

    number: int
    segment: Segment
    clock: str


def read_transcript(result: str) -> Transcript:
    """The transcript in a result.

    Raises:
        msgspec.ValidationError: it is none.
    """
    return msgspec.json.decode(result, type=Transcript)


def read_segments(text: str) -> list[Segment]:
    """Segments alone, as a correction holds them."""
    return msgspec.json.decode(text, type=list[Segment])


def lines_of(segments: Sequence[Segment], first: int = 0) -> list[Line]:
    """The lines, numbered from `first`."""
    return [Line(first + number, segment, clock(segment.start)) for number, segment in enumerate(segments)]


def clock(seconds: float) -> str:
    """1:02:03, or 2:03."""
    whole = int(min(max(seconds, 0.0), MOST_SECONDS)) if seconds == seconds else 0
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes}:{left:02}"


def as_rows(segments: Sequence[Segment]) -> list[dict[str, Any]]:
    """Segments as subtitles and analysis take them: sorted, with text, none that ends before it begins."""
    rows = []
    for segment in sorted(segments, key=lambda segment: (segment.start, segment.end)):
        text = " ".join(segment.text.split())
        if text and 0 <= segment.start < segment.end:
            row: dict[str, Any] = {"start": segment.start, "end": segment.end, "text": text}
            rows.append(row | ({"speaker": segment.speaker} if segment.speaker else {}))
    return rows
