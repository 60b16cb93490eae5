"""The handler of whisper_transcribe: one audio file in, one transcript out.

The worker's process holds the queue, the files and the checkpoints; the engine's process decodes and recognizes. A
finished unit is a checkpoint, so whatever ends a run (kill -9, a lost lease, a restart), the next one goes on at the
first unit that is missing and ends with the same text.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import psycopg

from services.whisper.media import Source, open_source
from services.whisper.messages import EngineReport, EngineRequest, ModelRequest, SpeechRequest
from services.whisper.metrics import TranscriptionMetrics
from services.whisper.model import ModelFolder
from services.whisper.outputs import Destination, destinations, write_outputs
from services.whisper.payload import DETECT, WhisperPayload
from services.whisper.resume import package_versions, resume_key, settings_hash
from services.whisper.settings import WhisperSettings
from services.whisper.subtitles import as_srt, as_txt, as_vtt
from services.whisper.transcript import Origin, Row, build_transcript, without_words
from services.whisper.transcription import ALMOST_DONE, Transcription
from sidelinja_jobs import ChildError, ChildProcess, Context, Job, SettingsError, enqueue
from sidelinja_jobs.metrics import count_child_ends

ENGINE = "services.whisper.engine:transcribe"
JOB_TYPE = "whisper_transcribe"
FOLLOW_UP = "openrouter_analyze"


class Transcriber:
    """Works jobs with one model and one engine process, which stays warm between jobs."""

    def __init__(self, settings: WhisperSettings, model: ModelFolder) -> None:
        self._settings = settings
        self._model = model
        self._model_request = ModelRequest(model.folder, settings.compute_type, settings.cpu_threads)
        self._engine = ChildProcess(ENGINE, name="whisper engine", on_end=count_child_ends(JOB_TYPE))
        self._metrics: TranscriptionMetrics | None = None

    def load_model(self) -> EngineReport:
        """Starts the engine and loads the model: one that does not load stops the worker, not a job.

        Raises:
            SettingsError: it cannot be loaded.
        """
        try:
            report: EngineReport = self._engine.call(EngineRequest(self._model_request, SpeechRequest(None)))
        except ChildError as error:
            raise SettingsError(
                f"the model in {self._model.folder} cannot be loaded as {self._settings.compute_type}: {error}. "
                "Next: set WHISPER_COMPUTE_TYPE to int8 or float32, give the worker more memory, or set WHISPER_MODEL"
            ) from error
        self._metrics = TranscriptionMetrics(self._model.name, report.device)
        return report

    def close(self) -> None:
        """Ends the engine's process."""
        self._engine.close()

    def handle(self, job: Job[WhisperPayload], ctx: Context) -> Row:
        """Transcribes the job's file, writes the outputs and returns the result."""
        payload = job.payload
        transcription = Transcription(job, ctx, self._metrics)
        with open_source(self._settings.media_root, payload.path) as source:
            places = self._places(payload)
            ctx.progress(0.0, "reading the file")
            digest = source.sha256()
            speech = self._speech(payload)
            settings = settings_hash(speech, self._model.sha256, self._settings.compute_type)
            transcription.take_over(resume_key(digest, settings))
            report = self._engine.call(self._request(source, speech, transcription), transcription.receive)
            source.require_unchanged()
        transcript = build_transcript(transcription.units, self._origin(job, source, digest, settings, report))
        ctx.progress(ALMOST_DONE, "writing the transcript")
        files: dict[str, str] = {kind: FORMATS[kind](transcript) for kind in payload.outputs}
        written = write_outputs(places, files, transcript["language"], job.id.hex[:12])
        if payload.analyze:
            ctx.on_complete(follow_up(job))
        return {**without_words(transcript), **written, "timing": transcription.timing()}

    def _places(self, payload: WhisperPayload) -> list[Destination]:
        """Before the work: a transcript that cannot be written is better known now."""
        if not payload.outputs:
            return []
        return destinations(self._settings.media_root, self._settings.output_root, payload.path)

    def _speech(self, payload: WhisperPayload) -> SpeechRequest:
        return SpeechRequest(
            language=None if payload.language == DETECT else payload.language,
            hotwords=payload.hotwords,
            prompt=payload.prompt,
            word_timestamps=payload.word_timestamps,
            beam_size=self._settings.beam_size,
            unit_seconds=self._settings.unit_seconds,
        )

    def _request(self, source: Source, speech: SpeechRequest, done: Transcription) -> EngineRequest:
        if done.is_complete:  # killed between the last unit and the end
            return EngineRequest(self._model_request, speech)
        return EngineRequest(
            self._model_request,
            replace(speech, language=speech.language or done.language),
            source.root,
            source.path,
            source.identity,
            first_unit=len(done.units),
            start_sample=done.reached_sample,
        )

    def _origin(
        self, job: Job[WhisperPayload], source: Source, sha256: str, settings: str, report: EngineReport
    ) -> Origin:
        return Origin(
            path=source.path,
            sha256=sha256,
            size_bytes=source.identity.size_bytes,
            model=self._model,
            compute_type=report.compute_type,
            device=report.device,
            versions=package_versions(),
            settings_hash=settings,
            language_was_given=job.payload.language != DETECT,
            episode_id=job.payload.episode_id,
        )


def follow_up(job: Job[WhisperPayload]) -> Callable[[psycopg.Connection[Any]], None]:
    """The write that enqueues the analysis, in the transaction that completes this job."""
    analysis: dict[str, Any] = {"transcript_job_id": str(job.id)}
    if job.payload.episode_id is not None:
        analysis["episode_id"] = job.payload.episode_id

    def write(conn: psycopg.Connection[Any]) -> None:
        enqueue(conn, FOLLOW_UP, analysis, parent_id=job.id)

    return write


FORMATS: dict[str, Callable[[Row], str]] = {
    "vtt": lambda transcript: as_vtt(transcript["segments"]),
    "srt": lambda transcript: as_srt(transcript["segments"]),
    "txt": lambda transcript: as_txt(transcript["segments"]),
    "json": lambda transcript: json.dumps(transcript, ensure_ascii=False, indent=1) + "\n",
}
