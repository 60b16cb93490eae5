"""The handler of research_clip: a paste in, a clean structured clip out.

Stage A (cleaner.py and its neighbours) always runs, in a process of its own. Stage B, a model that describes what
stage A left, is behind `Enricher`. What keeps a model from answering is this job's matter alone: the type is never
paused for it, since jobs of the other modes need no model.
"""

from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn, Protocol

import msgspec

from services.research.cleaning_process import Cleaner, SealedClip, opened
from services.research.paste import Clip, Paste
from services.research.payload import MOST_HTML_BYTES, MOST_TEXT_BYTES, ClipPayload
from services.research.settings import ResearchSettings
from sidelinja_jobs import ComeBackLaterError, Context, Job, PauseJobTypeError, PermanentError
from sidelinja_jobs.errors import HandlerError

NO_MODEL = "no_llm"
NO_KEY = "no_api_key"
# What a warning says beside no_llm of a model that is there and cannot be asked, by the class of the error.
_WHY = {
    "auth": "llm_key_refused",
    "credits": "llm_credit_spent",
    "key_limit": "llm_credit_spent",
    "budget_exceeded": "llm_budget_spent",
}
_COME_BACK, _MOST_WAITS = timedelta(hours=1), 18
_MOST_WAITS_AUTO = 2  # somebody looks at the clip that was just pasted: a good minute


class Enricher(Protocol):
    """Stage B: a model that adds summary, topics, claims and facts to a clip, and never changes its text."""

    @property
    def problem(self) -> str | None:
        """The error class of what speaks against asking now; None where nothing does."""
        ...

    def enrich(self, clip: Clip, job: Job[ClipPayload], ctx: Context) -> Clip:
        """The clip with the model's fields."""
        ...


class Researcher:
    """Works jobs with one cleaning process and, where there is one, a model."""

    def __init__(self, settings: ResearchSettings, enricher: Enricher | None = None) -> None:
        self._cleaner = Cleaner(settings)
        self._enricher = enricher

    def close(self) -> None:
        """Ends the cleaning process."""
        self._cleaner.close()

    def handle(self, job: Job[ClipPayload], ctx: Context) -> dict[str, Any]:
        """Cleans the paste; lets a model describe it as the mode says."""
        payload = job.payload
        _require_size("text", payload.text, MOST_TEXT_BYTES)
        _require_size("html", payload.html or "", MOST_HTML_BYTES)
        if payload.mode == "full" and (problem := self._problem):
            _wait_for_model(ctx, problem)
        ctx.progress(0.0, "cleaning")
        try:
            sealed = self._cleaner.clean(_paste_of(payload))
        finally:
            self._cleaner.between_jobs()
        clip: Clip = sealed
        if payload.mode == "full":
            clip = self._described_or_wait(sealed, job, ctx)
        elif payload.mode == "auto":
            clip = self._described_if_possible(sealed, job, ctx)
        return {**clip, **payload.ids, "note": payload.note}

    @property
    def _problem(self) -> str | None:
        return self._enricher.problem if self._enricher is not None else NO_KEY

    def _described_or_wait(self, clip: SealedClip, job: Job[ClipPayload], ctx: Context) -> Clip:
        try:
            return self._enrich(clip, job, ctx)
        except PauseJobTypeError as error:
            _wait_for_model(ctx, error.error_class, error)

    def _described_if_possible(self, clip: SealedClip, job: Job[ClipPayload], ctx: Context) -> Clip:
        """The clip, with a model's fields where one answers in reasonable time: the cleaned text is worth having."""
        if problem := self._problem:
            return _offline(clip, problem)
        reason: HandlerError
        try:
            return self._enrich(clip, job, ctx)
        except (PauseJobTypeError, PermanentError) as error:
            reason = error
        except ComeBackLaterError as error:
            if len(ctx.checkpoints()) < _MOST_WAITS_AUTO:
                ctx.checkpoint({"waits_for": error.error_class})
                raise
            reason = error
        except HandlerError as error:
            if job.attempt < job.max_attempts:
                raise
            reason = error
        ctx.log.warning("finished without a model", error_class=reason.error_class, reason=str(reason)[:500])
        return _offline(clip, reason.error_class)

    def _enrich(self, clip: SealedClip, job: Job[ClipPayload], ctx: Context) -> Clip:
        if self._enricher is None:
            raise RuntimeError("no model was given")
        return self._enricher.enrich(opened(clip), job, ctx)


def _paste_of(payload: ClipPayload) -> Paste:
    """The paste, which the payload then no longer holds: it is needed once, and can be most of the worker's memory."""
    text, html = payload.text.encode(), payload.html.encode() if payload.html is not None else None
    for name in ("text", "html"):
        msgspec.structs.force_setattr(payload, name, "")
    return Paste(text, html, payload.source_url, payload.pasted_there)


def _require_size(name: str, text: str, most: int) -> None:
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    if size > most:
        raise PermanentError(
            f"{name} has {size} bytes in UTF-8, at most {most} are taken. Next: paste the part that matters",
            error_class="too_long",
        )


def _offline(clip: SealedClip, problem: str) -> Clip:
    """The clip as it is, saying that no model described it, and why where that is not for want of a key."""
    why = [] if problem == NO_KEY else [_WHY.get(problem, f"llm_failed: {problem}")]
    quality = msgspec.json.decode(clip["quality"])
    return {**clip, "quality": {**quality, "warnings": [*quality["warnings"], NO_MODEL, *why]}}


def _wait_for_model(ctx: Context, problem: str, error: PauseJobTypeError | None = None) -> NoReturn:
    """This job alone waits; after most of a day it gives up.

    The queue's own bound (20 times, 24 hours) would end the job without saying that a key is missing.
    """
    reason = "mode full needs a language model, and none is set up here. Next: give a key (make key), or use mode auto"
    if problem != NO_KEY:
        told = error or f"the model cannot be asked now ({problem}). Next: see the worker's log"
        reason = f"mode full needs a language model: {told}, or use mode auto"
    if len(ctx.checkpoints()) >= _MOST_WAITS:
        ctx.drop_checkpoints()
        raise PermanentError(f"{reason}; waited {_MOST_WAITS} times", error_class=problem)
    ctx.checkpoint({"waits_for": problem})
    raise ComeBackLaterError(reason, until=datetime.now(UTC) + _COME_BACK, error_class=problem)
