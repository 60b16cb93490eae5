"""The pure pieces of the admin view's job pages: times, timelines, reasons, marks, Markdown, trees, spreadsheets."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.admin.pages.job_export import csv_line
from services.admin.pages.job_line import cut_bytes, seconds_left, shown_seconds, still_seconds
from services.admin.pages.job_reasons import PAUSE_ORIGINS, REASONS, sentence
from services.admin.pages.job_timeline import timeline
from services.admin.views.clip import marked
from services.admin.views.json_tree import tree
from services.admin.views.markdown import render_markdown
from services.admin.views.transcript import Segment, as_rows, clock
from services.admin.words import Speech
from tests.databases import ROOT

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
SPEECHES = [Speech(language, ZoneInfo("Europe/Oslo"), NOW) for language in ("nb", "en")]
MOMENTS = st.datetimes(datetime(2026, 11, 28), datetime(2026, 11, 30)).map(lambda at: at.replace(tzinfo=UTC))
STATUSES = st.sampled_from(["pending", "running", "retry", "error", "completed"])


def row(**changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "status": "running", "started_at": NOW - timedelta(minutes=10), "completed_at": None, "progress": 0.5,
        "progress_at": None, "scheduled_for": NOW, "created_at": NOW, "read_at": NOW,
    }  # fmt: skip
    return base | changes


@given(st.lists(st.tuples(MOMENTS, STATUSES), max_size=8), MOMENTS)
def test_no_step_of_a_timeline_is_negative_whatever_the_clocks_say(
    given_events: list[tuple[datetime, str]], now: datetime
) -> None:
    events = [
        {"id": number, "at": at, "new_status": status, "old_status": None, "actor": "a", "worker_id": None,
         "error_class": None, "attempts": 0}
        for number, (at, status) in enumerate(given_events)
    ]  # fmt: skip

    steps = timeline(list(reversed(events)), now)

    assert [step.status for step in steps] == [status for _, status in given_events]
    assert all(step.seconds is None or step.seconds >= 0 for step in steps)
    assert all(step.seconds is not None for step in steps[:-1])


@given(MOMENTS, MOMENTS, MOMENTS, MOMENTS, STATUSES)
def test_no_time_of_a_row_is_negative(a: datetime, b: datetime, c: datetime, d: datetime, status: str) -> None:
    shown = row(status=status, started_at=a, completed_at=b, scheduled_for=c, created_at=d, progress_at=c)

    assert shown_seconds(shown) >= 0
    assert (seconds_left(shown) or 0) >= 0
    assert (still_seconds(shown) or 600) >= 600


@pytest.mark.parametrize(("progress", "left"), [(None, None), (0.04, None), (0.05, 11400), (0.5, 600), (1.0, None)])
def test_an_estimate_needs_a_twentieth(progress: float | None, left: float | None) -> None:
    assert seconds_left(row(progress=progress)) == (pytest.approx(left) if left else None)


def test_standing_still_is_told_after_ten_minutes_without_progress() -> None:
    assert still_seconds(row(progress_at=NOW - timedelta(minutes=9))) is None
    assert still_seconds(row(progress_at=NOW - timedelta(minutes=11), started_at=NOW - timedelta(hours=1))) == 660
    assert still_seconds(row(progress_at=NOW - timedelta(days=1), started_at=NOW)) is None, "of the run before"
    assert still_seconds(row(status="pending")) is None


@pytest.mark.parametrize("speech", SPEECHES, ids=lambda speech: speech.language)
def test_every_reason_is_a_sentence_in_both_languages(speech: Speech) -> None:
    told = (ROOT / "db" / "init" / "0009_explain.sql").read_text().split("comment on function explain_job is")[1]
    closed_list = re.findall(r"^ (\w+)  +", told, re.MULTILINE)
    detail = {
        "at": "2026-11-29T11:00:00+00:00", "since": "infinity", "until": None, "by": "<b>kari</b>", "attempts": 2,
        "max_attempts": 3, "attempt": 1, "worker_id": "<i>w</i>", "job_type": "x{y}", "why": "password=hunter2", "n": 1,
    }  # fmt: skip

    assert set(closed_list) == set(REASONS)
    for reason in REASONS:
        for given_detail in (detail, {"max_attempts": 3, "attempt": 1, "longest_run_seconds": 60}):
            text = str(sentence(reason, given_detail, speech))
            assert len(text) > 10
            assert "<b>" not in text
            assert "<i>" not in text
            assert "hunter2" not in text
            assert "\ue000" not in text
    assert "<time" in str(sentence("completed", detail, speech))
    assert str(sentence("<new>", {}, speech)) == "&lt;new&gt;"


@pytest.mark.parametrize("speech", SPEECHES, ids=lambda speech: speech.language)
def test_what_waits_for_its_turn_is_not_said_to_be_counted(speech: Speech) -> None:
    assert "2" in str(sentence("postponed", {"postponements": 2, "why": "borte"}, speech))
    assert "0" not in str(sentence("postponed", {"postponements": 0, "why": "borte"}, speech))


@pytest.mark.parametrize("speech", SPEECHES, ids=lambda speech: speech.language)
def test_who_paused_a_type_is_said_in_words(speech: Speech) -> None:
    words = {origin: str(sentence("type_paused", {"origin": origin}, speech)) for origin in PAUSE_ORIGINS}

    assert not any(f"({origin})" in told for origin, told in words.items())
    assert len(set(words.values())) == len(PAUSE_ORIGINS)
    assert "(&lt;new&gt;)" in str(sentence("type_paused", {"origin": "<new>"}, speech))


@given(st.text(max_size=40), st.lists(st.tuples(st.integers(-5, 50), st.integers(-5, 50)), max_size=6))
def test_marks_change_no_letter_and_may_overlap(text: str, spans: list[tuple[int, int]]) -> None:
    pieces = marked(text, [(start, end, "claim") for start, end in spans])

    assert "".join(piece.text for piece in pieces) == text
    place = 0
    for piece in pieces:
        covered = any(start <= place and place + len(piece.text) <= end for start, end in spans if start < end)
        assert bool(piece.kinds) == covered
        place += len(piece.text)


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("# A\n\n## B", "<h3>A</h3>\n<h4>B</h4>\n"),
        ("<b>x</b>", "<p>&lt;b&gt;x&lt;/b&gt;</p>\n"),
        ("![alt](https://e.no/x.png)", "<p><span>[alt]</span></p>\n"),
        ("[a](javascript:x)", "<p>[a](javascript:x)</p>\n"),
        ("[a](/logout)", "<p>[a](/logout)</p>\n"),
        ("[a](https://e.no)", '<p><a href="https://e.no" rel="noopener nofollow ugc">a</a></p>\n'),
        ("```x\n<&\n```", "<pre><code>&lt;&amp;\n</code></pre>\n"),
    ],
)
def test_markdown_can_do_nothing(source: str, shown: str) -> None:
    assert render_markdown(source) == shown


def test_a_tree_is_cut_in_width_and_depth_and_keeps_numbers() -> None:
    node = tree(
        '{"n": 9223372036854775807, "many": [' + ", ".join("0" for _ in range(5000)) + '], "s": "' + "x" * 900 + '"}'
    )

    assert node.children[0].text == "9223372036854775807"
    assert (node.children[1].text, node.children[1].left_out > 4000) == ("5000", True)
    assert node.left_out == 1, "the budget was spent on the list"
    assert tree('{"a":' * 2000 + "1" + "}" * 2000).kind == "text"
    assert tree('"' + "x" * 900 + '"').is_cut


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1"])
def test_no_cell_is_a_formula(text: str) -> None:
    assert csv_line([text, "a", 5]).startswith(("'", "\"'"))


@given(st.text(max_size=400))
def test_a_cut_text_is_short_in_bytes_and_a_beginning(text: str) -> None:
    shown = cut_bytes(text)

    assert len(shown.encode(errors="replace")) <= 300
    assert shown == text or text.encode(errors="replace").decode().startswith(shown[:-1])


def test_segments_for_subtitles_are_sorted_whole_and_not_empty() -> None:
    segments = [
        Segment(start=5, end=6, text=" b\n c "), Segment(start=1, end=2, text="a", speaker="Kari"),
        Segment(start=3, end=3, text="never"), Segment(start=7, end=8, text="  "), Segment(start=-1, end=2, text="x"),
    ]  # fmt: skip

    assert as_rows(segments) == [
        {"start": 1, "end": 2, "text": "a", "speaker": "Kari"},
        {"start": 5, "end": 6, "text": "b c"},
    ]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0:00"), (61.9, "1:01"), (3661, "1:01:01"), (-5, "0:00"), (float("nan"), "0:00"), (1e300, "277:46:40")],
)
def test_times_are_clocks(seconds: float, shown: str) -> None:
    assert clock(seconds) == shown
