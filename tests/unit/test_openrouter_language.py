"""Bokmål, nynorsk and their neighbours are told apart."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openrouter_client.language import LANGUAGES, detect, is_language

# What a model writes about an episode, in each language.
SUMMARIES = {
    "nb": (
        "I denne episoden snakker vi med en bonde fra Toten om hvordan det er å drive økologisk i dag.",
        "Hvorfor sover vi så dårlig? Forskeren forteller om søvn, lys og hva skjermene gjør med oss.",
        "Kommunen vil legge ned skolen, men foreldrene gir seg ikke. Vi har vært på besøk i bygda.",
    ),
    "nn": (
        "I denne episoden snakkar vi med ein bonde frå Jølster om korleis det er å drive økologisk i dag.",
        "Kvifor søv vi så dårleg? Forskaren fortel om søvn, lys og kva skjermane gjer med oss.",
        "Kommunen vil leggje ned skulen, men foreldra gjev seg ikkje. Vi har vore på besøk i bygda.",
    ),
    "da": (
        "I dette afsnit taler vi med en landmand fra Fyn om, hvordan det er at drive økologisk landbrug i dag.",
        "Hvorfor sover vi så dårligt? Forskeren fortæller om søvn, lys og hvad skærmene gør ved os.",
        "Kommunen vil lukke skolen, men forældrene giver ikke op. Vi har været på besøg i byen.",
    ),
    "sv": (
        "I det här avsnittet pratar vi med en bonde från Skåne om hur det är att driva ekologiskt jordbruk i dag.",
        "Varför sover vi så dåligt? Forskaren berättar om sömn, ljus och vad skärmarna gör med oss.",
        "Kommunen vill lägga ner skolan, men föräldrarna ger sig inte. Vi har varit på besök i byn.",
    ),
    "en": (
        "In this episode we talk to a farmer from Toten about what it is like to run an organic farm today.",
        "Why do we sleep so badly? The researcher explains sleep, light and what screens do to us.",
        "The council wants to close the school, but the parents will not give up. We visited the village.",
    ),
}
CASES = [(language, text) for language, texts in SUMMARIES.items() for text in texts]


@pytest.mark.parametrize(("language", "text"), CASES)
def test_a_summary_is_in_its_language_and_in_no_other(language: str, text: str) -> None:
    assert is_language(text, language)
    assert [other for other in LANGUAGES if is_language(text, other)] == [language]


@pytest.mark.parametrize("language", ["nb", "nn"])
def test_the_whole_sample_is_told(samples: Path, language: str) -> None:
    assert detect((samples / "text" / f"{language}.txt").read_text(encoding="utf-8")).language == language


@pytest.mark.parametrize(("language", "other"), [("nb", "nn"), ("nn", "nb")])
def test_paragraphs_are_told_and_hardly_ever_mistaken(samples: Path, language: str, other: str) -> None:
    """Paragraphs of 300 letters from newspapers, blogs and parliament."""
    paragraphs = paragraphs_of((samples / "text" / f"{language}.txt").read_text(encoding="utf-8"), 300)
    found = [detect(paragraph).language for paragraph in paragraphs]

    assert len(found) > 400
    assert found.count(language) / len(found) > 0.97
    assert found.count(other) / len(found) < 0.005


@pytest.mark.parametrize("language", ["nb", "nn"])
def test_an_answer_of_one_or_two_sentences_is_hardly_ever_refused(samples: Path, language: str) -> None:
    paragraphs = paragraphs_of((samples / "text" / f"{language}.txt").read_text(encoding="utf-8"), 120)

    assert sum(is_language(paragraph, language) for paragraph in paragraphs) / len(paragraphs) > 0.98


@pytest.mark.parametrize(
    "text",
    [
        "In dieser Folge sprechen wir mit einem Bauern über den ökologischen Landbau und seine vielen Probleme.",
        "W tym odcinku rozmawiamy z rolnikiem o tym, jak dziś prowadzi się gospodarstwo ekologiczne.",
        "В этом выпуске мы говорим с фермером о том, как сегодня вести органическое хозяйство.",
        "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30",
    ],
)
def test_other_languages_are_none_of_them(text: str) -> None:
    assert detect(text).language is None
    assert not is_language(text, "nb")


@pytest.mark.parametrize("text", ["", "Kari Nordmann", "Ost", "   \n  ", "🙂" * 10])
def test_what_is_too_short_to_tell_is_not_judged(text: str) -> None:
    assert detect(text).language is None
    assert is_language(text, "nn")


@settings(deadline=None)
@given(st.text(max_size=400))
def test_any_text_is_judged_without_a_fault(text: str) -> None:
    assert detect(text).language in (None, *LANGUAGES)


def paragraphs_of(text: str, letters: int) -> list[str]:
    paragraphs, current = [], ""
    for line in text.splitlines():
        current = f"{current} {line}".strip()
        if len(current) >= letters:
            paragraphs.append(current)
            current = ""
    return paragraphs
