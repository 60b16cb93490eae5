"""The transcript that is analysed: its text, and which segment each letter belongs to.

The text is that of all segments joined by blanks. Positions in it are code points; every quote in a result is a slice
of it, and every time is the start or end of a segment.
"""

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

from services.openrouter.payload import MOST_LETTERS, MOST_SEGMENTS, AnalyzePayload
from sidelinja_jobs import PermanentError

LONGEST_SENTENCES = 1000  # letters; a longer line of bare text is cut after a sentence
_SENTENCE = re.compile(r"[^.!?…]*(?:[.!?…]+[»”\"')\]]*|$)")


@dataclass(frozen=True)
class Segment:
    """Times are None in bare text."""

    text: str
    start: float | None
    end: float | None
    speaker: str | None = None


class _Row(msgspec.Struct):
    start: float
    end: float
    text: str
    speaker: str | None = None


class _Source(msgspec.Struct):
    path: str | None = None


class _Result(msgspec.Struct):
    """What is read of a transcription's result."""

    segments: list[_Row]
    duration: Annotated[float, msgspec.Meta(ge=0)] | None = None
    language: str | None = None
    source: _Source | None = None
    tracks: list[_Source] | None = None
    flags: list[str] | None = None


class Transcript:
    """Segments and their text. `audio_path` and `language` are what the transcription said, if there was one."""

    def __init__(
        self,
        segments: Sequence[Segment],
        *,
        duration: float | None = None,
        language: str | None = None,
        audio_path: str | None = None,
        is_trial: bool = False,
    ) -> None:
        self.segments = segments
        self.language, self.audio_path, self.is_trial = language, audio_path, is_trial
        self._starts = array("Q")
        position = 0
        for segment in segments:
            self._starts.append(position)
            position += len(segment.text) + 1
        self.text = " ".join(segment.text for segment in segments)
        ends = [segment.end for segment in segments if segment.end is not None]
        self.duration = (duration or max(ends)) if ends else None  # a last segment may end a little after the audio

    @property
    def has_times(self) -> bool:
        return self.duration is not None

    @property
    def longest_segment_seconds(self) -> float | None:
        """No time in a result is finer than this."""
        lengths = [s.end - s.start for s in self.segments if s.start is not None and s.end is not None]
        return round(max(lengths), 3) if lengths else None

    def position_of(self, segment: int) -> int:
        """Where a segment begins in the text."""
        return self._starts[segment]

    def segment_at(self, position: int) -> int:
        """The segment that a position belongs to; the blank after a segment is still its own."""
        return bisect_right(self._starts, position) - 1


def from_payload(payload: AnalyzePayload) -> Transcript:
    """The transcript that a payload carries itself."""
    if payload.segments is not None:
        segments = [Segment(s.text.strip(), s.start, s.end, s.speaker) for s in payload.segments]
        return Transcript(_said(segments), duration=payload.duration, language=payload.language)
    lines = [piece for line in (payload.text or "").splitlines() for piece in _pieces(line.strip())]
    return Transcript(_said([Segment(line, None, None) for line in _fewer(lines)]), language=payload.language)


def from_result(result: dict[str, Any]) -> Transcript:
    """The transcript in the result of a whisper_transcribe job.

    Raises:
        PermanentError: it has no text, is too long, or is no such result.
    """
    try:
        read = msgspec.convert(result, _Result)
        segments = list(_segments(read.segments))
    except (msgspec.ValidationError, ValueError) as error:
        raise PermanentError(
            f"The transcription's result cannot be read: {error}. Next: transcribe again", error_class="bad_transcript"
        ) from error
    source = read.source or next(iter(read.tracks or ()), _Source())
    letters = sum(len(segment.text) for segment in segments)
    if len(segments) > MOST_SEGMENTS or letters > MOST_LETTERS:
        raise PermanentError(
            f"The transcript has {len(segments)} segments and {letters} characters, at most {MOST_SEGMENTS} and "
            f"{MOST_LETTERS} are taken. Next: analyse it in parts, as segments",
            error_class="too_long",
        )
    return Transcript(
        _said(segments),
        duration=read.duration,
        language=read.language,
        audio_path=source.path,
        is_trial="trial_model" in (read.flags or ()),
    )


def _segments(rows: Sequence[_Row]) -> Iterable[Segment]:
    for number, row in enumerate(rows):
        if not 0 <= row.start <= row.end:
            raise ValueError(f"segments[{number}] goes from {row.start} to {row.end}")
    for row in sorted(rows, key=lambda row: row.start):  # of several speakers at once, one may begin a little earlier
        if text := row.text.strip():
            yield Segment(text, row.start, row.end, row.speaker)


def _said(segments: Sequence[Segment]) -> Sequence[Segment]:
    """The segments; raises PermanentError where they hold no word."""
    if not any(letter.isalnum() for segment in segments for letter in segment.text):
        raise PermanentError(
            "The transcript has no text: nothing was said, or nothing was understood. Next: listen to the audio",
            error_class="empty_transcript",
        )
    return segments


def _fewer(lines: Sequence[str]) -> Sequence[str]:
    """The lines, several in one where there are more than a transcript may have segments."""
    if len(lines) <= MOST_SEGMENTS:
        return lines
    letters = 2 * sum(map(len, lines)) // MOST_SEGMENTS + 1  # of each, at least
    groups: list[list[str]] = [[]]
    size = 0
    for line in lines:
        if size >= letters:
            groups.append([])
            size = 0
        groups[-1].append(line)
        size += len(line)
    return [" ".join(group) for group in groups]


def _pieces(line: str) -> list[str]:
    """A line in pieces of whole sentences, or of whole words where a sentence is too long."""
    pieces = [""]
    for sentence in _SENTENCE.findall(line):
        start = 0
        while len(sentence) - start > LONGEST_SENTENCES:
            cut = sentence.rfind(" ", start + 1, start + LONGEST_SENTENCES)
            cut = cut if cut > 0 else start + LONGEST_SENTENCES
            pieces.append(sentence[start:cut].strip())
            start = cut
        rest = sentence[start:]
        if len(pieces[-1]) + len(rest) > LONGEST_SENTENCES:
            pieces.append("")
        pieces[-1] += rest
    return [piece.strip() for piece in pieces if piece.strip()]
