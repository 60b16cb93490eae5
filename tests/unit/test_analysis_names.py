"""People are those whose names were said, or are known; spelling mistakes of the recognizer are forgiven."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openrouter_client.prose import Prose
from services.openrouter.answers import PersonAnswer
from services.openrouter.names import Names, Person, names_in
from services.openrouter.payload import Hints
from services.openrouter.transcript import Segment, Transcript

SAID = Transcript(
    [
        Segment("Velkommen. I dag har vi Fredrik Holen Bjordal i studio.", 0.0, 5.0),
        Segment("Og Kari har med seg ost fra Jæren.", 5.0, 9.0),
        Segment("Takk, sier Anne-Grete Solbakken. Nordmann flest liker ost.", 9.0, 14.0),
    ]
)


def people(*names: str, hints: Hints | None = None) -> tuple[list[Person], dict[str, int]]:
    dropped = Counter[str]()
    known = hints or Hints()
    answers = [PersonAnswer(name, "forsker", True) for name in names]
    found = Names(SAID, known).people(answers, Prose(SAID.text), dropped)
    return found, dict(dropped)


@pytest.mark.parametrize(
    ("name", "mentions"),
    [
        ("Fredrik Holen Bjordal", [0]),
        ("Fredric Holen Bjørdal", [0]),
        ("Fredrik Bjordal", [0]),
        ("Anne-Grete Solbakken", [2]),
        ("Anne-Grethe Solbakken", [2]),
        ("Kari", [1]),
    ],
)
def test_a_name_that_was_said_is_found_where_it_was(name: str, mentions: list[int]) -> None:
    assert Names(SAID, Hints()).mentions(name) == mentions


@pytest.mark.parametrize(
    "name",
    ["Kari Nordmann", "Fredrik Solbakken", "Bjordal Fredrik", "Ola", "Jonas Gahr Støre", "", "…", "a", "I", "42"],
)
def test_a_name_that_was_not_said_in_full_is_dropped(name: str) -> None:
    found, dropped = people(name)

    assert found == []
    assert sum(dropped.values()) == 1


def test_known_names_count_and_decide_the_spelling_and_who_is_host() -> None:
    hints = Hints(hosts=("Kari Nordmann",), guests=("Fredric Holen Bjørdal",))

    found, dropped = people("Kari", "Fredrik Holen Bjordal", "Kari Normann", hints=hints)

    assert [(person.name, person.is_guest, person.is_known) for person in found] == [
        ("Kari Nordmann", False, True),
        ("Fredric Holen Bjørdal", True, True),
    ]
    assert dropped == {"twice": 1}


@pytest.mark.parametrize(
    ("said", "name", "is_alike"),
    [
        ("Kari", "Kaja", False),
        ("Bjordal", "Bjørdal", True),
        ("Bjordal", "Bjørndal", False),
        ("Haukelidalsbakken", "Haugelidalsbaken", True),
        ("Haukelidalsbakkensmoen", "Haugelidalsbakensmoen", True),
        ("Haukelidalsbakkensmoen", "Haugelidolsbakensmøen", False),  # four letters
    ],
)
def test_a_recognizer_may_miss_a_letter_in_five_three_at_most(said: str, name: str, is_alike: bool) -> None:
    spoken = Transcript([Segment(f"Her er {said}.", None, None)])

    assert Names(spoken, Hints()).mentions(name) == ([0] if is_alike else [])


def test_a_first_name_is_known_where_one_alone_bears_it() -> None:
    two = Hints(hosts=("Kari Nordmann",), guests=("Kari Hansen",))

    assert [person.name for person in people("Kari", hints=two)[0]] == ["Kari"]


@settings(deadline=None)
@given(st.text(max_size=60), st.text(min_size=1, max_size=60).filter(str.strip))
def test_any_name_on_any_text_is_decided(name: str, text: str) -> None:
    names = Names(Transcript([Segment(text.strip(), 0.0, 1.0)]), Hints())

    assert set(names.mentions(name)) <= {0}


def test_names_in_prose_are_seen() -> None:
    text = "I studio: Anne-Grete Solbakken og Ola Nordmann Hansen. Norge vant. Fra Oslo i dag."

    assert names_in(text) == ["Anne-Grete Solbakken", "Ola Nordmann Hansen"]
