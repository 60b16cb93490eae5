"""The parts of batches that need no database: how many to claim, and claiming ahead."""

import threading
from typing import Any

from sidelinja_jobs.claiming_ahead import ClaimAhead
from sidelinja_jobs.models import Rules
from sidelinja_jobs.pace import Pace
from tests.waiting import wait_until


def pace(batch_size: int = 100, lease_seconds: int = 40) -> Pace:
    return Pace(Rules(lease_seconds, 600, 0, batch_size, 1000))


def test_no_more_is_claimed_than_fits_into_a_quarter_of_the_lease() -> None:
    slow = pace()
    assert slow.limit == 100, "nothing is known yet"

    limits = {}
    for seconds in (0.001, 0.1, 0.5, 4.0, 60.0):
        slow.note_batch(seconds * 10, 10)
        limits[seconds] = slow.limit

    assert limits == {0.001: 100, 0.1: 100, 0.5: 20, 4.0: 2, 60.0: 1}


def test_only_what_is_quick_is_claimed_ahead() -> None:
    known = pace()
    assert not known.is_ahead_worth(100), "nothing is known yet"

    known.note_batch(0.5, 100)
    assert known.is_ahead_worth(100)
    known.note_batch(5.0, 100)
    assert not known.is_ahead_worth(100)


def test_a_job_waits_for_others_only_after_another_quick_one() -> None:
    seen = pace()

    assert [seen.note_job(seconds) for seconds in (0.01, 0.01, 0.2, 0.01, 0.01)] == [False, True, False, False, True]


def test_what_is_claimed_ahead_is_handed_over_once_or_given_back() -> None:
    given_back: list[Any] = []
    claims = iter([["a"], ["b"], ["c"]])
    ahead = ClaimAhead(lambda: next(claims), given_back.append, keep_seconds=0.05)  # type: ignore[arg-type]

    assert ahead.take() == [], "not asked"
    ahead.ask()
    ahead.ask()
    assert (ahead.take(), ahead.take()) == (["a"], [])
    ahead.ask()
    wait_until(lambda: given_back == [["b"]], 5)
    assert ahead.take() == []
    ahead.ask()
    ahead.close()

    assert given_back == [["b"], ["c"]]
    wait_until(lambda: not any(thread.name == "claims" for thread in threading.enumerate()), 5)
