"""Why a job is not running, in the words of the page: the closed list of explain_job (db/init) as sentences."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from markupsafe import Markup, escape

from services.admin.messages import first_line
from services.admin.words import Speech

REASONS = (
    "completed", "cancelled", "failed", "running", "cancel_requested", "lease_expired", "worker_gone", "no_lease",
    "scheduled", "postponed", "waiting_after_error", "type_paused", "unknown_type", "no_worker", "workers_busy",
    "jobs_ahead", "ready",
)  # fmt: skip
_NAMED = (
    "at", "since", "until", "lease_until", "worker_id", "by", "job_type", "origin", "attempt", "max_attempts",
    "longest_run_seconds",
)  # fmt: skip
_LONGEST = 300
PAUSE_ORIGINS = ("operator", "worker", "budget")
Detail = dict[str, Any]


def sentence(reason: str, detail: Detail, speech: Speech) -> Markup:
    """One reason; a code that is none of the list stands as it is."""
    if reason not in REASONS:
        return escape(reason)
    key, values = f"reason.{reason}", dict(detail)
    if variant := _VARIANTS.get(reason):
        key = f"reason.{variant(detail)}"
    shown = {name: _shown(name, value, speech) for name, value in values.items()}
    shown["n"] = detail.get("count", detail.get("workers", detail.get("attempts", detail.get("postponements", 0))))
    shown.setdefault("why", "")
    for name in _NAMED:  # the function leaves out what is not known
        shown.setdefault(name, escape(speech.t("reason.unknown")))
    return _said(key, shown, speech)


def _said(key: str, shown: dict[str, Any], speech: Speech) -> Markup:
    """The word with its values put in as HTML: times are elements, texts are escaped."""
    n = shown["n"] if isinstance(shown["n"], int) else 0
    marks = {name: f"\ue000{name}\ue001" for name in shown if name != "n"}
    text = str(escape(speech.t(key, n=n, **marks)))
    for name, mark in marks.items():
        text = text.replace(mark, str(escape(shown[name])))
    return Markup(text)  # noqa: S704 - each part was escaped on its way in


def _shown(name: str, value: Any, speech: Speech) -> Any:
    if name in ("at", "since", "until", "lease_until", "worker_seen_at"):
        moment = _moment(value)
        return escape(str(value)) if moment is None else speech.ago(moment)
    if name == "longest_run_seconds":
        return escape(speech.duration(value))
    if name == "origin" and value in PAUSE_ORIGINS:
        return escape(speech.t(f"reason.origin_{value}"))
    if isinstance(value, str):
        return escape(first_line(value, _LONGEST))
    return escape(speech.number(value) if isinstance(value, int) else str(value))


def _moment(value: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None


def _lease(detail: Detail) -> str:
    return "lease_expired_alive" if detail.get("worker_alive") else "lease_expired"


def _paused(detail: Detail) -> str:
    return "type_paused_until" if detail.get("until") else "type_paused"


def _ahead(detail: Detail) -> str:
    return "jobs_ahead_more" if detail.get("or_more") else "jobs_ahead"


def _postponed(detail: Detail) -> str:
    """What waits for its turn in line is not counted."""
    return "postponed" if detail.get("postponements") else "postponed_uncounted"


_VARIANTS: dict[str, Callable[[Detail], str]] = {
    "lease_expired": _lease,
    "type_paused": _paused,
    "postponed": _postponed,
    "jobs_ahead": _ahead,
}
