"""Quotes of a transcript: those that were said, in order of time, with the segments' own times and speaker."""

from collections import Counter

from services.openrouter.answers import QuoteAnswer
from services.openrouter.blocks import make_blocks
from services.openrouter.quotations import LONGEST_QUOTE, MOST_QUOTES, Quotation, make_quotations
from services.openrouter.transcript import Segment, Transcript

TALK = Transcript(
    [
        Segment("Vi venter på båten hver eneste dag.", 0.0, 30.0, "Kari"),
        Segment("Den kommer aldri når den skal komme.", 30.0, 60.0, "Kari"),
        Segment("Rederiet sier at det er været sin skyld.", 60.0, 95.0, "Ola"),
    ],
    duration=100.0,
)


def made(*texts: str, of: Transcript = TALK, block: str = "B1") -> tuple[list[Quotation], dict[str, int]]:
    dropped = Counter[str]()
    answers = [QuoteAnswer(block, text) for text in texts]
    return make_quotations(answers, make_blocks(of), of, dropped), dict(dropped)


def test_quotes_come_in_order_of_time_with_the_times_of_their_segments() -> None:
    later, earlier = "det er været sin skyld", "venter på båten hver eneste"
    quotes, dropped = made(later, earlier)

    assert [(quote.text, quote.start, quote.end, quote.speaker) for quote in quotes] == [
        (earlier, 0.0, 30.0, "Kari"),
        (later + ".", 60.0, 95.0, "Ola"),
    ]
    assert [TALK.text[quote.position :].startswith(quote.text) for quote in quotes] == [True, True]
    assert dropped == {}


def test_a_quote_over_several_segments_has_a_speaker_where_there_is_one() -> None:
    (of_kari,), _ = made("hver eneste dag. Den kommer aldri")
    (of_both,), _ = made("når den skal komme. Rederiet sier")

    assert (of_kari.first_segment, of_kari.last_segment, of_kari.speaker) == (0, 1, "Kari")
    assert (of_both.first_segment, of_both.last_segment, of_both.speaker) == (1, 2, None)
    assert (of_both.start, of_both.end) == (30.0, 95.0)


def test_what_was_not_said_is_too_long_or_stands_twice_is_dropped_by_reason() -> None:
    long = "Dette er en ganske vanlig setning om båten. " * 20
    talk = Transcript([Segment(long, 0.0, 60.0)])

    assert made("Dette har ingen noen gang sagt her", of=talk) == ([], {"not_said": 1})
    assert made(long[: LONGEST_QUOTE + 20], of=talk) == ([], {"too_long": 1})
    assert made("Den kommer aldri når den skal", "kommer aldri når den skal komme")[1] == {"twice": 1}


def test_the_first_few_quotes_are_kept() -> None:
    segments = [Segment(f"Setning nummer {n} handler om båten vår.", 30.0 * n, 30.0 * n + 29) for n in range(12)]
    quotes, dropped = made(*(one.text for one in reversed(segments)), of=Transcript(segments))

    assert [quote.first_segment for quote in quotes] == list(range(12 - MOST_QUOTES, 12))
    assert dropped == {"too_many": 12 - MOST_QUOTES}
