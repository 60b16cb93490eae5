"""Material in numbered pieces: which of them go together, and which one a model means."""

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openrouter_client.parts import MOST_PART_TOKENS, grouped, named, part_tokens

ITEMS = [f"item {number}" for number in range(1, 8)]


@pytest.mark.parametrize("reference", ["B7", "b7", "[B7]", " B7. ", "7", 7, "B 7", "«B7»", "B07"])
def test_an_item_is_meant_by_each_way_to_write_it(reference: object) -> None:
    assert named(reference, ITEMS, "B") == "item 7"


@pytest.mark.parametrize(
    "reference", ["B0", "B8", "P7", "B-1", "", "Bx", "B1-B2", "del 2", "B" + "9" * 30, None, True, 1.5, ["B1"]]
)
def test_what_means_no_item_finds_none(reference: object) -> None:
    assert named(reference, ITEMS, "B") is None


@pytest.mark.parametrize("text", [" " * 3_000_000, "B" + " " * 3_000_000, "-" * 3_000_000, "1" * 3_000_000])
def test_a_reference_without_an_end_is_given_up_at_once(text: str) -> None:
    started = time.process_time()

    assert named(text, ITEMS, "B") is None
    assert time.process_time() - started < 1


SIZES = st.lists(st.integers(1, 400), min_size=1, max_size=200)


@given(SIZES, st.integers(400, 5000))
def test_groups_are_the_items_in_order_and_hold_what_they_may(sizes: list[int], most: int) -> None:
    groups = grouped(sizes, lambda size: size, most)

    assert [size for group in groups for size in group] == sizes
    assert all(group and sum(group) <= most for group in groups)
    assert all(sum(group) + following[0] > most for group, following in pairwise(groups))


def test_what_fits_nowhere_is_a_group_of_its_own() -> None:
    assert grouped([1, 9, 1, 1], lambda size: size, 3) == [[1], [9], [1, 1]]


@given(SIZES, st.integers(800, 100_000))
def test_parts_of_a_text_fit_the_room_and_are_of_about_the_same_size(sizes: list[int], room: int) -> None:
    limit, most = min(room, MOST_PART_TOKENS), part_tokens(sizes, room)
    parts = grouped(sizes, lambda size: size, most)

    assert most <= limit
    assert most == limit or len(parts) <= -(-sum(sizes) // limit), "no more of them for being alike"
    assert all(sum(part) > most - max(sizes) for part in parts[:-1])
