"""What a line says of itself, judged once for all lines that differ in numbers alone."""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.research import code_blocks, judgement, mojibake
from services.research.judgement import judge
from services.research.plain_text import read_plain
from services.research.sheet import read_sheet
from services.research.wordings import NUMBERS, WORDINGS
from tests.unit.marked_pastes import all_pastes, visible_lines

LINES = sorted({line for paste in all_pastes() for line in visible_lines(paste.content, is_html=paste.is_html)})
NUMBERED = [part for _, part in WORDINGS.parts() if r"\d" in part]
LETTERS = st.characters(max_codepoint=0x2100)  # Latin letters, and signs of print


@pytest.fixture(autouse=True)
def forgotten() -> None:
    judgement.forget()


def other_numbers(line: str, by: int) -> str:
    return re.sub("[0-9]", lambda digit: str((int(digit.group()) + by) % 10), line)


def test_lines_of_the_corpus_are_judged_as_if_each_were_the_only_one() -> None:
    for by in range(10):
        for line in LINES:
            other = other_numbers(line, by)
            if len(other) < 500:
                assert judge(other) == judgement._judge_words(other, False), other


def test_wordings_with_numbers_are_judged_as_if_each_were_the_only_one() -> None:
    @settings(max_examples=200, deadline=None, database=None)
    @given(
        st.sampled_from(NUMBERED).flatmap(lambda part: st.from_regex(part, fullmatch=True, alphabet=LETTERS)),
        st.integers(0, 9),
    )
    def check(line: str, by: int) -> None:
        for one in (line, other_numbers(line, by)):
            if len(one) < 500:
                assert judge(one) == judgement._judge_words(one, False)

    check()


@pytest.mark.parametrize(
    ("line", "family"),
    [("4 av 5", "counter"), ("4 av 6", "counter"), ("4 av 7", None), ("18+ år", "footer"), ("17+ år", None)],
)
def test_numbers_that_wordings_name_are_told_from_others(line: str, family: str | None) -> None:
    assert {"5", "6", "18"} <= NUMBERS
    judge("4 av 9"), judge("99+ år")
    assert (judge(line).family is None) == (family is None)


def test_rows_that_differ_in_numbers_are_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    judged = judgement._judge_words

    def counted(text: str, is_row: bool) -> Any:
        asked.append(text)
        return judged(text, is_row)

    monkeypatch.setattr(judgement, "_judge_words", counted)
    rows = [f"{number}\tHavna i Østre Våg\t{number * 7} %" for number in range(1000, 1400)]

    assert [judge(row).folded.split(" ", 1)[0] for row in rows] == [str(number) for number in range(1000, 1400)]
    assert len(asked) < len(rows) / 10, "each row was judged by itself"


@pytest.mark.parametrize("between", [*(f" {sign} " for sign in "|•·›»>▸/⁄<–"), "\t", "  "])
def test_row_of_entries_is_a_menu_whatever_separates_them(between: str) -> None:
    assert judge(between.join(["kart", "vær", "sport", "kultur"])).is_menu
    assert judge("KartVærSportKultur").is_menu


def test_broken_signs_are_seen_where_the_pattern_would_find_them() -> None:
    for seen in (*mojibake._TABLE, "ðŸ˜€", "ðŸŽ‰"):
        assert mojibake.has_broken_signs(f"{seen} og {seen}") == bool(mojibake._SURE.match(seen)), seen


def test_lines_that_are_not_tried_are_no_code() -> None:
    @settings(max_examples=200, deadline=None, database=None)
    @given(st.from_regex(code_blocks._CODE, fullmatch=True))
    def check(line: str) -> None:
        assert code_blocks._may_be_code(line)

    check()


@pytest.mark.parametrize(("rows", "is_menu"), [(40, False), (4, True)])
def test_row_of_a_long_table_is_no_menu(rows: int, is_menu: bool) -> None:
    menu = "Hjem\tKontakt\tOm oss\tNyheter"
    table = [f"Havna i Våg\tkai {number}\tberegnet\tåpen" for number in range(rows)]
    sheet = read_sheet(read_plain("\n".join([*table[:2], menu, *table[2:]])))

    assert [line.text for line in sheet.lines].index(menu) == 2
    assert sheet.judgements[2].is_menu is is_menu
