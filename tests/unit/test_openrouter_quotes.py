"""Quotes are slices of the source, or they are nothing."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openrouter_client.quotes import LEAST_LETTERS, MOST_CHANGES, Folded, Span, _best_end, locate

SOURCE = (
    "Velkommen til Lyd og bilde. I dag snakker vi med Kari Nordmann om øl, ost og «det gode liv». "
    "Jeg har aldri sagt at det var lett – det var det ikke! Vi måtte begynne helt på nytt, tre ganger. "
    "Og så, etter mange år, sto vi der med den beste osten i hele Norden."
)


def found(quote: str, near: tuple[int, int] | None = None, source: str = SOURCE) -> tuple[str, str] | None:
    span = locate(quote, Folded(source), near)
    return (source[span.start : span.end], span.match) if span else None


@pytest.mark.parametrize(
    "quote",
    [
        "Jeg har aldri sagt at det var lett – det var det ikke!",
        "jeg har aldri sagt at det var lett - det var det ikke",
        "«Jeg  har aldri\nsagt at det var lett, det var det ikke»",
        "JEG HAR ALDRI SAGT AT DET VAR LETT: DET VAR DET IKKE…",
        "Jeg har aldri sagt\u00a0at det\u200b var lett – det var det ikke",
    ],
)
def test_spacing_case_punctuation_and_invisible_letters_do_not_count(quote: str) -> None:
    assert found(quote) == ("Jeg har aldri sagt at det var lett – det var det ikke!", "exact")


def test_letters_written_apart_are_the_same() -> None:
    apart = "Vi ma\u030atte begynne helt pa\u030a nytt"

    assert found(apart) == ("Vi måtte begynne helt på nytt", "exact")
    assert found("Vi måtte begynne helt på nytt", source=f"Nei. {apart}, sa han.") == (apart, "exact")


@pytest.mark.parametrize(
    ("quote", "slice_of_it"),
    [
        ("Vi måtte begynne heilt på nytt, tre ganger", "Vi måtte begynne helt på nytt, tre ganger."),
        ("år sto vi der med den beste osten i hele Norde", "år, sto vi der med den beste osten i hele Norden."),
        ("og så etter mange år stod vi der med den beste", "Og så, etter mange år, sto vi der med den beste"),
        ("vi med Kari Normann om øl, ost og det gode livet", "vi med Kari Nordmann om øl, ost og «det gode liv"),
    ],
)  # fmt: skip
def test_a_slip_is_repaired_to_the_source_s_own_whole_words(quote: str, slice_of_it: str) -> None:
    assert found(quote) == (slice_of_it, "repaired")


@pytest.mark.parametrize(
    "quote",
    [
        "Dette har aldri noen sagt i hele episoden, verken før eller siden.",
        "Jeg har alltid ment at ost er viktigere enn penger og berømmelse",
        "det var lett",
        "",
        "…!?…!?…!?…!?…!?…!?…!?…!?",
        "x" * 100_000,
        ". " * 50_000,
    ],
)
def test_inventions_and_what_is_too_short_are_found_nowhere(quote: str) -> None:
    assert found(quote) is None


def test_half_a_word_is_no_match() -> None:
    assert found("ang begynne helt på nytt tre", source="Sang begynne helt på nytt treet") != (
        "ang begynne helt på nytt tre",
        "exact",
    )


def test_the_named_place_comes_first_then_anywhere_unchanged() -> None:
    source = "Vi sees igjen neste uke. Noe annet sies imellom her. Vi sees igjen neste uke. Ha det bra."
    second = source.rindex("Vi sees")

    span = locate("vi sees igjen neste uke", Folded(source), near=(second, second + 24))
    elsewhere = locate("vi sees igjen neste uke", Folded(source), near=(26, 50))
    slip_elsewhere = locate("noe annet sies imellom der", Folded(source), near=(second, len(source)))

    assert span == Span(second, second + 24, "exact")
    assert elsewhere == Span(0, 24, "exact")
    assert slip_elsewhere is None


def test_a_long_source_is_searched_in_moments() -> None:
    source = Folded("Dette er en setning som gjentas mange ganger i teksten. " * 4000)

    started = time.process_time()
    assert locate("En setning som ikke står her, og som ingen har sagt til noen.", source, near=(0, 3000)) is None

    assert time.process_time() - started < 0.5


def levenshtein_to_any_part(pattern: str, text: str) -> int:
    row = [0] * (len(text) + 1)
    for number, letter in enumerate(pattern, start=1):
        previous, row = row, [number] + [0] * len(text)
        for column, other in enumerate(text, start=1):
            row[column] = min(previous[column] + 1, row[column - 1] + 1, previous[column - 1] + (letter != other))
    return min(row)


@settings(deadline=None)
@given(st.text("abc ", min_size=1, max_size=70), st.text("abc ", max_size=90))
def test_the_search_counts_the_fewest_changes(pattern: str, text: str) -> None:
    assert _best_end(pattern, text)[0] == levenshtein_to_any_part(pattern, text)


@settings(deadline=None)
@given(st.text(max_size=300), st.data())
def test_any_whole_words_of_any_text_are_found_as_a_slice_of_it(source: str, data: st.DataObject) -> None:
    folded = Folded(source)
    words = folded.text.split()
    start = data.draw(st.integers(0, max(0, len(words) - 1)))
    quote = " ".join(words[start : data.draw(st.integers(start, len(words)))])

    span = locate(quote, folded)

    if len(Folded(quote).text) - 2 >= LEAST_LETTERS:
        assert span is not None
        assert span.match == "exact"
    if span:
        assert Folded(quote).text in Folded(source[span.start : span.end]).text


@settings(deadline=None)
@given(st.text(max_size=200), st.text(max_size=200), st.integers(0, 200), st.integers(0, 200))
def test_whatever_is_found_is_close_to_what_was_asked(quote: str, source: str, low: int, high: int) -> None:
    span = locate(quote, Folded(source), near=(min(low, high), max(low, high)))

    if span:
        part = source[span.start : span.end]
        assert part
        wanted = Folded(quote).text
        assert levenshtein_to_any_part(wanted, Folded(part).text) <= MOST_CHANGES * len(wanted)


@pytest.mark.parametrize(
    ("said", "quote", "kept"),
    [
        ("Kaldt: -25 grader i hele januar.", "25 grader i hele januar", "-25 grader i hele januar."),
        ("Kaldt: −25 grader i hele januar.", "-25 grader i hele januar", "−25 grader i hele januar."),
        ("Prisene steg med 50 % i fjor.", "Prisene steg jo med 50", None),
        ("Da steg alle prisene med 50 %, sa hun.", "da steg alle prisene med 50", "Da steg alle prisene med 50 %"),
        ("Da steg alle prisene med 50%. Ja.", "Da steg alle prisene med 50 %", "Da steg alle prisene med 50%."),
        ("Vi betalte da €3000 for å leie båten.", "3000 for å leie båten", "€3000 for å leie båten."),
        ("Vi betalte $ 3000 for å leie båten.", "3000 for å leie båten", "$ 3000 for å leie båten."),
        ("Det er § 12 i loven som gjelder.", "12 i loven som gjelder", "§ 12 i loven som gjelder."),
        ("Ring oss på +47 22 00 00 00 i dag.", "47 22 00 00 00 i dag", "+47 22 00 00 00 i dag."),
        ("Det er skrevet i C++ fra første dag.", "Det er skrevet i C fra", "Det er skrevet i C++ fra"),
        ("Dette her er skrevet i C++, og godt.", "Dette her er skrevet i C", "Dette her er skrevet i C++"),
        ("Vi sa nei – aldri mer skal vi dit.", "aldri mer skal vi dit", "aldri mer skal vi dit."),
        ("Han sa - aldri mer skal vi dit.", "aldri mer skal vi dit", "aldri mer skal vi dit."),
        ("Vel (aldri mer skal vi dit) sa han.", "aldri mer skal vi dit", "aldri mer skal vi dit"),
        ("Det var 5-6 av oss på hele denne turen.", "6 av oss på hele denne", "5-6 av oss på hele denne"),
        ("Han kom, så han og dro sin vei (1999).", "så han og dro sin vei", "så han og dro sin vei"),
        ("Se side 12: der står det jo alt sammen.", "der står det jo alt sammen", "der står det jo alt sammen."),
        ("Det hendte i året 2024.Vi dro videre.", "Det hendte i året 2024", "Det hendte i året 2024."),
        ("Hun sendte oss en e-post om alt dette.", "post om alt dette er", None),
        ("Det var 1,5 millioner av oss på turen.", "5 millioner av oss på", "1,5 millioner av oss på"),
        ("Vi var alle sammen der i 1,5 timer.", "Vi var alle sammen der i 1", "Vi var alle sammen der i 1,5"),
    ],
)  # fmt: skip
def test_a_sign_that_belongs_to_a_number_stays_with_it(said: str, quote: str, kept: str | None) -> None:
    """25 grader in place of -25 would be another thing than was said."""
    place = found(quote, source=said)
    assert (place and place[0]) == kept
