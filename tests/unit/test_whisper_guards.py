"""Which segments are taken for speech, and which for something that the model made up."""

from typing import Any

import pytest

from services.whisper.guards import REASONS, Frame, is_sparse, screen
from services.whisper.phrases import CREDITS, NAMES

LOOP = "Det er " + "veldig " * 12
UNIT = Frame(0.0, 300.0, speech=((0.0, 300.0),))
LAST = Frame(0.0, 300.0, is_last=True, speech=((0.0, 300.0),))


def row(text: str, start: float = 10.0, end: float = 14.0, **measures: Any) -> dict[str, Any]:
    return {
        "start": start,
        "end": end,
        "text": text,
        "avg_logprob": -0.3,
        "no_speech_prob": 0.05,
        "compression_ratio": 1.2,
        "temperature": 0.0,
        **measures,
    }


def reason(segment: dict[str, Any], frame: Frame = UNIT) -> str | None:
    kept, dropped = screen([segment], frame)
    assert len(kept) + len(dropped) == 1
    assert {other["reason"] for other in dropped} <= set(REASONS)
    return dropped[0]["reason"] if dropped else None


@pytest.mark.parametrize(
    ("text", "no_speech", "logprob", "expected"),
    [
        ("Det er veldig fint", 0.93, -0.78, "silence"),  # measured: silence, forced to Norwegian
        ("Det er veldig fint", 0.80, -0.80, "silence"),  # measured: music behind the speech detector
        ("Det er veldig fint", 0.93, -0.4, None),  # unsure whether someone speaks, sure of the words
        ("Det er veldig fint", 0.12, -0.9, None),  # the most that true Norwegian speech had
        ("Det er veldig fint", None, None, None),
        (LOOP, 0.93, -0.4, "repetition"),
        (LOOP, 0.02, -0.1, "repetition"),
    ],
)
def test_segment_is_silence_when_the_model_hears_nobody_and_is_unsure(
    text: str, no_speech: float | None, logprob: float | None, expected: str | None
) -> None:
    assert reason(row(text, no_speech_prob=no_speech, avg_logprob=logprob)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("takk skal du ha, takk skal du ha, takk skal du ha, takk skal du ha", "repetition"),
        ("og så og så og så og så", "repetition"),
        ("jeg vet ikke jeg vet ikke jeg vet ikke jeg vet", "repetition"),
        ("La oss gå hjem i dag. La oss gå hjem i dag.", None),  # a chorus of two
        ("ask not what your country can do for you, ask what you can do for your country. " * 2, None),
        ("Nei, nei, nei, nei, det er feil.", None),  # four times, and sure: someone insists
        ("Nei " * 30, "repetition"),
        ("Vi må snakke om hva vi gjør med det vi ikke vet om det som er.", None),
        ("Ja", None),
        ("...", None),
    ],
)
def test_loop_is_dropped_and_a_line_said_twice_is_kept(text: str, expected: str | None) -> None:
    assert reason(row(text, 0.0, 25.0)) == expected


def test_word_repeated_four_times_is_a_loop_when_the_model_is_unsure() -> None:
    assert reason(row("Nei, nei, nei, nei, det er feil.", no_speech_prob=0.5)) == "repetition"


def test_third_time_of_a_segment_is_dropped_and_a_chorus_of_two_is_kept() -> None:
    said = [row("Vi går hjem nå.", start, start + 2) for start in (1.0, 3.0, 5.0, 7.0)]

    kept, dropped = screen([*said, row("Ja.", 9, 10), row("Vi går hjem nå!", 10, 12)], UNIT)

    assert [segment["start"] for segment in kept] == [1.0, 3.0, 9, 10]
    assert [(segment["start"], segment["end"], segment["reason"]) for segment in dropped] == [
        (5.0, 7.0, "same_as_before"),
        (7.0, 9.0, "same_as_before"),
    ]


CREDIT = "Teksting av Nicolai Winther"


@pytest.mark.parametrize(
    ("segment", "frame", "expected"),
    [
        (row(CREDIT), UNIT, None),  # sure, in the middle, and in speech
        (row(CREDIT, no_speech_prob=0.11), UNIT, "credit"),
        (row(CREDIT), LAST, "credit"),
        (row(CREDIT, 50, 54), Frame(0, 300, speech=((0, 10), (53.5, 60))), "credit"),
        (row("Danske tekster af Nicolai Winther"), LAST, "credit"),
        (row("Undertekster av Ai-Media"), LAST, "credit"),
        (row("Takk for at du så med!"), LAST, "credit"),
        (row("Undertexter från Amara.org-gemenskapen"), LAST, "credit"),
        (row("Thanks for watching!"), LAST, "credit"),
        (row("Untertitel im Auftrag des ZDF für funk, 2017"), LAST, "credit"),
        (row("Tekstitys Katja Juutistenaho"), LAST, "credit"),
        (row("Teksta av Ola Nordmann"), LAST, "credit"),
        (row("Hun lever av teksting av filmer."), LAST, None),
        (row("Takk for at du hørte på, vi høres neste uke."), LAST, None),
        (
            row("Teksting av direktesendinger er et stort og viktig arbeid som mange i Norge trenger hver dag.", 0, 9),
            Frame(0, 300, is_last=True, speech=((0, 300),)),
            None,
        ),
        (row("Teksting av direktesendinger er viktig for veldig mange mennesker.", no_speech_prob=0.5), UNIT, None),
    ],
)
def test_credits_are_dropped_for_a_second_reason_only(
    segment: dict[str, Any], frame: Frame, expected: str | None
) -> None:
    assert reason(segment, frame) == expected


def test_several_credits_at_the_end_are_all_dropped() -> None:
    said = [row("Ha det bra.", 1, 2), row(CREDIT, 2, 4), row("Takk for at du så på.", 4, 6)]

    kept, dropped = screen(said, LAST)

    assert [segment["text"] for segment in kept] == ["Ha det bra."]
    assert [segment["start"] for segment in dropped] == [2, 4]


HINTED = Frame(
    0, 300, speech=((0, 300),), prompt="En samtale om musikk. Med latter.", hotwords=("Grieg", "Kari Bremnes", "Kygo")
)


@pytest.mark.parametrize(
    ("text", "measures", "expected"),
    [
        ("En samtale om musikk, med latter.", {}, "echo"),
        ("En samtale om musikk.", {}, None),  # may be said
        ("En samtale om musikk.", {"no_speech_prob": 0.5}, "echo"),
        ("Grieg, Kari Bremnes, Kygo", {}, "echo"),
        ("Kygo.", {}, None),
        ("Kari Bremnes, Kygo", {}, None),
        ("Vi hører Grieg, Kari Bremnes, Kygo og andre.", {}, None),
    ],
)
def test_hints_given_back_are_no_speech(text: str, measures: dict[str, Any], expected: str | None) -> None:
    assert reason(row(text, **measures), HINTED) == expected


def test_more_than_can_be_said_in_the_time_is_dropped() -> None:
    text = "Dette er en lang setning som ingen kan si så fort."

    assert reason(row(text, 1.0, 2.0)) == "density"
    assert reason(row(text, 1.0, 3.0)) is None
    assert reason(row("Ja, visst.", 1.0, 1.1)) is None  # short ones have times too rough for that


def test_times_are_put_inside_the_unit_and_what_lies_outside_is_dropped() -> None:
    frame = Frame(300.0, 600.0, speech=((300.0, 600.0),))
    words = [{"start": 299.5, "end": 300.5, "word": "Hei", "probability": 0.9}]

    kept, dropped = screen([row("Hei på deg.", 299.5, 301.0, words=words), row("Ingen.", 600.5, 602.0)], frame)

    assert (kept[0]["start"], kept[0]["end"]) == (300.0, 301.0)
    assert kept[0]["words"][0]["start"] == 300.0
    assert [segment["reason"] for segment in dropped] == ["outside"]


def test_dropped_segment_keeps_text_times_and_measures_but_no_words() -> None:
    _, (dropped,) = screen([row(CREDIT, words=[])], LAST)

    assert dropped == {**row(CREDIT), "reason": "credit"}


def test_much_speech_with_next_to_no_text_is_sparse() -> None:
    assert is_sparse([row("Ja.")], UNIT)
    assert is_sparse([], UNIT)
    assert not is_sparse([row("x" * 601)], UNIT)
    assert not is_sparse([], Frame(0, 300, speech=((0.0, 20.0),)))
    assert screen([row("")], UNIT) == ([], [])


def test_phrases_are_written_as_they_are_compared() -> None:
    from services.whisper.guards import words_of

    for phrase in (*CREDITS, *NAMES):
        assert " ".join(words_of(phrase)) == phrase
