"""Show notes show exactly the checked texts: no text in them becomes markup, and no address that nobody said."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from services.openrouter.blocks import Block
from services.openrouter.chapters import Chapter
from services.openrouter.files import CHAPTERS_VERSION, chapters_json
from services.openrouter.names import Person
from services.openrouter.quotations import Quotation
from services.openrouter.show_notes import HEADINGS, clock, escape, show_notes

RENDER = MarkdownIt("gfm-like", {"linkify": False})
BLOCK = Block(1, 0, 1, 0, 0)
HEAD: dict[str, Any] = {"title": "Ost & *smør*", "summary_short": "Kort.", "summary_long": "Første.\n\n<b>Andre</b>."}
CHAPTERS = [Chapter(0.0, 65.0, "Om [ost]", BLOCK, BLOCK), Chapter(65.0, 4000.0, "1. Smør", BLOCK, BLOCK)]
PEOPLE = [Person("Kari", "bonde_", True, False, (0,)), Person("Ola", None, False, True, ())]
QUOTES = [Quotation("Det var # lett\n- eller ikke!", 0, 0, 0, 3725.0, 3730.0, "Kari", "exact")]
ONE_LINE = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=60)


def shown(markdown: str) -> str:
    """The text that a reader sees of one paragraph; fails where anything else came of it."""
    tokens = RENDER.parse(markdown)
    assert [token.type for token in tokens] in ([], ["paragraph_open", "inline", "paragraph_close"]), markdown
    children = [child for token in tokens for child in token.children or []]
    assert {child.type for child in children} <= {"text", "text_special"}, markdown
    return "".join(child.content for child in children)


@settings(deadline=None)
@given(ONE_LINE)
def test_an_escaped_text_shows_as_it_was_written(text: str) -> None:
    assert shown(escape(text)) == " ".join(text.split())


@pytest.mark.parametrize(
    "text",
    ["# a", "- a", "+ a", "1. a", "1) a", "> a", "=== a", "---", "***", "~~a~~", "`a`",
     "<script>alert(1)</script>", "&lt;", "[a](http://b.no)", "![a](b)", "a | b", "\\", "http://a.no", "www.a.no",
     "kari@a.no", "[x] a", "_a_", ":::", "$a$", "a  \nb"],
)  # fmt: skip
def test_markup_in_a_text_is_text(text: str) -> None:
    assert shown(escape(text)) == " ".join(text.split())
    assert not re.search(r"(?<!\\)://|www\.|(?<!\\)@", escape(text)), "some renderers make links of these"


def test_notes_have_every_checked_part() -> None:
    notes = show_notes(HEAD, CHAPTERS, PEOPLE, QUOTES, "nb")

    assert notes == (
        "# Ost \\& \\*smør\\*\n\nFørste.\n\n\\<b\\>Andre\\</b\\>.\n\n"
        "## Kapitler\n\n- 0:00 Om \\[ost\\]\n- 1:05 1\\. Smør\n\n"
        "## Gjester\n\n- **Kari**, bonde\\_\n\n## Programledere\n\n- **Ola**\n\n"
        "## Sitater\n\n> Det var \\# lett - eller ikke!\n>\n> — Kari, 1:02:05\n"
    )


def test_a_section_without_content_is_left_out() -> None:
    empty = {"title": None, "summary_short": None, "summary_long": None}

    assert show_notes(empty, [], [], [], "nn") == "\n"
    assert "##" not in show_notes(HEAD, [], [], [], "en")


def test_headings_are_in_the_language_of_the_notes() -> None:
    for language, words in HEADINGS.items():
        notes = show_notes(HEAD, CHAPTERS, PEOPLE, QUOTES, language)
        assert [line[3:] for line in notes.splitlines() if line.startswith("## ")] == [
            words["chapters"], words["guests"], words["hosts"], words["quotes"],
        ]  # fmt: skip


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (59.9, "0:59"), (3599, "59:59"), (36000, "10:00:00")])
def test_clock(seconds: float, text: str) -> None:
    assert clock(seconds) == text


def test_chapters_for_the_feed() -> None:
    rows = [{"start_s": 0.0, "end_s": 65.5, "title": 'Ost"', "block_from": "B1", "block_to": "B2"}]

    assert json.loads(chapters_json(rows, "Tittel", None)) == {
        "version": CHAPTERS_VERSION,
        "title": "Tittel",
        "chapters": [{"startTime": 0.0, "endTime": 65.5, "title": 'Ost"'}],
    }
    assert json.loads(chapters_json([], None, "Lyd og bilde")) == {
        "version": "1.2.0", "podcastName": "Lyd og bilde", "chapters": [],
    }  # fmt: skip
