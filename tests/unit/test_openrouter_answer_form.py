"""The form of a model's answer: what is wrong with it is named, and what is right of it is read."""

from typing import Any

import msgspec
import pytest

from openrouter_client.answer_form import MOST_ITEMS, AnswerForm


class Said(msgspec.Struct, frozen=True):
    title: str = ""
    summary: str = ""
    topics: tuple[str, ...] = ()


FORM = AnswerForm(Said, must_say=frozenset({"title"}))
NAMES = ("title", "summary", "topics")


def test_an_answer_of_the_right_form_is_read() -> None:
    data = {"title": "Ost", "summary": "", "topics": ["smør"], "more": 1}

    assert FORM.problems(data, NAMES) == []
    assert FORM.read(data) == Said("Ost", "", ("smør",))


@pytest.mark.parametrize("data", [None, [], "nei", 7])
def test_what_is_no_object_is_told_so(data: Any) -> None:
    assert FORM.problems(data, NAMES) == ["expected an object with the fields title, summary, topics"]
    assert not FORM.says(data, "title")


def test_everything_that_is_wrong_is_named_for_the_model() -> None:
    assert FORM.problems({"title": " ", "topics": None}, NAMES) == [
        "the field 'summary' is missing",
        "the field 'title' is empty",
        "Expected `array`, got `null` - at `topics`",
    ]
    assert FORM.problems({"title": " "}, ["summary"]) == ["the field 'summary' is missing"], "only what was asked for"


def test_what_has_another_form_is_left_out() -> None:
    assert FORM.read({"title": "Ost", "summary": 7, "topics": "smør"}) == Said("Ost")
    assert FORM.read({"title": "  "}) == Said()


def test_a_list_without_an_end_is_cut_short() -> None:
    assert len(FORM.read({"topics": ["smør"] * 100_000}).topics) == MOST_ITEMS


@pytest.mark.parametrize(
    ("data", "is_said"),
    [({"title": "Ost"}, True), ({"title": "Ost", "topics": 7}, True), ({"title": " "}, False), ({"title": 7}, False),
     ({"summary": "Ost"}, False)],
)  # fmt: skip
def test_an_answer_says_a_field_that_is_there_and_in_order(data: Any, is_said: bool) -> None:
    assert FORM.says(data, "title") is is_said
