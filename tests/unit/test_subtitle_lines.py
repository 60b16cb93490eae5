"""Subtitles of readable lines, with speakers, as independent readers of the formats see them."""

import io
from itertools import pairwise
from typing import Annotated, Any, Literal

import msgspec
import webvtt
from hypothesis import given
from hypothesis import strategies as st

from subtitles import as_podcast_json, as_srt, as_txt, as_vtt, cues

Name = Annotated[str, msgspec.Meta(min_length=1)]


class Entry(msgspec.Struct, forbid_unknown_fields=True):
    """A segment by the specification of the Podcasting 2.0 namespace, transcripts in JSON."""

    startTime: Annotated[float, msgspec.Meta(ge=0)]  # noqa: N815 - the format's own name
    endTime: Annotated[float, msgspec.Meta(ge=0)]  # noqa: N815
    body: Name
    speaker: Name | None = None


class PodcastTranscript(msgspec.Struct, forbid_unknown_fields=True):
    version: Literal["1.0.0"]
    segments: list[Entry]


LONG = (
    "Velkommen til denne episoden, som handler om noe helt annet enn forrige gang. "
    "I dag skal vi snakke om sopp, om bær og om hvorfor det regner i oktober, og hva man da kan gjøre."
)
TALK: list[dict[str, Any]] = [
    {"start": 0.0, "end": 16.0, "text": LONG, "speaker": "Kari & Co <vert>"},
    {"start": 12.5, "end": 13.5, "text": "Ja, <nettopp> --> der!", "speaker": "Ola"},
]


def vtt(segments: list[dict[str, Any]], *, lines: bool) -> list[webvtt.Caption]:
    return list(webvtt.from_buffer(io.StringIO(as_vtt(segments, lines=lines))))


def srt(segments: list[dict[str, Any]], *, lines: bool) -> list[webvtt.Caption]:
    return list(webvtt.from_buffer(io.StringIO(as_srt(segments, lines=lines)), format="srt"))


def test_lines_are_short_and_times_too_when_asked() -> None:
    for captions in (vtt(TALK, lines=True), srt(TALK, lines=True)):
        assert len(captions) >= 4
        for caption in captions:
            assert len(caption.lines) <= 2
            assert all(len(line) <= 42 for line in caption.text.splitlines())
            assert caption.end_in_seconds - caption.start_in_seconds <= 7.0


def test_every_output_names_the_speaker_whatever_the_name_holds() -> None:
    voices = [caption.voice for caption in vtt(TALK, lines=False)]
    texts = [caption.text.replace("\n", " ") for caption in srt(TALK, lines=False)]
    podcast = msgspec.json.decode(as_podcast_json(TALK), type=PodcastTranscript)

    assert "<v Kari &amp; Co &lt;vert&gt;>Velkommen" in as_vtt(TALK)
    assert voices.count("Ola") == 1
    assert {text.split(": ")[0] for text in texts} == {"Kari & Co ‹vert>", "Ola"}
    assert [entry.speaker for entry in podcast.segments].count("Ola") == 1
    assert as_txt(TALK) == f"Kari & Co <vert>: {LONG}\nOla: Ja, <nettopp> --> der!\n"


def test_who_speaks_at_once_is_shown_at_once_and_in_order() -> None:
    found = cues(TALK)

    assert [cue.start for cue in found] == sorted(cue.start for cue in found)
    (ola,) = [cue for cue in found if cue.speaker == "Ola"]
    assert (ola.start, ola.end) == (12.5, 13.5)
    kari = [cue for cue in found if cue.speaker != "Ola"]
    assert any(cue.start < ola.start and ola.end < cue.end for cue in kari)
    assert all(one.end <= two.start for one, two in pairwise(kari))


def test_podcast_json_of_silence_is_valid_and_empty() -> None:
    assert msgspec.json.decode(as_podcast_json([]), type=PodcastTranscript).segments == []


def test_a_measured_word_of_half_a_minute_is_shown_for_seven_seconds() -> None:
    words = [{"start": 0.0, "end": 30.0, "word": " Nei"}]

    (cue,) = cues([{"start": 0.0, "end": 30.0, "text": "Nei", "words": words}], lines=True)

    assert (cue.start, cue.end) == (0.0, 7.0)


WORDS = st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=30), max_size=60)
NAMES = st.none() | st.text(st.characters(codec="utf-8"), max_size=20)


@given(WORDS, st.floats(0, 100), st.floats(0, 60), NAMES)
def test_any_text_reads_back_in_lines_that_fit(texts: list[str], start: float, length: float, name: str | None) -> None:
    segment = {"start": start, "end": start + length, "text": " ".join(texts), "speaker": name}

    podcast = msgspec.json.decode(as_podcast_json([segment], lines=True), type=PodcastTranscript)
    shown = cues([segment], lines=True)

    assert " ".join(cue.text for cue in shown).split() == segment["text"].replace("\0", " ").split()
    assert [entry.body for entry in podcast.segments] == [cue.text for cue in shown]
    assert as_vtt([segment], lines=True).count(" --> ") == as_srt([segment], lines=True).count(" --> ") == len(shown)
    for cue in shown:
        lines = as_srt([{**segment, "start": cue.start, "end": cue.end, "text": cue.text}], lines=True).split("\n")[2:]
        assert cue.end - cue.start <= 7.001
        assert all(len(line) <= 42 or len(cue.text.split()) == 1 for line in lines)
