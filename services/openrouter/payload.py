"""The payload of an openrouter_analyze job. Unknown fields are refused."""

from decimal import Decimal
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from openrouter_client.language import LANGUAGES

Want = Literal["title", "summary", "keywords", "chapters", "guests", "quotes", "shownotes"]
WANTS: tuple[Want, ...] = ("title", "summary", "keywords", "chapters", "guests", "quotes", "shownotes")
OutputKind = Literal["chapters", "shownotes"]
OutputLanguage = Literal["auto", "nb", "nn", "en"]

MOST_SEGMENTS = 20_000
MOST_LETTERS = 3_000_000
DURATION_SLACK_SECONDS = 1.0  # a recognizer's last segment may end a little after the audio

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=120)]
Id = Annotated[str | int | None, msgspec.Meta(description="the surrounding system's id, passed on unchanged")]


class SegmentPayload(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """One segment of a transcript that is given in the payload; times in seconds."""

    start: Annotated[float, msgspec.Meta(ge=0)]
    end: Annotated[float, msgspec.Meta(gt=0)]
    text: str
    speaker: Annotated[str, msgspec.Meta(min_length=1, max_length=80)] | None = None


class Hints(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What is known beforehand. Names are spelled as here, and count as grounded."""

    show_title: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    hosts: Annotated[tuple[Name, ...], msgspec.Meta(max_length=20)] = ()
    guests: Annotated[tuple[Name, ...], msgspec.Meta(max_length=50)] = ()
    published: Annotated[str, msgspec.Meta(max_length=40)] | None = None


class AnalyzePayload(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """One transcript to analyse: by the job that made it, as segments, or as bare text."""

    schema_version: Literal[1] = 1
    transcript_job_id: Annotated[
        UUID | None, msgspec.Meta(description="the completed whisper_transcribe job to read from")
    ] = None
    segments: Annotated[
        tuple[SegmentPayload, ...] | None, msgspec.Meta(description="in its place: the transcript, corrected by hand")
    ] = None
    text: Annotated[str | None, msgspec.Meta(description="in its place: text without times, so without chapters")] = (
        None
    )
    language: (
        Annotated[str, msgspec.Meta(max_length=8, description="of segments or text, when known: nb, nn, no, en …")]
        | None
    ) = None
    duration: Annotated[float, msgspec.Meta(gt=0, description="of the audio, in seconds, with segments")] | None = None
    corrects_job_id: Annotated[
        UUID | None, msgspec.Meta(description="the analysis that this one, of a corrected transcript, replaces")
    ] = None
    hints: Hints = Hints()
    output_language: Annotated[
        OutputLanguage, msgspec.Meta(description="auto: the transcript's, if it is one of the three")
    ] = "auto"
    wants: Annotated[tuple[Want, ...], msgspec.Meta(min_length=1, max_length=16)] = WANTS
    outputs: Annotated[
        tuple[OutputKind, ...], msgspec.Meta(max_length=4, description="files to write below OUTPUT_ROOT")
    ] = ()
    output_path: (
        Annotated[
            str,
            msgspec.Meta(
                min_length=1, max_length=1000, description="their path without ending; the audio's, when it is known"
            ),
        ]
        | None
    ) = None
    max_cost_usd: Annotated[
        Decimal | None, msgspec.Meta(description="for all calls of this job; the setting's budget holds, too")
    ] = None
    episode_id: Id = None
    tema_id: Id = None

    def __post_init__(self) -> None:
        given = [name for name in ("transcript_job_id", "segments", "text") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(
                f"expected one of transcript_job_id, segments and text, found {' and '.join(given) or 'none'}"
            )
        if self.segments is not None:
            self._check_segments(self.segments)
        if self.text is not None:
            _check_text(self.text)
        if self.segments is None and self.duration is not None:
            raise ValueError("duration goes with segments only")
        if self.transcript_job_id is not None and self.language is not None:
            raise ValueError("language goes with segments or text; a transcript has its own")
        missing = [kind for kind in self.outputs if not {kind, "shownotes"} & set(self.wants)]
        if missing:
            raise ValueError(f"outputs has {missing[0]!r}, which wants does not have; add it there")
        if self.max_cost_usd is not None and not (self.max_cost_usd.is_finite() and self.max_cost_usd > 0):
            raise ValueError(f"max_cost_usd is {self.max_cost_usd}, expected more than 0")
        if self.language is not None and not self.language.isalnum():
            raise ValueError(f"language is {self.language!r}, expected a code such as {', '.join(LANGUAGES)}")

    def _check_segments(self, segments: tuple[SegmentPayload, ...]) -> None:
        if len(segments) > MOST_SEGMENTS:
            raise ValueError(f"segments has {len(segments)} segments, at most {MOST_SEGMENTS} are taken")
        letters, before = 0, 0.0
        for number, segment in enumerate(segments):
            place = f"segments[{number}]"
            if not segment.text.strip():
                raise ValueError(f"{place}.text is empty; leave the segment out")
            if not segment.start < segment.end:
                raise ValueError(f"{place} goes from {segment.start} to {segment.end}, expected start before end")
            if segment.start < before:
                raise ValueError(f"{place} starts at {segment.start}, before the one above it; sort them by start")
            if self.duration is not None and segment.start >= self.duration:
                raise ValueError(f"{place} starts at {segment.start}, after the audio's {self.duration} seconds")
            if self.duration is not None and segment.end > self.duration + DURATION_SLACK_SECONDS:
                raise ValueError(f"{place} ends at {segment.end}, after the audio's {self.duration} seconds")
            before, letters = segment.start, letters + len(segment.text)
        if not segments:
            raise ValueError("segments is empty")
        if letters > MOST_LETTERS:
            raise ValueError(f"segments have {letters} characters, at most {MOST_LETTERS} are taken")


def _check_text(text: str) -> None:
    if not text.strip():
        raise ValueError("text is empty")
    if len(text) > MOST_LETTERS:
        raise ValueError(f"text has {len(text)} characters, at most {MOST_LETTERS} are taken")
