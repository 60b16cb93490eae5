"""The handler of openrouter_analyze: a transcript in, titles, summaries, chapters, people and quotes out.

What the model answers is a proposal. Times, quotes and names are looked up in the transcript, and what is not found
there is dropped and counted. Answers are kept in the ledger, so a run after a crash asks only what was not answered.
"""

import time
from typing import Any

from openrouter_client.asking import LanguageModel
from openrouter_client.wording import output_language
from services.openrouter.analysis import Analyst
from services.openrouter.blocks import make_blocks
from services.openrouter.files import find_target, render_files
from services.openrouter.languages import spoken_language
from services.openrouter.payload import AnalyzePayload
from services.openrouter.questions import make_asker
from services.openrouter.result import build_result, check_draft
from services.openrouter.settings import AnalyzeSettings
from services.openrouter.source import read_transcript
from sidelinja_jobs import Context, Job
from sidelinja_jobs.errors import HandlerError
from sidelinja_jobs.volumes import VolumeWatch

CHECKING, WRITING = 0.95, 0.98


class Analyzer:
    """Works jobs with one model. `model_name` is the one that is asked for."""

    def __init__(self, settings: AnalyzeSettings, model: LanguageModel, model_name: str) -> None:
        self._settings, self._model, self._model_name = settings, model, model_name
        self._has_looked = False
        self._volume_watch = VolumeWatch()

    def handle(self, job: Job[AnalyzePayload], ctx: Context) -> dict[str, Any]:
        """Analyses the job's transcript, writes the files that it wants, returns the result."""
        started = time.monotonic()
        payload = job.payload
        self._model.require_usable()
        ctx.progress(0.0, "reading the transcript")
        transcript = read_transcript(payload, ctx, job.created_at)
        with self._volume_watch.waiting_for(*self._settings.volumes):
            target = find_target(self._settings.output_root, payload, transcript.audio_path, job.id)
        spoken = spoken_language(transcript)
        wanted = None if payload.output_language == "auto" else payload.output_language
        language = output_language(wanted, spoken.language, self._settings.language)
        blocks = make_blocks(transcript)
        self._look_at_model(ctx)
        asker = make_asker(job.id, language, frozenset(payload.wants), payload.hints, self._model.context_tokens)
        analyst = Analyst(self._model, job, ctx, asker, transcript, blocks, single_tokens=self._settings.single_tokens)
        if not analyst.fits_one_call:
            self._require_context()
        draft = analyst.draft()
        ctx.progress(CHECKING, "checking the answer against the transcript")
        checked = check_draft(draft, blocks, transcript, payload)
        result = build_result(payload, transcript, spoken, language, draft, checked, model=self._model_name)
        if target is not None:
            ctx.progress(WRITING, "writing the files")
            files = render_files(payload.outputs, result, payload.hints.show_title)
            with self._volume_watch.waiting_for(*self._settings.volumes):
                result["outputs"] = target.write(files, job.id.hex[:12])
        else:
            result["outputs"] = {}
        result["provenance"]["duration_ms"] = round((time.monotonic() - started) * 1000)
        return result

    def _require_context(self) -> None:
        """Raises HandlerError where the context would be a guess: the parts would be others than in another run."""
        if not self._model.catalogue.is_known and not self._model.client.profile.context_tokens:
            raise HandlerError(
                "the catalogue of models could not be had, so nobody knows how much of the transcript fits into one "
                "call. Next: wait, or set OPENROUTER_CONTEXT_TOKENS",
                error_class="upstream",
            )

    def _look_at_model(self, ctx: Context) -> None:
        """Once per process: says what a person should know of the model before it is asked."""
        if not self._has_looked and (problem := self._model.catalogue.problem(self._model_name)):
            ctx.log.warning("model has a problem", model=self._model_name, problem=problem)
        self._has_looked = True
