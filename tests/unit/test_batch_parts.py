"""The parts of batches that need no database: how many to claim, claiming ahead, JSON that passes quickly."""

import math
import threading
from datetime import datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidelinja_jobs.batches import Pace
from sidelinja_jobs.claiming_ahead import ClaimAhead
from sidelinja_jobs.errors import RefusedError
from sidelinja_jobs.json_text import check_payload, clean_value, decode_payload, encode_payload, encode_result
from sidelinja_jobs.metrics import BulkHistogram
from sidelinja_jobs.models import Rules
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


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_what_passes_quickly_is_what_passes_slowly(value: Any) -> None:
    """The short way for small payloads refuses and keeps exactly what the long way does."""
    try:
        check_payload(value)
    except RefusedError:
        with pytest.raises(RefusedError):
            encode_payload(value)
        return
    try:
        expected = msgspec.json.encode(value)
    except OverflowError:
        return
    assert bytes(encode_payload(value)) == expected
    assert decode_payload(expected.decode(), msgspec.json.Decoder(dict)) == msgspec.json.decode(expected)


@given(JSON)
def test_a_result_is_cleaned_whichever_way_it_takes(value: Any) -> None:
    try:
        expected = msgspec.json.encode(clean_value(value))
    except OverflowError:
        return
    assert msgspec.json.decode(bytes(encode_result(value))) == msgspec.json.decode(expected)


def test_small_payloads_are_refused_for_what_makes_them_unfit() -> None:
    for payload in (
        {"n": math.nan},
        {"t": "\0"},
        {"u": "DATA:audio/mp3;base64,AAAA"},
        {"s": "\ud800"},
        [1],
        {"x": {"y": math.inf}},
    ):
        with pytest.raises(RefusedError):
            encode_payload(payload)
    assert (
        bytes(encode_payload({"none": None, "when": datetime(2026, 1, 1)}))
        == b'{"none":null,"when":"2026-01-01T00:00:00"}'
    )


def test_many_values_make_the_same_histogram_as_each_by_itself() -> None:
    histogram = BulkHistogram("test_batch_seconds", "A test", ["job_type"])
    histogram.observe(("a",), [0.05, 0.1, 0.4, 20_000, -1])
    histogram.observe(("b",), ())

    (family,) = histogram.collect()
    samples = {
        (sample.name, sample.labels["job_type"], sample.labels.get("le")): sample.value for sample in family.samples
    }

    assert samples["test_batch_seconds_bucket", "a", "0.1"] == 3
    assert samples["test_batch_seconds_bucket", "a", "0.5"] == 4
    assert samples["test_batch_seconds_bucket", "a", "14400.0"] == 4
    assert samples["test_batch_seconds_bucket", "a", "+Inf"] == samples["test_batch_seconds_count", "a", None] == 5
    assert samples["test_batch_seconds_sum", "a", None] == pytest.approx(20_000.55)
    assert samples["test_batch_seconds_count", "b", None] == 0
