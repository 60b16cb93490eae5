"""What a result looks like to a person, by its job type: pure functions from JSON text to what a template shows.

A result is foreign matter, whatever its job type says of it: one that has not the shape that a view needs is shown as a
JSON tree.
"""

from dataclasses import dataclass
from typing import Any

import msgspec

from services.admin.views import analysis, clip, json_tree, stats_run, transcript
from sidelinja_jobs.redaction import redact_json

_VIEWS = {
    "whisper_transcribe": ("transcript", transcript.read_transcript),
    "openrouter_analyze": ("analysis", analysis.read_analysis),
    "research_clip": ("clip", clip.read_clip),
    "stats_parse": ("stats_run", stats_run.read_stats_run),
}


@dataclass(frozen=True)
class View:
    """`kind` names the template; `content` is what it shows."""

    kind: str
    content: Any


def view_of(job_type: str, result: str) -> View:
    """The view that fits."""
    kind, read = _VIEWS.get(job_type, ("", None))
    if read is not None:
        try:
            return View(kind, read(redact_json(result)))
        except (msgspec.ValidationError, msgspec.DecodeError, RecursionError):
            pass
    return View("tree", json_tree.tree(redact_json(result)))
