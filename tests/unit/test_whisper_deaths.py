"""Which runs of a job count as deaths of the engine on a unit."""

from typing import Any

from services.whisper.deaths import begin_record, deaths_on, end_record


def test_run_that_vanished_with_its_worker_counts_less_than_a_death() -> None:
    begun = [begin_record("key", attempt, 3) for attempt in (1, 2, 3)]

    assert deaths_on(begun[:1], "key", 3, 2).vanished == 1
    assert not deaths_on(begun[:2], "key", 3, 3).is_poison
    assert deaths_on(begun, "key", 3, 4).is_poison
    assert not deaths_on(begun, "key", 4, 4).is_poison
    assert not deaths_on(begun, "other", 3, 4).is_poison
    seen = [begun[0], end_record("key", 3, death="killed"), begun[1]]
    assert not deaths_on(seen, "key", 3, 3).is_poison
    ended = deaths_on([*seen, begun[2]], "key", 3, 4)
    assert ended.is_poison
    assert str(ended) == "killed; runs that ended with their worker: 2"


def test_run_that_was_released_or_went_on_counts_for_nothing() -> None:
    released = [begin_record("key", 1, 3)] * 5
    went_on = [begin_record("key", 1, 2), {"key": "key", "index": 2}, begin_record("key", 2, 3)]
    unreadable: list[Any] = [None, "text", {"key": "key", "run": 1}, {"key": "key", "run": {"attempt": "1"}}]

    assert deaths_on(released, "key", 3, 1).vanished == 0
    assert deaths_on(went_on, "key", 2, 3).vanished == 0
    assert deaths_on(went_on, "key", 3, 3).vanished == 2
    assert deaths_on(unreadable, "key", 0, 1).vanished == 0
