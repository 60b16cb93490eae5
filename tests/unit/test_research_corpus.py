"""The marks of the corpus under tests/research_corpus fit its pastes."""

import hashlib
from collections import Counter
from datetime import date, datetime
from urllib.parse import urlsplit

import pytest

from tests.unit.marked_pastes import CORPUS, LISTS, MarkedLine, Paste, all_pastes, listed_files, squash, visible_lines

KINDS = {"html", "fragment", "markdown", "plain", "pdf"}
LANGUAGES = {"nb", "nn", "en", "se", "sv", "da"}
GENRES = {
    "abstract", "code", "court", "email", "encyclopaedia", "forum", "government", "interview", "job", "list",
    "minutes", "mojibake", "municipal", "news", "notes", "pdf", "podcast", "posts", "press", "recipe", "regulation",
    "table", "timetable", "word",
}  # fmt: skip
FIELDS: dict[str, type] = {
    "genre": str, "kind": str, "language": str, "title": str, "author": str, "published": date, "site": str,
    "source_url": str, "pasted_at": datetime, "links": list, "quotes": list, "open": list,
}  # fmt: skip
MUST_HAVE = {"genre", "kind", "language"}

EVERY = pytest.mark.parametrize("paste", all_pastes(), ids=lambda paste: paste.name)


@EVERY
def test_every_visible_line_is_marked_in_order(paste: Paste) -> None:
    seen = visible_lines(paste.content, paste.is_html)

    assert [line.text for line in paste.lines] == seen
    assert 15 <= len(seen) <= 120


@EVERY
def test_marks_can_be_judged(paste: Paste) -> None:
    boilerplate = {squash(line.meant) for line in paste.marked("X")}
    others = {squash(line.meant) for line in paste.marked("BTAD")}

    assert "" not in boilerplate
    assert boilerplate & others == set()
    assert len(paste.marked("B")) >= 5


@EVERY
def test_expected_fields_are_known_and_fit_the_paste(paste: Paste) -> None:
    expected = paste.expected

    assert set(expected) <= set(FIELDS)
    assert set(expected) >= MUST_HAVE
    assert {name: type(value) for name, value in expected.items()} == {name: FIELDS[name] for name in expected}
    assert expected["kind"] in (KINDS - {"markdown", "plain", "pdf"} if paste.is_html else KINDS - {"html", "fragment"})
    assert expected["language"] in LANGUAGES
    assert expected["genre"] in GENRES
    assert set(expected.get("open", [])) <= set(FIELDS) - set(expected)
    assert "pasted_at" not in expected or expected["pasted_at"].tzinfo is not None


@EVERY
def test_expected_title_author_and_quotes_stand_in_the_paste(paste: Paste) -> None:
    expected = paste.expected

    assert squash(expected.get("title", "")) in squashed(paste.marked("TE"))
    for author in expected.get("author", "").split(", "):
        assert squash(author) in squashed(paste.marked("ADEB"))
    for quote in expected.get("quotes", []):
        assert squash(quote) in squashed(paste.marked("B")), quote


@EVERY
def test_expected_links_stand_in_the_paste(paste: Paste) -> None:
    unwrapped = "".join(paste.content.split())
    for link in paste.expected.get("links", []):
        assert link.startswith("https://")
        assert urlsplit(link).path in unwrapped, link
        assert "utm_" not in link


@pytest.mark.parametrize("part", LISTS)
def test_listed_pastes_are_as_they_were_committed(part: str) -> None:
    found = {
        folder: {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in (CORPUS / folder).iterdir()}
        for folder in listed_files(part)
    }

    assert found == listed_files(part)
    assert len(found) >= 20


def test_the_corpus_covers_what_people_paste() -> None:
    pastes = all_pastes()
    kinds = Counter(paste.expected["kind"] for paste in pastes)
    languages = Counter(paste.expected["language"] for paste in pastes)
    genres = {paste.expected["genre"] for paste in pastes}

    assert len(pastes) >= 40
    assert kinds["html"] + kinds["fragment"] >= 8
    assert set(kinds) == KINDS
    assert languages["nn"] >= 5
    assert languages["en"] >= 4
    assert genres == GENRES
    assert sum(paste.name.startswith("mojibake-") for paste in pastes) >= 3
    assert sum(len(paste.marked("B")) for paste in pastes) >= 800
    assert sum(len(paste.marked("X")) for paste in pastes) >= 1000


def squashed(lines: list[MarkedLine]) -> str:
    return squash("".join(line.meant for line in lines))
