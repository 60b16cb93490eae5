"""Tables and bars at any width."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidelinja_jobs.cli.screen import Screen
from sidelinja_jobs.cli.tables import Cell, Column, bar, table
from sidelinja_jobs.cli.text import columns

HEADS = (
    Column("ID"),
    Column("TYPE", flexible=True, least=4),
    Column("COUNT", right=True, leaves=1),
    Column("ERROR", flexible=True),
)


def screen(width: int | None, *, colours: bool = False) -> Screen:
    return Screen(width=width, is_terminal=True, has_colours=colours, has_blocks=True)


def row(*texts: str) -> list[Cell]:
    return [Cell(text) for text in texts]


def test_columns_stand_under_their_headings_whatever_the_letters() -> None:
    lines = list(table(HEADS, [row("1", "æøå", "5", "x"), row("22", "日本", "10", "a\u030a y")], screen(80)))

    assert lines == [
        "ID  TYPE  COUNT  ERROR",
        "1   æøå       5  x",
        "22  日本     10  a\u030a y",
    ]


def test_column_without_content_leaves_if_it_may() -> None:
    lines = list(table(HEADS, [row("1", "a", "", "")], screen(80)))

    assert lines == ["ID  TYPE  ERROR", "1   a"]


def test_narrow_screen_cuts_flexible_columns_first_and_then_drops() -> None:
    rows = [row("1", "whisper_transcribe", "5", "OSError: no such file")]

    assert list(table(HEADS, rows, screen(40)))[1] == "1   whisper_tran…      5  OSError: no s…"
    assert list(table(HEADS, rows, screen(21)))[1] == "1   whispe…  OSError…"


def test_cell_with_a_line_break_and_escapes_stays_one_harmless_line() -> None:
    lines = list(table(HEADS, [row("1", "\x1b[2J", "2", "en\nto")], screen(80)))

    assert len(lines) == 2
    assert r"\x1b[2J" in lines[1]
    assert r"en\nto" in lines[1]


def test_colours_do_not_move_the_columns() -> None:
    cells = [[Cell("1"), Cell("a", "red"), Cell("2"), Cell("feil")]]

    plain = list(table(HEADS, cells, screen(80)))[1]
    coloured = list(table(HEADS, cells, screen(80, colours=True)))[1]

    assert coloured == plain.replace("a   ", "\x1b[31ma   \x1b[0m")


def test_endless_screen_cuts_only_what_is_absurd() -> None:
    line = list(table(HEADS, [row("1", "t", "2", "x" * 100_000)], screen(None)))[1]

    assert 150 < columns(line) < 250


def test_empty_table_is_its_headings() -> None:
    assert list(table(HEADS, [], screen(80))) == ["ID  TYPE  COUNT  ERROR"]


@given(
    st.lists(st.lists(st.text(max_size=40), min_size=4, max_size=4), max_size=5),
    st.integers(min_value=20, max_value=120),
)
def test_no_line_is_wider_than_the_screen(texts: list[list[str]], width: int) -> None:
    for line in table(HEADS, [row(*cells) for cells in texts], screen(width)):
        assert columns(line) <= width


@pytest.mark.parametrize(
    ("fraction", "drawn"), [(0, "    "), (0.5, "██  "), (1, "████"), (0.57, "██▎ "), (7.0, "████"), (-1, "    ")]
)
def test_bar_is_as_long_as_the_share(fraction: float, drawn: str) -> None:
    assert bar(fraction, 4) == drawn


def test_bar_without_block_characters() -> None:
    assert bar(0.5, 12, blocks=False) == "[#####-----]"


@given(st.floats(allow_nan=False), st.integers(min_value=3, max_value=60), st.booleans())
def test_bar_always_takes_its_width(fraction: float, width: int, blocks: bool) -> None:
    assert columns(bar(fraction, width, blocks=blocks)) == width
