"""A transcript that was made before: of the same audio, with everything that decides the text the same.

It is looked for where it was written, in `.transcript.json`. Audio and settings are named in it by their digests, so
a file that fits is what another run would give. A file that does not read as a transcript is as good as none.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Literal

import msgspec

from services.whisper.languages import LANGUAGES
from services.whisper.outputs import UNKNOWN_LANGUAGE, Destination
from services.whisper.payload import DETECT
from services.whisper.transcript import Row

Seconds = Annotated[float, msgspec.Meta(ge=0)]
KIND = "json"
INCOMPLETE = "unit_skipped"  # where the engine died; perhaps it does not die again


class StoredSegment(msgspec.Struct):
    """What has to be there of a segment."""

    id: int
    start: Seconds
    end: Seconds
    text: str
    avg_logprob: float
    no_speech_prob: float
    compression_ratio: float
    speaker: str | None = None


class StoredSource(msgspec.Struct):
    """The audio of a transcript, or of one speaker's part of it."""

    sha256: str
    speaker: str | None = None


class StoredTranscript(msgspec.Struct):
    """What has to be there of a transcript."""

    schema: Literal[1]
    settings_hash: str
    text: str
    language: str | None
    duration: Seconds
    segments: list[StoredSegment]
    dropped: list[Row]
    flags: list[str]
    notes: list[str]
    source: StoredSource | None = None
    tracks: list[StoredSource] = []

    @property
    def sources(self) -> list[tuple[str | None, str]]:
        """Speaker and digest of each file that it was made from."""
        single = [self.source] if self.source else []
        return [(one.speaker, one.sha256) for one in self.tracks or single]


def find_transcript(
    places: Iterable[Destination], language: str, settings: str, sources: Sequence[tuple[str | None, str]]
) -> tuple[Destination, Row] | None:
    """The transcript with these settings of this audio, and where it lies; None where there is none."""
    names = [language] if language != DETECT else [*sorted(LANGUAGES), UNKNOWN_LANGUAGE]
    for place in places:
        for name in dict.fromkeys([*names, UNKNOWN_LANGUAGE]):
            content = place.read(KIND, name)
            if content is not None and (found := _fitting(content, settings, sources)) is not None:
                return place, found
    return None


def outdated(place: Destination, files: Mapping[str, str], language: str | None) -> dict[str, str]:
    """Those of the files that are missing at the place, or hold something else."""
    return {kind: text for kind, text in files.items() if place.read(kind, language) != text.encode()}


def _fitting(content: bytes, settings: str, sources: Sequence[tuple[str | None, str]]) -> Row | None:
    try:
        stored = msgspec.json.decode(content, type=StoredTranscript)
        if stored.settings_hash != settings or stored.sources != list(sources) or INCOMPLETE in stored.flags:
            return None
        transcript: Row = json.loads(content)
    except (ValueError, RecursionError):  # msgspec's errors are ValueErrors
        return None
    return transcript
