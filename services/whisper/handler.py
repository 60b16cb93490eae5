"""The handler of whisper_transcribe: audio in, one transcript out.

The worker's process holds the queue, the files and the checkpoints; the engine's process decodes and recognizes. A
finished unit is a checkpoint, so whatever ends a run (kill -9, a lost lease, a restart), the next one goes on at the
first unit that is missing and ends with the same text.
"""

from collections.abc import Callable, Sequence
from typing import Any

import psycopg

from services.whisper.engine_process import Engine, EngineLimits
from services.whisper.formats import rendered
from services.whisper.media import Source
from services.whisper.messages import EngineReport, EngineRequest, ModelRequest, SpeechRequest
from services.whisper.metrics import TranscriptionMetrics
from services.whisper.model import ModelFolder
from services.whisper.outputs import Destination, destinations, places, write_outputs
from services.whisper.payload import DETECT, IDS, WhisperPayload
from services.whisper.progress import ALMOST_DONE
from services.whisper.resume import package_versions, settings_hash
from services.whisper.reuse import find_transcript, outdated
from services.whisper.settings import WhisperSettings
from services.whisper.shows import Speech, speech_of
from services.whisper.tracks import OpenTrack, Timing, TrackContext, first_path, open_tracks
from services.whisper.transcript import Origin, Row, Voice, build_conversation, build_transcript, without_words
from services.whisper.transcription import Transcription
from sidelinja_jobs import ChildError, Context, Job, SettingsError, enqueue
from sidelinja_jobs.volumes import VolumeWatch

FOLLOW_UP = "openrouter_analyze"


class Transcriber:
    """Works jobs with one model and one engine process, which stays warm between jobs."""

    def __init__(self, settings: WhisperSettings, model: ModelFolder) -> None:
        self._settings = settings
        self._model = model
        self._model_request = ModelRequest(
            model.folder, settings.compute_type, settings.cpu_threads, settings.device, settings.batch_size
        )
        limits = EngineLimits(settings.engine_max_jobs, settings.engine_max_rss_mb << 20)
        self._engine = Engine(self._model_request, limits)
        self._metrics: TranscriptionMetrics | None = None
        self._volume_watch = VolumeWatch()

    def load_model(self) -> EngineReport:
        """Starts the engine and loads the model: one that does not load stops the worker, not a job.

        Raises:
            SettingsError: it cannot be loaded.
        """
        try:
            report = self._engine.load()
        except ChildError as error:
            raise SettingsError(
                f"the model in {self._model.folder} cannot be loaded as {self._settings.compute_type}: {error}. "
                "Next: set WHISPER_COMPUTE_TYPE to auto, give the worker more memory, or set WHISPER_MODEL"
            ) from error
        self._metrics = TranscriptionMetrics(self._model.name, report.device)
        return report

    def close(self) -> None:
        """Ends the engine's process."""
        self._engine.close()

    def handle(self, job: Job[WhisperPayload], ctx: Context) -> Row:
        """Transcribes the job's audio, or finds its transcript made before; writes the outputs, returns the result.

        Raises:
            ComeBackLaterError: MEDIA_ROOT or OUTPUT_ROOT is away.
        """
        try:
            with self._volume_watch.waiting_for(*self._settings.volumes):
                return self._handle(job, ctx)
        finally:
            self._engine.between_jobs()

    def _handle(self, job: Job[WhisperPayload], ctx: Context) -> Row:
        payload, timing = job.payload, Timing(job)
        speech = speech_of(payload, ctx)
        request = self._request(payload, speech)
        settings = settings_hash(request, self._model.sha256, self._engine.arithmetic)
        ctx.progress(0.0, "reading the file")
        with open_tracks(self._settings.media_root, payload) as tracks:
            targets = self._targets(payload)
            timing.hashed()
            found = None if payload.force else self._find(payload, speech.language, settings, tracks)
            if found is None:
                transcript, done = self._transcribe(job, ctx, tracks, request, settings)
        ctx.progress(ALMOST_DONE, "writing the transcript")
        mark = job.id.hex[:12]
        if payload.analyze:
            ctx.on_complete(follow_up(job))
        if found is None:
            files = rendered(transcript, payload)
            written = write_outputs(targets, files, transcript["language"], mark)
            return {
                **without_words(transcript),
                **written,
                "show": speech.show,
                "reused": False,
                "timing": timing.total(done),
            }
        place, transcript = found
        ctx.log.info("transcript found, nothing to do", path=place.path("json", transcript["language"]))
        written = _write_again(place, targets, transcript, payload, mark)
        return {**without_words(transcript), **written, "show": speech.show, "reused": True, "timing": timing.total([])}

    def _targets(self, payload: WhisperPayload) -> list[Destination]:
        """Before the work: a transcript that cannot be written is better known now."""
        if not payload.outputs:
            return []
        return destinations(self._settings.media_root, self._settings.output_root, first_path(payload))

    def _request(self, payload: WhisperPayload, speech: Speech) -> SpeechRequest:
        return SpeechRequest(
            language=None if speech.language == DETECT else speech.language,
            hotwords=speech.hotwords,
            prompt=speech.prompt,
            word_timestamps=payload.word_timestamps,
            beam_size=self._settings.beam_size,
            unit_seconds=self._settings.unit_seconds,
        )

    def _find(
        self, payload: WhisperPayload, language: str, settings: str, tracks: Sequence[OpenTrack]
    ) -> tuple[Destination, Row] | None:
        """A transcript of this audio with these settings, as this job would name it."""
        around = places(self._settings.media_root, self._settings.output_root, first_path(payload))
        sources = [(track.speaker, track.sha256) for track in tracks]
        found = find_transcript(around, language, settings, sources)
        if found is None:
            return None
        place, transcript = found
        for name in IDS:  # each in its place: a file whose bytes are right is not written again
            if name in payload.ids:
                transcript[name] = payload.ids[name]
            else:
                transcript.pop(name, None)
        for track, known in zip(tracks, transcript.get("tracks") or [transcript["source"]], strict=True):
            known["path"] = track.source.path
        return place, transcript

    def _transcribe(
        self,
        job: Job[WhisperPayload],
        ctx: Context,
        tracks: Sequence[OpenTrack],
        speech: SpeechRequest,
        settings: str,
    ) -> tuple[Row, list[Transcription]]:
        done: list[Transcription] = []
        for track in tracks:
            transcription = Transcription(TrackContext(ctx, track, tracks, settings), self._metrics)
            transcription.take_over(track.key(settings))
            request = self._engine_request(track.source, speech, transcription)
            report = self._engine.run(request, transcription, attempt=job.attempt, lenient=job.payload.lenient)
            track.source.require_unchanged()
            done.append(transcription)
        origin = self._origin(job, tracks[0], speech, settings, report)
        if not job.payload.tracks:
            return build_transcript(done[0].units, origin), done
        voices = [
            Voice(
                track.speaker or "",
                track.source.path,
                track.sha256,
                track.source.identity.size_bytes,
                transcription.units,
            )
            for track, transcription in zip(tracks, done, strict=True)
        ]
        return build_conversation(voices, origin), done

    def _engine_request(self, source: Source, speech: SpeechRequest, done: Transcription) -> EngineRequest:
        if done.is_complete:  # killed between the last unit and the end
            return EngineRequest(self._model_request, speech)
        return EngineRequest(self._model_request, speech, source.root, source.path, source.identity)

    def _origin(
        self, job: Job[WhisperPayload], first: OpenTrack, speech: SpeechRequest, settings: str, report: EngineReport
    ) -> Origin:
        return Origin(
            path=first.source.path,
            sha256=first.sha256,
            size_bytes=first.source.identity.size_bytes,
            model=self._model,
            compute_type=report.compute_type,
            device=report.device,
            device_note=report.device_note,
            versions=package_versions(),
            settings_hash=settings,
            language_was_given=speech.language is not None,
            ids=job.payload.ids,
        )


def follow_up(job: Job[WhisperPayload]) -> Callable[[psycopg.Connection[Any]], None]:
    """The write that enqueues the analysis, in the transaction that completes this job."""
    analysis = {"transcript_job_id": str(job.id), **job.payload.ids}

    def write(conn: psycopg.Connection[Any]) -> None:
        enqueue(conn, FOLLOW_UP, analysis, parent_id=job.id)

    return write


def _write_again(
    place: Destination, targets: list[Destination], transcript: Row, payload: WhisperPayload, mark: str
) -> Row:
    """Writes the outputs of a transcript that was found, where one is missing or holds something else."""
    files, language = rendered(transcript, payload), transcript["language"]
    if outdated(place, files, language):
        return write_outputs(targets, files, language, mark)
    paths = {kind: place.path(kind, language) for kind in files}
    return {"outputs": paths, "output_root": place.root_name if paths else None}
