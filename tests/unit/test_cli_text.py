"""Text from the database, neutralised and measured."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidelinja_jobs.cli.text import columns, cut, first_line, neutral, neutral_lines, pad

ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=()))  # lone surrogates, too


@given(ANY_TEXT)
def test_neutral_text_holds_nothing_that_a_terminal_obeys(text: str) -> None:
    shown = neutral(text)

    obeyed = [c for c in shown if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")]
    assert obeyed == []
    assert not set(shown) & set("\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f")
    shown.encode()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", r"\x1b[2J"),
        ("a\r\nb\tc", r"a\r\nb\tc"),
        ("\x9b31m", r"\x9b31m"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("\udcff", r"\udcff"),
        ("blåbærsyltetøy på brød", "blåbærsyltetøy på brød"),
        ("日本 👩\u200d💻", "日本 👩\u200d💻"),
    ],
)
def test_obeyed_characters_become_escapes_and_all_others_stay(text: str, shown: str) -> None:
    assert neutral(text) == shown


def test_lines_of_a_text_stay_lines() -> None:
    assert neutral_lines("en\r\n\tto\x07") == ["en", r"    to\x07"]


@pytest.mark.parametrize(
    ("text", "line"),
    [("\n\n  ValueError: nei \nmer", "ValueError: nei"), ("", ""), ("a\u2028b", "a"), ("\x1b[1m", r"\x1b[1m")],
)
def test_first_line_is_the_first_that_says_something(text: str, line: str) -> None:
    assert first_line(text) == line


@pytest.mark.parametrize(("text", "width"), [("æøå", 3), ("日本", 4), ("a\u030a", 1), ("", 0), ("ﬀ→…", 3)])
def test_columns_counts_wide_characters_twice_and_combining_ones_not(text: str, width: int) -> None:
    assert columns(text) == width


@given(ANY_TEXT, st.integers(min_value=0, max_value=30))
def test_cut_text_never_takes_more_room_than_it_has(text: str, width: int) -> None:
    shown = cut(neutral(text), width)

    assert columns(shown) <= width
    assert len(shown) <= 8 * width + 1


def test_cut_marks_what_was_left_out() -> None:
    assert cut("transkriberer", 8) == "transkr…"
    assert cut("日本語", 5) == "日本…"
    assert cut("akkurat", 7) == "akkurat"


def test_cut_takes_no_heap_of_accents() -> None:
    assert len(cut("a" + "\u0301" * 5000, 10)) < 100


def test_pad_fills_by_columns() -> None:
    assert pad("日本", 6) == "日本  "
    assert pad("3", 4, right=True) == "   3"
    assert pad("for lang", 3) == "for lang"
