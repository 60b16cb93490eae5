"""Where a job's transcript comes from: its own payload, or the job that transcribed."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import psycopg

from services.openrouter.payload import AnalyzePayload
from services.openrouter.transcript import Transcript, from_payload, from_result
from sidelinja_jobs import ComeBackLaterError, Context, NotFoundError, NotReadyError, PermanentError, RefusedError
from sidelinja_jobs.errors import translate
from sidelinja_jobs.queries import load_queries

SQL = load_queries(Path(__file__).with_name("queries.sql"))
LEAST_WAIT_SECONDS, MOST_WAIT_SECONDS = 60.0, 3600.0  # for a transcription that is not completed yet


def read_transcript(payload: AnalyzePayload, ctx: Context, created_at: datetime) -> Transcript:
    """The transcript to analyse.

    Raises:
        PermanentError: there is no such transcription, it failed, or it holds no text.
        ComeBackLaterError: it is not completed yet.
    """
    if payload.transcript_job_id is None:
        return from_payload(payload)
    return from_result(_result_of(payload.transcript_job_id, ctx, created_at))


def wait_seconds(created_at: datetime, now: datetime) -> float:
    """Half of the time waited so far: the queue lets a job come back twenty times, which is then ten hours."""
    return min(max((now - created_at).total_seconds() / 2, LEAST_WAIT_SECONDS), MOST_WAIT_SECONDS)


def _result_of(job_id: UUID, ctx: Context, created_at: datetime) -> dict[str, object]:
    try:
        with ctx.transaction() as conn:
            row = conn.execute(SQL["read_transcript"], {"job_id": job_id}).fetchone()
    except psycopg.Error as error:
        known = translate(error)
        if isinstance(known, NotReadyError):
            now = datetime.now(UTC)
            until = now + timedelta(seconds=wait_seconds(created_at, now))
            raise ComeBackLaterError(str(known), until=until, error_class="transcript_not_ready") from error
        if isinstance(known, NotFoundError | RefusedError):
            raise PermanentError(
                f"The transcript cannot be read: {known}. Next: enqueue with the id of a completed whisper_transcribe",
                error_class="no_transcript",
            ) from error
        raise
    result = row["result"] if row else None
    if not isinstance(result, dict):
        raise PermanentError(
            f"The transcription {job_id} has no result. Next: transcribe again", error_class="bad_transcript"
        )
    return result
