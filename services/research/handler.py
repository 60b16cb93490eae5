"""The handler of research_clip: a paste in, a clean structured clip out.

Stage A (cleaner.py and its neighbours) always runs, in a process of its own. Stage B, a model that describes what
stage A left, fits in at `Enricher`: it gets the finished clip and gives it back with its own fields filled.
"""

from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn, Protocol

from services.research.cleaner import Paste
from services.research.cleaning_process import Cleaner
from services.research.clip import Clip
from services.research.payload import MOST_HTML_BYTES, MOST_TEXT_BYTES, ClipPayload
from services.research.settings import ResearchSettings
from sidelinja_jobs import ComeBackLaterError, Context, Job, PermanentError

NO_MODEL = "no_llm"
_COME_BACK, _MOST_WAITS = timedelta(hours=1), 18


class Enricher(Protocol):
    """Stage B: a model that adds summary, topics, claims and facts to a clip, and never changes its text."""

    @property
    def is_usable(self) -> bool:
        """Whether there is a model to ask."""
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
        can_ask = self._enricher is not None and self._enricher.is_usable
        if payload.mode == "full" and not can_ask:
            _wait_for_model(ctx)
        ctx.progress(0.0, "cleaning")
        try:
            clip = self._cleaner.clean(Paste(payload.text, payload.html, payload.source_url, payload.pasted_there))
        finally:
            self._cleaner.between_jobs()
        if payload.mode != "clean_only":
            if self._enricher is not None and can_ask:
                clip = self._enricher.enrich(clip, job, ctx)
            else:
                clip["quality"]["warnings"].append(NO_MODEL)
        return {**clip, **payload.ids, "note": payload.note}


def _require_size(name: str, text: str, most: int) -> None:
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    if size > most:
        raise PermanentError(
            f"{name} has {size} bytes in UTF-8, at most {most} are taken. Next: paste the part that matters",
            error_class="too_long",
        )


def _wait_for_model(ctx: Context) -> NoReturn:
    """This job alone waits, since jobs of the other modes need no model; after most of a day it gives up.

    The queue's own bound (20 times, 24 hours) would end the job without saying that a key is missing.
    """
    reason = "mode full needs a language model, and none is set up here. Next: give a key (make key), or use mode auto"
    if len(ctx.checkpoints()) >= _MOST_WAITS:
        ctx.drop_checkpoints()
        raise PermanentError(f"{reason}; waited {_MOST_WAITS} times", error_class="no_api_key")
    ctx.checkpoint({"waits_for": "no_api_key"})
    raise ComeBackLaterError(reason, until=datetime.now(UTC) + _COME_BACK, error_class="no_api_key")
