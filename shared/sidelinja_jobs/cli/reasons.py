"""The reasons of explain_job in words.

The codes are a closed list, written down in the function's comment (db/init); a test holds the two together.
"""

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

from sidelinja_jobs.cli.durations import brief, relative
from sidelinja_jobs.cli.rows import ReasonRow
from sidelinja_jobs.cli.text import cut, first_line

Detail = dict[str, Any]

_ERROR_COLUMNS = 160


def sentence(row: ReasonRow, now: datetime) -> str:
    """One reason as a sentence."""
    detail: Detail = json.loads(row.detail)
    return _SENTENCES.get(row.reason, _unknown)(detail | {"reason": row.reason}, now)


def _completed(detail: Detail, now: datetime) -> str:
    return f"It completed {_when(detail, 'at', now)}."


def _cancelled(detail: Detail, now: datetime) -> str:
    return f"It was cancelled {_when(detail, 'at', now)}{_by(detail)}. `jobs retry` runs it after all."


def _failed(detail: Detail, now: datetime) -> str:
    return (
        f"It ended in error {_when(detail, 'at', now)} after {_count(detail['attempts'], 'failure')} of at most "
        f"{detail['max_attempts']}{_error(detail)}. `jobs retry` runs it anew."
    )


def _running(detail: Detail, now: datetime) -> str:
    share = f", {detail['progress']:.0%} done" if "progress" in detail else ""
    note = f" ({first_line(detail['progress_note'])})" if detail.get("progress_note") else ""
    return (
        f"It is running: attempt {detail['attempt']}/{detail['max_attempts']} at worker "
        f"{detail.get('worker_id', 'unknown')}, begun {_when(detail, 'since', now)}{share}{note}."
    )


def _cancel_requested(detail: Detail, now: datetime) -> str:
    return f"It was asked to stop {_when(detail, 'at', now)}; its worker sees that at its next heartbeat."


def _lease_expired(detail: Detail, now: datetime) -> str:
    if detail["worker_alive"]:
        state = "lives, but does not renew it"
    elif detail.get("worker_seen_at"):
        state = f"was last heard of {_when(detail, 'worker_seen_at', now)}"
    else:
        state = "is gone"
    return (
        f"Its lease ran out {_when(detail, 'lease_until', now)}: worker {detail.get('worker_id')} {state}. "
        "The next sweep of any worker puts it back; with no worker running, nobody sweeps."
    )


def _worker_gone(detail: Detail, now: datetime) -> str:
    end = _when(detail, "lease_until", now)
    return f"Worker {detail.get('worker_id')} is gone; the job is put back when its lease ends, {end}."


def _no_lease(detail: Detail, _now: datetime) -> str:
    return f"A program that keeps no lease runs it; it is put back after {brief(detail['longest_run_seconds'])}."


def _scheduled(detail: Detail, now: datetime) -> str:
    return f"Its time has not come: it is scheduled {_when(detail, 'until', now)}."


def _postponed(detail: Detail, now: datetime) -> str:
    why = f": {first_line(detail['why'])}" if detail.get("why") else ""
    # What waits for its turn in line is not counted.
    times = f", for the {_ordinal(detail['postponements'])} time" if detail["postponements"] else ""
    return f"Its worker put it off{times}; it comes up again {_when(detail, 'until', now)}{why}."


def _waiting_after_error(detail: Detail, now: datetime) -> str:
    return (
        f"It failed {_count(detail['attempts'], 'time')} of at most {detail['max_attempts']}{_error(detail)}. "
        f"Its next attempt is {_when(detail, 'until', now)}; `jobs retry` runs it now."
    )


def _type_paused(detail: Detail, now: datetime) -> str:
    until = f"it resumes {_when(detail, 'until', now)}" if "until" in detail else "it stays so until someone resumes it"
    why = f": {first_line(detail['why'])}" if detail.get("why") else ""
    since = _when(detail, "since", now)
    return f"Its type was paused {since} by {detail['origin']}, {until}{why}. `jobs resume` ends that."


def _unknown_type(detail: Detail, _now: datetime) -> str:
    return f"Nobody works jobs of type {detail['job_type']}: it has no row in job_type and no worker. Is it misspelt?"


def _no_worker(detail: Detail, _now: datetime) -> str:
    return f"No worker of {detail['job_type']} is alive. Start one; `jobs workers` shows who is there."


def _workers_busy(detail: Detail, _now: datetime) -> str:
    if detail["workers"] == 1:
        return "The only worker of its type is busy."
    return f"All {detail['workers']} workers of its type are busy."


def _jobs_ahead(detail: Detail, _now: datetime) -> str:
    more = " or more" if detail["or_more"] else ""
    return f"{detail['count']}{more} due {'job comes' if detail['count'] == 1 and not more else 'jobs come'} before it."


def _ready(detail: Detail, now: datetime) -> str:
    return f"Nothing stands in its way, due {_when(detail, 'since', now)}: a worker takes it at its next look."


def _unknown(detail: Detail, _now: datetime) -> str:
    rest = {key: value for key, value in detail.items() if key != "reason"}
    return f"{detail['reason']}: {json.dumps(rest, ensure_ascii=False)}"


_SENTENCES: dict[str, Callable[[Detail, datetime], str]] = {
    "completed": _completed,
    "cancelled": _cancelled,
    "failed": _failed,
    "running": _running,
    "cancel_requested": _cancel_requested,
    "lease_expired": _lease_expired,
    "worker_gone": _worker_gone,
    "no_lease": _no_lease,
    "scheduled": _scheduled,
    "postponed": _postponed,
    "waiting_after_error": _waiting_after_error,
    "type_paused": _type_paused,
    "unknown_type": _unknown_type,
    "no_worker": _no_worker,
    "workers_busy": _workers_busy,
    "jobs_ahead": _jobs_ahead,
    "ready": _ready,
}
REASONS = frozenset(_SENTENCES)


def _when(detail: Detail, field: str, now: datetime) -> str:
    text = detail.get(field)
    if text is None:
        return "at an unknown time"
    try:
        return relative(datetime.fromisoformat(text), now)
    except ValueError:
        # infinity, or a year that Python cannot hold
        return str(text)


def _error(detail: Detail) -> str:
    parts = [detail.get("error_class"), first_line(detail.get("error_msg") or "")]
    text = ": ".join(part for part in parts if part)
    return f" ({cut(text, _ERROR_COLUMNS).rstrip('.')})" if text else ""


def _by(detail: Detail) -> str:
    return f" by {detail['by']}" if detail.get("by") else ""


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number % 100 not in (11, 12, 13) else "th"
    return f"{number}{ending}"
