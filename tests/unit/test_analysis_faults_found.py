"""What hostile transcripts and answers did to the analysis, and must not do again."""

import json
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from openrouter_client.language import detect
from openrouter_client.quotes import Folded
from services.openrouter.answers import FORM
from services.openrouter.blocks import make_blocks
from services.openrouter.chapters import Candidate, make_chapters
from services.openrouter.files import find_target
from services.openrouter.names import Names
from services.openrouter.payload import MOST_SEGMENTS, AnalyzePayload, Hints, SegmentPayload
from services.openrouter.quotations import make_quotations
from services.openrouter.show_notes import escape
from services.openrouter.source import wait_seconds
from services.openrouter.transcript import Segment, Transcript, from_payload, from_result
from sidelinja_jobs import PermanentError
from tests.services.openrouter_analyst import NORWEGIAN
from tests.unit.analysis_support import Scripted, analysed, empty_answer

ENGLISH = "In this episode they talk about why the ferries in the north are so often late, and what could be done."
BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"
ROW: dict[str, Any] = {"start": 0.0, "end": 4.0, "text": "Hei på deg"}


def _names(text: str) -> Names:
    return Names(Transcript([Segment(text, None, None)]), Hints())


def result(**changes: Any) -> dict[str, Any]:
    whole = {"segments": [dict(ROW)], "duration": 4.0, "language": "nb", "source": {"path": "a.mp3"}}
    return whole | changes


# Transcripts.


@pytest.mark.parametrize(
    "changes",
    [
        {"segments": [ROW | {"text": None}]},
        {"segments": [ROW | {"text": 7}]},
        {"segments": [ROW | {"speaker": 7}]},
        {"segments": [ROW | {"start": "NaN"}]},
        {"segments": [ROW | {"start": -1.0}]},
        {"segments": [ROW | {"start": 5.0}]},
        {"segments": [7]},
        {"segments": "abc"},
        {"segments": None},
        {"duration": "lang"},
        {"duration": -3},
        {"language": 7},
        {"source": {"path": 7}},
        {"source": 7},
        {"tracks": 7, "source": None},
        {"flags": 7},
    ],
)
def test_a_result_that_is_no_transcript_is_told_at_once(changes: dict[str, Any]) -> None:
    with pytest.raises(PermanentError) as caught:
        from_result(result(**changes))
    assert caught.value.error_class == "bad_transcript"


@pytest.mark.parametrize(
    "changes",
    [{}, {"source": None, "tracks": [{"path": "kari.mp3"}]}, {"duration": None}, {"flags": None, "language": None}],
)
def test_a_result_that_is_one_is_read(changes: dict[str, Any]) -> None:
    read = from_result(result(**changes, words=[{"unknown": 1}]))

    assert [segment.text for segment in read.segments] == ["Hei på deg"]
    assert read.audio_path == ("kari.mp3" if "tracks" in changes else "a.mp3")


@pytest.mark.parametrize("text", ["\u200b\u200b", "...", " … – «» !", "\u202e", "♪ ♪"])
def test_a_transcript_without_a_letter_is_empty_and_nothing_is_paid(text: str) -> None:
    segments = (SegmentPayload(start=0, end=3, text=text),)
    makes: tuple[Callable[[], Transcript], ...] = (
        lambda: from_payload(AnalyzePayload(text=text)),
        lambda: from_payload(AnalyzePayload(segments=segments)),
        lambda: from_result(result(segments=[ROW | {"text": text}])),
    )
    for make in makes:
        with pytest.raises(PermanentError) as caught:
            make()
        assert caught.value.error_class == "empty_transcript"


def test_a_folder_in_a_file_s_place_is_told_before_anything_is_paid(tmp_path: Path) -> None:
    (tmp_path / "ep.shownotes.md").mkdir()
    payload = AnalyzePayload(text="a", outputs=("shownotes",), output_path="ep")

    with pytest.raises(PermanentError, match=r"ep\.shownotes\.md.*is a folder") as caught:
        find_target(tmp_path, payload, None, UUID(int=1))
    assert caught.value.error_class == "not_writable"


def test_segments_of_a_result_are_put_in_order_of_time() -> None:
    rows = [ROW | {"start": 3.0, "text": "to"}, ROW | {"start": 1.0, "text": "en"}, ROW | {"start": 3.0, "text": "tre"}]

    assert [segment.text for segment in from_result(result(segments=rows)).segments] == ["en", "to", "tre"]


def test_nothing_in_a_result_lies_after_the_audio() -> None:
    words = [
        SegmentPayload(start=100.0 * n, end=100.0 * n + 100.9, text=f"Nå har vi sagt nummer {n} her") for n in range(3)
    ]
    transcript = from_payload(AnalyzePayload(segments=tuple(words), duration=300.0))
    blocks = make_blocks(transcript)

    chapters = make_chapters([Candidate("B1", "En"), Candidate("B3", "To")], blocks, transcript, Counter())
    quote = FORM.read({"quotes": [{"block": "B3", "text": words[2].text}]}).quotes
    (said,) = make_quotations(quote, blocks, transcript, Counter())

    assert transcript.duration == 300.0
    assert chapters[-1].end == 300.0
    assert said.end == 300.0


def test_a_segment_that_begins_after_the_audio_is_refused_and_no_quote_ends_before_it_begins() -> None:
    late = SegmentPayload(start=10.5, end=10.9, text="Dette ble sagt etter at lyden var slutt")
    with pytest.raises(ValueError, match=r"segments\[0\] starts at 10\.5, after the audio's 10\.0 seconds"):
        AnalyzePayload(segments=(late,), duration=10.0)

    read = from_result(result(segments=[ROW | {"start": 10.5, "end": 10.9, "text": late.text}], duration=10.0))
    quotes = FORM.read({"quotes": [{"block": "B1", "text": late.text}]}).quotes
    (said,) = make_quotations(quotes, make_blocks(read), read, Counter())
    assert (said.start, said.end) == (10.5, 10.5)


def test_bare_text_has_no_more_segments_than_others() -> None:
    started = time.process_time()
    transcript = from_payload(AnalyzePayload(text="a\n" * 750_000))
    make_blocks(transcript)

    assert len(transcript.segments) <= MOST_SEGMENTS
    assert transcript.text.count("a") == 750_000
    assert time.process_time() - started < 10


def test_one_line_without_an_end_is_divided_in_moments() -> None:
    started = time.process_time()
    transcript = from_payload(AnalyzePayload(text="𝒜" * 1_400_000))

    assert transcript.text.count("𝒜") == 1_400_000
    assert time.process_time() - started < 5


@pytest.mark.parametrize("word", ["Hei på deg ", "\u202eשלום ", "1,5 ", "\ufdfa", "a" + 30 * "\u0301"])
@pytest.mark.parametrize("make", [Folded, _names, detect])
def test_any_text_is_looked_through_within_the_memory_of_a_worker(word: str, make: Callable[[str], object]) -> None:
    """Three million letters of it, beside what a worker takes by itself, have to fit into 256 MB."""
    text = (word * 100_000)[:100_000]
    tracemalloc.start()
    try:
        made = make(text)
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert made
    assert peak * 30 < 130_000_000


# Answers.


def test_an_answer_of_endless_lists_is_cut_short() -> None:
    """Chapters cost more than the square of their number, quotes and people a search each."""
    segments = [Segment(f"Dette er setning nummer {n}", 61.0 * n, 61.0 * n + 60) for n in range(5_000)]
    everything: dict[str, Any] = {
        "chapters": [{"start_block": f"B{n + 1}", "title": f"Kapittel {n}"} for n in range(5_000)],
        "people": [
            {"name": f"Oppdiktet Navnesen{n}", "role": None, "is_guest": True, "blocks": []} for n in range(20_000)
        ],
        "quotes": [
            {"block": f"B{n + 1}", "text": f"Dette har jo ingen noen gang sagt, nummer {n}"} for n in range(20_000)
        ],
        "summary_long": "evil." * 200_000,
        "keywords": [f"ord {n}" for n in range(100_000)],
    }
    everything["title"] = "-" * 2_000_000
    started = time.process_time()
    made, _ = analysed(Scripted(lambda question: empty_answer(question, **everything)), Transcript(segments))

    assert time.process_time() - started < 20
    assert len(json.dumps(made)) < 200_000


@pytest.mark.parametrize("field", ["summary_short", "summary_long"])
def test_one_text_in_another_language_than_the_others_is_asked_for_again(field: str) -> None:
    said = {"summary_short": NORWEGIAN[:200], "summary_long": NORWEGIAN} | {field: ENGLISH}
    model = Scripted(lambda question: empty_answer(question, **said))
    made, _ = analysed(model, Transcript([Segment(NORWEGIAN, 0.0, 60.0)]))

    assert len(model.questions) == 2
    assert made["quality"]["warnings"][0] == "language_drift"


# Show notes.


def test_the_direction_of_writing_is_not_turned_by_what_was_said() -> None:
    assert not set(BIDI) & set(escape(f"Hun{BIDI} sa{BIDI}: hei"))
    assert escape("שלום ויויאן, familie 👨\u200d👩") == "שלום ויויאן, familie 👨\u200d👩"


# Waiting.


def test_an_analysis_waits_for_its_transcription_for_hours() -> None:
    """It may come back twenty times."""
    now = created = datetime(2026, 11, 29, tzinfo=UTC)
    waits = []
    for _ in range(20):
        waits.append(wait_seconds(created, now))
        now += timedelta(seconds=waits[-1])

    assert waits[0] == 60
    assert max(waits) <= 3600
    assert timedelta(hours=9) < now - created < timedelta(hours=24)
