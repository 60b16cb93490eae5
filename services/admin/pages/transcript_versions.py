"""The versions of a transcript: the job's own result, and what people made of it line by line."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import anyio
import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request

from services.admin.database import Row
from services.admin.views.transcript import Segment, Transcript, read_segments, read_transcript
from sidelinja_jobs.redaction import redact_json, redact_value


@dataclass(frozen=True)
class Version:
    """A transcript in one version; `version` 0 is the job's own result."""

    job: Row
    transcript: Transcript
    segments: list[Segment]
    version: int = 0
    actor: str = ""
    saved_at: datetime | None = None


async def read_version(request: Request, *, original: bool = False, reveal: bool = False) -> Version:
    """The newest version, or with `original` the job's own; with `reveal` nothing is hidden in it.

    Raises:
        HTTPException: 404, the job has no transcript.
    """
    job_id: UUID = request.path_params["id"]
    async with request.app.state.database.session() as session:
        job = await session.fetch_one("job", id=job_id, most_bytes=2**31)
        newest = None if original else await session.fetch_one("transcript_version", id=job_id)
    if job is None or job["job_type"] != "whisper_transcribe" or job["result"] is None:
        raise HTTPException(404)
    shown = str if reveal else redact_json
    try:
        transcript = await anyio.to_thread.run_sync(lambda: read_transcript(shown(job["result"])))
        if newest is None:
            return Version(job, transcript, transcript.segments)
        segments = read_segments(shown(newest["segments"]))
    except (msgspec.ValidationError, msgspec.DecodeError, RecursionError):
        raise HTTPException(404) from None
    return Version(job, transcript, segments, newest["version"], newest["actor"], newest["saved_at"])


def corrected(segment: Segment, words: str | None, speaker: str | None) -> Segment:
    """A segment with the words that a person gave it; times of words and doubts of the recognizer go with the old."""
    if words is None:
        return segment
    text = " ".join(words.split())
    name = " ".join((speaker or "").split()) or None
    known = (segment.text, redact_value(segment.text))
    if text in {" ".join(known_text.split()) for known_text in known} and name == segment.speaker:
        return segment
    return Segment(start=segment.start, end=segment.end, text=text, id=segment.id, speaker=name)


def document_of(text: Version, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What a download as JSON holds: the rows, and which version they are."""
    document: dict[str, Any] = {
        "job_id": str(text.job["id"]),
        "language": text.transcript.language,
        "duration": text.transcript.duration,
        "text": " ".join(row["text"] for row in rows),
        "segments": list(rows),
    }
    if text.version and text.saved_at is not None:
        document["corrected"] = {"version": text.version, "by": text.actor, "at": text.saved_at.isoformat()}
    return document


def segments_json(segments: Sequence[Segment]) -> str:
    """Segments as the table holds them."""
    rows = [
        {name: value for name, value in msgspec.to_builtins(item).items() if value is not None} for item in segments
    ]
    return json.dumps(rows, ensure_ascii=False)
