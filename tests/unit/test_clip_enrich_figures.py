"""Numbers and dates of what a model says, looked for in what it quotes."""

import pytest

from services.research.figures import figures_in


@pytest.mark.parametrize(
    ("said", "quote"),
    [
        ("1000", "om lag 1 000 båter"),
        ("1.000", "om lag 1000 båter"),
        ("1 000", "om lag 1.000 båter"),
        ("1,000", "some 1000 boats"),
        ("1 200 000", "1.200.000 kroner"),
        ("1.234,5", "1 234,5 tonn"),
        ("1.5", "1,5 meter"),
        ("1,50", "1.5 meter"),
        ("12", "mellom 10 og 12 dager"),
        ("12", "10–12 dager"),
        ("-5", "minus 5 grader"),
        ("17:05", "klokka 17.05"),
        ("2024-05-01", "vedtatt 1. mai 2024"),
        ("1.5.2024", "adopted on May 1, 2024"),
        ("mai 2024", "vedtatt 01.05.2024"),
        ("2024", "vedtatt 01.05.2024"),
        ("May", "i mai i år"),
        ("tolv", "de tolv båtene"),
        ("twelve", "de tolv båtene"),
        ("tolv", "de 12 båtene"),
        ("50 prosent", "50 % av båtene"),
        ("3 millioner", "3 mill. kroner"),
        ("billion 2", "2 milliarder kroner"),
        ("2½", "2½ time"),
        ("et tall som ikke står der", "et helt annet"),
    ],
)
def test_same_figure_is_found_however_it_is_written(said: str, quote: str) -> None:
    assert figures_in(quote).holds(figures_in(said))


@pytest.mark.parametrize(
    ("said", "quote"),
    [
        ("1001", "om lag 1 000 båter"),
        ("100", "om lag 1 000 båter"),
        ("1,5", "15 meter"),
        ("15", "1,5 meter"),
        ("5", "det var -5 grader"),
        ("-5", "det var 5 grader"),
        ("12", "de tolv båtene"),
        ("elleve", "de tolv båtene"),
        ("50 prosent", "50 båter"),
        ("3 millioner", "3 kroner"),
        ("3 milliarder", "3 millioner kroner"),
        ("2024-05-02", "vedtatt 1. mai 2024"),
        ("1. mai 2024", "vedtatt i mai 2024"),
        ("2024-05-01T12:00", "vedtatt 1. mai 2024"),
        ("2024-05-01", "vedtatt i går"),
        ("juni", "i mai i år"),
        ("fredag", "på torsdag"),
        ("2½", "2¼ time"),
    ],
)
def test_another_figure_is_not_found(said: str, quote: str) -> None:
    assert not figures_in(quote).holds(figures_in(said))


def test_words_that_are_numbers_in_another_language_do_not_count() -> None:
    assert figures_in("en brann ombord").holds(figures_in("the fire may spread to the rooms"))
