"""The files of one job: a single one, or one for each speaker, transcribed one after the other.

Each track has finished units of its own among the job's checkpoints, so a killed run goes on in the track and at the
unit where it was.
"""

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from services.whisper.media import FileChangedError, Source, open_source
from services.whisper.messages import SAMPLE_RATE, UnitResult
from services.whisper.payload import WhisperPayload
from services.whisper.resume import resume_key
from services.whisper.transcription import Transcription
from sidelinja_jobs import Checkpoint, Context, Job


@dataclass(frozen=True)
class OpenTrack:
    """One file, held open; `speaker` is None for a job of a single file."""

    number: int
    speaker: str | None
    source: Source
    sha256: str

    def key(self, settings: str) -> str:
        """What the checkpoints of this track carry. Two tracks may hold the same bytes: silence, for one."""
        key = resume_key(self.sha256, settings)
        return key if self.speaker is None else f"{key}:{self.number}"


@contextlib.contextmanager
def open_tracks(media_root: Path, payload: WhisperPayload) -> Iterator[list[OpenTrack]]:
    """All files of the job, opened before any work is done on one.

    Raises:
        PermanentError, OSError: as `open_source`.
        FileChangedError: one is not the file whose digest the payload names.
    """
    wanted: list[tuple[str | None, str, str | None]] = [
        (track.speaker, track.path, track.sha256) for track in payload.tracks
    ]
    wanted = wanted or [(None, first_path(payload), payload.sha256)]
    with contextlib.ExitStack() as stack:
        sources = [stack.enter_context(open_source(media_root, path)) for _, path, _ in wanted]
        yield [
            OpenTrack(number, " ".join(speaker.split()) if speaker else None, source, _digest(source, expected))
            for number, ((speaker, _, expected), source) in enumerate(zip(wanted, sources, strict=True))
        ]


def _digest(source: Source, expected: str | None) -> str:
    found = source.sha256()
    if expected not in (None, found):
        raise FileChangedError(
            f"{source.path!r} is another file than the job names: expected sha256 {expected}, found {found}. "
            "Next: put the right file there, or enqueue the job anew without sha256"
        )
    return found


def first_path(payload: WhisperPayload) -> str:
    """The file that the outputs are named after."""
    return payload.path or payload.tracks[0].path


class TrackContext:
    """A job's context as one of its tracks sees it: its own checkpoints, and its share of the progress."""

    def __init__(self, ctx: Context, track: OpenTrack, tracks: Sequence[OpenTrack], settings: str) -> None:
        self._ctx = ctx
        self._key = track.key(settings)
        self._all_keys = {each.key(settings) for each in tracks}
        sizes = [each.source.identity.size_bytes for each in tracks]
        self._before, self._share = sum(sizes[: track.number]) / sum(sizes), sizes[track.number] / sum(sizes)
        self._label = f"{track.speaker}: " if track.speaker else ""
        self.log = ctx.log.bind(speaker=track.speaker) if track.speaker else ctx.log

    def progress(self, fraction: float | None, note: str | None = None) -> None:
        share = None if fraction is None else self._before + self._share * fraction
        self._ctx.progress(share, None if note is None else f"{self._label}{note}")

    def checkpoints(self) -> list[Checkpoint]:
        """Those of this track; all of them when none of the job's is of use, so that they can be dropped."""
        found = self._ctx.checkpoints()
        keys = [_key_of(checkpoint) for checkpoint in found]
        if not self._all_keys.intersection(keys):
            return found
        return [checkpoint for checkpoint, key in zip(found, keys, strict=True) if key == self._key]

    def checkpoint(self, data: Any) -> None:
        self._ctx.checkpoint(data)

    def drop_checkpoints(self) -> None:
        """Those of the job, unless another track can use some."""
        if not self._all_keys.intersection(map(_key_of, self._ctx.checkpoints())):
            self._ctx.drop_checkpoints()


class Timing:
    """Seconds by kind of work, of one run over all its tracks."""

    def __init__(self, job: Job[Any]) -> None:
        waited = (datetime.now(UTC) - max(job.created_at, job.scheduled_for)).total_seconds()
        self._queue_seconds = round(max(waited, 0.0), 3)
        self._started = time.monotonic()
        self._hashed = self._started

    def hashed(self) -> None:
        """Called when all files are read once."""
        self._hashed = time.monotonic()

    def total(self, done: Sequence[Transcription]) -> dict[str, float | int]:
        """What goes into the result; `done` is empty where a transcript was found. Units also of earlier runs."""
        wall = time.monotonic() - self._started
        own = [unit for each in done for unit in each.own_units]
        audio = sum(unit.end_sample - unit.start_sample for unit in own) / SAMPLE_RATE
        kinds = UnitResult.SPENT if done else ()
        return {
            "queue_s": self._queue_seconds,
            "hash_s": round(self._hashed - self._started, 3),
            **{kind: round(sum(unit.seconds_spent[kind] for unit in own), 3) for kind in kinds},
            "wall_s": round(wall, 3),
            "rtf": round(audio / wall, 2),
            "units": sum(len(each.units) for each in done),
            "resumed_units": sum(each.resumed for each in done),
        }


def _key_of(checkpoint: Checkpoint) -> str | None:
    key = checkpoint.data.get("key") if isinstance(checkpoint.data, dict) else None
    return key if isinstance(key, str) else None
