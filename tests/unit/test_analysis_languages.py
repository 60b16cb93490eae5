"""Which language a transcript is in: by its words, else as it was said to be; and whether it is in one alone."""

import pytest

from services.openrouter.languages import SpokenLanguage, spoken_language
from services.openrouter.transcript import Segment, Transcript

NORWEGIAN = "Vi har snakket med folk som bor langs kysten, og de forteller at båten sjelden kommer når den skal. "
ENGLISH = "We have talked to people who live along the coast, and they say that the boat is hardly ever on time. "


def spoken(*texts: str, told: str | None = None) -> SpokenLanguage:
    return spoken_language(Transcript([Segment(text, None, None) for text in texts], language=told))


@pytest.mark.parametrize(
    ("text", "told", "language"),
    [
        (NORWEGIAN, None, "nb"),
        (NORWEGIAN, "en", "nb"),
        ("Hei.", None, None),
        ("Hei.", "no", "nb"),
        ("Hei.", "NNO", "nn"),
        ("Hei.", "de", "de"),
    ],
)
def test_the_words_decide_then_what_was_told(text: str, told: str | None, language: str | None) -> None:
    assert spoken(text, told=told) == SpokenLanguage(language, is_mixed=False)


def test_a_transcript_of_two_languages_is_mixed_and_one_foreign_sentence_makes_none() -> None:
    assert spoken(NORWEGIAN * 120, ENGLISH * 40) == SpokenLanguage("nb", is_mixed=True)
    assert spoken(NORWEGIAN * 60, ENGLISH, NORWEGIAN * 60) == SpokenLanguage("nb", is_mixed=False)
    assert not spoken(NORWEGIAN * 9, ENGLISH * 2, NORWEGIAN * 9).is_mixed, "too short to tell stretches apart"
