"""Every reason of explain_job becomes a sentence, whatever stands in its detail."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from sidelinja_jobs.cli.reasons import REASONS, sentence
from sidelinja_jobs.cli.rows import ReasonRow

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
BEFORE, AFTER = "2026-11-29T11:58:00+00:00", "2026-11-29T12:05:00+00:00"
SENTENCES: list[tuple[str, dict[str, Any], str]] = [
    ("completed", {"at": BEFORE}, "It completed 2m00s ago."),
    ("cancelled", {"at": BEFORE, "by": "kari"}, "It was cancelled 2m00s ago by kari. `jobs retry` runs it after all."),
    ("failed", {"at": BEFORE, "attempts": 1, "max_attempts": 3, "error_class": "OSError", "error_msg": "borte.\nmer"},
     "It ended in error 2m00s ago after 1 failure of at most 3 (OSError: borte). `jobs retry` runs it anew."),
    ("running", {"since": BEFORE, "attempt": 2, "max_attempts": 3, "worker_id": "w1", "progress": 0.5},
     "It is running: attempt 2/3 at worker w1, begun 2m00s ago, 50% done."),
    ("running", {"attempt": 1, "max_attempts": 3},
     "It is running: attempt 1/3 at worker unknown, begun at an unknown time."),
    ("cancel_requested", {"at": BEFORE}, "It was asked to stop 2m00s ago; its worker sees that at its next heartbeat."),
    ("lease_expired", {"lease_until": BEFORE, "worker_id": "w1", "worker_alive": False},
     "Its lease ran out 2m00s ago: worker w1 is gone. The next sweep of any worker puts it back; with no worker "
     "running, nobody sweeps."),
    ("lease_expired", {"lease_until": BEFORE, "worker_id": "w1", "worker_alive": False, "worker_seen_at": BEFORE},
     "Its lease ran out 2m00s ago: worker w1 was last heard of 2m00s ago. The next sweep of any worker puts it back; "
     "with no worker running, nobody sweeps."),
    ("worker_gone", {"lease_until": AFTER, "worker_id": "w1"},
     "Worker w1 is gone; the job is put back when its lease ends, in 5m00s."),
    ("no_lease", {"longest_run_seconds": 21600},
     "A program that keeps no lease runs it; it is put back after 6h00m."),
    ("scheduled", {"until": AFTER}, "Its time has not come: it is scheduled in 5m00s."),
    ("postponed", {"until": AFTER, "postponements": 2, "why": "kvote"},
     "Its worker put it off, for the 2nd time; it comes up again in 5m00s: kvote."),
    ("postponed", {"until": AFTER, "postponements": 0, "why": "kvote"},
     "Its worker put it off; it comes up again in 5m00s: kvote."),
    ("waiting_after_error", {"until": AFTER, "attempts": 2, "max_attempts": 3},
     "It failed 2 times of at most 3. Its next attempt is in 5m00s; `jobs retry` runs it now."),
    ("type_paused", {"since": BEFORE, "origin": "operator", "until": AFTER, "why": "vedlikehold"},
     "Its type was paused 2m00s ago by operator, it resumes in 5m00s: vedlikehold. `jobs resume` ends that."),
    ("unknown_type", {"job_type": "x"},
     "Nobody works jobs of type x: it has no row in job_type and no worker. Is it misspelt?"),
    ("no_worker", {"job_type": "x"}, "No worker of x is alive. Start one; `jobs workers` shows who is there."),
    ("workers_busy", {"workers": 1}, "The only worker of its type is busy."),
    ("workers_busy", {"workers": 2}, "All 2 workers of its type are busy."),
    ("jobs_ahead", {"count": 1, "or_more": False}, "1 due job comes before it."),
    ("jobs_ahead", {"count": 10000, "or_more": True}, "10000 or more due jobs come before it."),
    ("ready", {"since": BEFORE}, "Nothing stands in its way, due 2m00s ago: a worker takes it at its next look."),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "detail", "words"), SENTENCES)
def test_reason_becomes_a_sentence(reason: str, detail: dict[str, Any], words: str) -> None:
    assert sentence(ReasonRow(reason=reason, detail=json.dumps(detail)), NOW) == words


def test_every_reason_is_tried_here() -> None:
    assert {reason for reason, _, _ in SENTENCES} == REASONS


def test_times_that_python_cannot_hold_are_named_as_they_stand() -> None:
    row = ReasonRow(reason="type_paused", detail='{"since": "infinity", "until": "-infinity", "origin": "worker"}')

    assert "paused infinity by worker, it resumes -infinity" in sentence(row, NOW)


def test_reason_of_a_newer_database_is_shown_as_it_is() -> None:
    assert sentence(ReasonRow(reason="new_reason", detail='{"a": "æ"}'), NOW) == 'new_reason: {"a": "æ"}'


@pytest.mark.parametrize(("number", "word"), [(1, "1st"), (3, "3rd"), (11, "11th"), (12, "12th"), (22, "22nd")])
def test_ordinals(number: int, word: str) -> None:
    row = ReasonRow(reason="postponed", detail=json.dumps({"until": AFTER, "postponements": number}))

    assert f"for the {word} time" in sentence(row, NOW)
