"""The cleaner on the corpus of marked pastes; bench/clip_cleaning.py measures others on the same."""

import pytest

from services.research.cleaner import Paste as Clipboard
from services.research.clip import make_clip, restore_lines
from tests.unit.clip_scoring import clipboard, clips, found_fields, score, total
from tests.unit.marked_pastes import Paste, all_pastes, squash, visible_lines

EVERY = pytest.mark.parametrize("paste", all_pastes(), ids=lambda paste: paste.name)
LEAST_BODY, LEAST_REMOVED = 0.99, 0.95
LEAST_FIELDS = 0.88  # of the fields that can be read in the pastes


@pytest.mark.parametrize("part", ["frozen", "rest", "blind"])
def test_cleaner_keeps_the_body_and_removes_what_is_a_pages_own(part: str) -> None:
    pastes = [paste for paste in all_pastes() if paste.part == part]

    reached = total(
        score(paste, clips()[paste.name]["clean_text"], clips()[paste.name]["markdown"]) for paste in pastes
    )

    assert len(pastes) >= 20
    assert reached.body_kept >= LEAST_BODY, reached.lost
    assert reached.own_removed >= LEAST_REMOVED, reached.kept


@EVERY
def test_kind_and_language_are_told(paste: Paste) -> None:
    found = found_fields(clips()[paste.name])

    assert (found["kind"], found["language"]) == (paste.expected["kind"], paste.expected["language"])


@EVERY
def test_quotes_stand_word_for_word(paste: Paste) -> None:
    assert [quote for quote in paste.expected.get("quotes", []) if quote not in clips()[paste.name]["clean_text"]] == []


def test_titles_authors_dates_and_sites_are_found() -> None:
    wrong, right = [], 0
    for paste in all_pastes():
        found = found_fields(clips()[paste.name])
        for field in ("title", "author", "published", "site"):
            if field not in paste.expected.get("open", []):
                wanted = str(paste.expected.get(field) or "")
                is_right = squash(found[field] or "") == squash(wanted)
                right += is_right
                wrong += [] if is_right else [f"{paste.name} {field}: {found[field]!r}, not {wanted!r}"]

    assert right / (right + len(wrong)) >= LEAST_FIELDS, "\n".join(wrong)


@EVERY
def test_cleaning_a_clean_text_changes_nothing(paste: Paste) -> None:
    text = clips()[paste.name]["clean_text"]

    assert make_clip(Clipboard(text, None, None, clipboard(paste).pasted_at))["clean_text"] == text


@EVERY
def test_every_line_of_the_paste_can_be_restored_from_the_clip(paste: Paste) -> None:
    restored = [" ".join(line.split()) for line in restore_lines(clips()[paste.name])]

    wanted = visible_lines(paste.content, paste.is_html)
    if paste.is_html:  # cells and buttons may share a line; a clipboard's own header is no part of the page
        whole = squash("".join(restored))
        assert [line for line in wanted if squash(line) not in whole and not line.startswith("Version:")] == []
    else:
        assert restored == wanted


@EVERY
def test_spans_are_slices_of_the_text(paste: Paste) -> None:
    clip = clips()[paste.name]
    text = clip["clean_text"]

    assert all(text[link["start"] : link["end"]] == link["text"] for link in clip["links"])
    assert all(0 <= block["start"] <= block["end"] <= len(text) for block in clip["blocks"])
    between = [
        text[one["end"] : other["start"]] for one, other in zip(clip["blocks"], clip["blocks"][1:], strict=False)
    ]
    assert all("\n" in gap for gap in between)


@EVERY
def test_same_paste_gives_the_same_clip(paste: Paste) -> None:
    assert make_clip(clipboard(paste)) == clips()[paste.name]
