"""What a model says of a clip, looked up in the clip's text."""

from datetime import datetime
from typing import Any
from uuid import UUID

import pytest

from openrouter_client.prose import Prose
from openrouter_client.wording import OUTPUT_LANGUAGES
from services.research.cleaner import Paste
from services.research.clip import make_clip
from services.research.descriptions import (
    ClaimAnswer,
    Description,
    EntityAnswer,
    FactAnswer,
    HeadingAnswer,
    QuoteAnswer,
)
from services.research.grounding import LONGEST_QUOTE, MOST_ROWS, MOST_SPANS, MOST_UNGROUNDED, Grounder
from services.research.paragraphs import MOST_LETTERS, divide, find_paragraph, number_paragraphs
from services.research.questions import HEAD, WORDING, make_asker

PARAGRAPHS = (
    "Båten «Skåreholm» 🚢 gikk på grunn ved Ørnes klokka 04.35, og 1 250 liter diesel lakk ut i sjøen.",
    "Rederiet sier at ingen ble skadet, og at båten skal slepes til verftet i Bodø før helga.",
    "Pris: 200 kr",
    "Ørnes' ordfører Åse Li mener at kommunen bør få betalt for ryddingen, som har kostet 1,5 millioner kroner.",
    "Kilde: Avisa 3. mai 2024",
)
TEXT = "\n\n".join(PARAGRAPHS)


def grounder(text: str = TEXT) -> Grounder:
    start = 0
    blocks = []
    for paragraph in text.split("\n\n"):
        blocks.append({"kind": "paragraph", "start": start, "end": start + len(paragraph), "line": 0})
        start += len(paragraph) + 2
    return Grounder(text, number_paragraphs({"clean_text": text, "blocks": blocks}), Prose(text))


def claim(quote: str, paragraph: str = "P1", text: str = "Båten gikk på grunn.") -> ClaimAnswer:
    return ClaimAnswer(text, paragraph, quote)


@pytest.mark.parametrize(
    ("quote", "paragraph", "match"),
    [
        ("gikk på grunn ved Ørnes klokka 04.35", "P1", "exact"),
        ("GIKK PÅ GRUNN VED ØRNES KLOKKA 04.35", "[p1]", "exact"),
        ("gikk på grunn ved Ørnes klokka 04.35", "P4", "exact"),
        ("gikk på grunn ved Ørnes klokka 04.35", "P99", "exact"),
        ("Rederiet sier at ingen blei skadet, og at båten skal slepes", "P1", "repaired"),
        ("200 kr", "P3", "exact"),
    ],
)
def test_claim_gets_the_place_that_it_quotes(quote: str, paragraph: str, match: str) -> None:
    (row,) = grounder().claims([claim(quote, paragraph)])

    assert TEXT[row["start"] : row["end"]] == row["quote"]
    assert row["match"] == match


@pytest.mark.parametrize(
    ("quote", "paragraph"),
    [
        ("Rederiet sier at mange ble hardt skadet i ulykken natt til søndag", "P2"),
        ("Rederiet sier at ingen blei skadet, og at båten skal slepes", "P99"),
        ("200 kr", "P1"),
        ("båten", "P1 P2"),
        ("e", "P3"),
    ],
)
def test_claim_without_its_quote_is_kept_apart(quote: str, paragraph: str) -> None:
    looked = grounder()

    assert looked.claims([claim(quote, paragraph)]) == []
    assert [row["reason"] for row in looked.ungrounded] == ["quote_not_found"]
    assert looked.counts == {"quote_not_found": 1}


def test_short_quote_must_stand_once_in_its_paragraph() -> None:
    text = "Pris: 200 kr\n\nFør 200 kr, nå 200 kr\n\nIngen pris"

    assert [row["start"] for row in grounder(text).claims([claim("200 kr", "P1")])] == [6]
    for paragraph in ("P2", "P3"):
        looked = grounder(text)
        assert looked.claims([claim("200 kr", paragraph)]) == []
        assert looked.counts == {"quote_not_found": 1}


def test_quote_over_its_length_is_kept_apart_and_cut() -> None:
    text = "Det er mange båter på kysten vår i dag. " * 30
    looked = grounder(text.strip())

    assert looked.claims([claim(text[: LONGEST_QUOTE + 40])]) == []
    assert [(row["reason"], len(row["quote"])) for row in looked.ungrounded] == [("quote_too_long", LONGEST_QUOTE)]


def test_names_are_found_with_a_genitive_and_in_so_many_places() -> None:
    text = "Bodøs havn og Bodø by, men ikke Bodøværing. " + "Bodø. " * MOST_SPANS
    (row,) = grounder(text.strip()).entities([EntityAnswer("Bodø", "place")])

    places = [text[span["start"] - 1 :][: span["end"] - span["start"] + 3].strip() for span in row["spans"][:3]]
    assert len(row["spans"]) == MOST_SPANS
    assert text[row["spans"][0]["start"] :].startswith("Bodøs")
    assert not any(place.startswith("Bodøv") for place in places)


def test_lists_without_an_end_are_cut_and_still_counted() -> None:
    looked = grounder()
    invented = [EntityAnswer(f"Oppdikta {n}") for n in range(MOST_UNGROUNDED + 50)]
    headings = [HeadingAnswer("P1", "Båten"), HeadingAnswer("P1", "En annen"), HeadingAnswer("P2", "Rederiet")]

    assert looked.entities(invented) == []
    assert (len(looked.ungrounded), looked.counts["not_in_text"]) == (MOST_UNGROUNDED, MOST_UNGROUNDED + 50)
    assert [row["title"] for row in looked.headings(headings)] == ["Båten", "Rederiet"], "one to a paragraph"
    many = grounder(" ".join(f"Ord{n}a" for n in range(300)))
    assert len(many.entities(EntityAnswer(f"Ord{n}a") for n in range(300))) == MOST_ROWS["entity"]


def fact(value: str | int | float, quote: str, **fields: Any) -> FactAnswer:
    return FactAnswer("ryddingen", "kostet", value, fields.pop("paragraph", "P4"), quote, **fields)


def test_numbers_of_a_fact_stand_in_its_quote() -> None:
    looked = grounder()
    quote = "ryddingen, som har kostet 1,5 millioner kroner"
    facts = looked.facts(
        [
            fact("1.5", quote, unit="millioner kroner"),
            fact(1.5, quote, unit="kroner"),
            fact("2,5", quote, unit="millioner kroner"),
            fact("1,5", quote, unit="milliarder kroner"),
            fact("1250 liter", "1 250 liter diesel lakk ut i sjøen", paragraph="P1"),
            fact("", quote),
        ]
    )

    assert [(row["value"], row["unit"]) for row in facts] == [
        ("1.5", "millioner kroner"), ("1250 liter", None),
    ]  # fmt: skip
    assert [(row["value"], row["reason"]) for row in looked.ungrounded] == [
        ("2,5", "number_not_in_quote"), ("1,5", "number_not_in_quote"),
    ]  # fmt: skip
    assert looked.counts == {"number_not_in_quote": 2, "empty": 1}


def test_entities_have_all_their_places_and_inventions_are_kept_apart() -> None:
    looked = grounder()
    rows = looked.entities(
        [EntityAnswer("Ørnes", "place"), EntityAnswer("ørnes"), EntityAnswer("Kari Nord", "person"),
         EntityAnswer("Skåreholm", "vessel"), EntityAnswer("Bod", "place")]
    )  # fmt: skip

    assert [row["name"] for row in rows] == ["Ørnes", "Skåreholm"]
    assert [TEXT[span["start"] : span["end"]] for span in rows[0]["spans"]] == ["Ørnes", "Ørnes"]
    assert rows[1]["type"] == "other"
    assert {row["name"] for row in looked.ungrounded} == {"Kari Nord", "Bod"}


def test_quotes_and_headings_come_in_the_order_of_the_text() -> None:
    looked = grounder()
    quotes = looked.quotes([QuoteAnswer("P2", PARAGRAPHS[1]), QuoteAnswer("P1", "gikk på grunn ved Ørnes klokka")])
    headings = looked.headings([HeadingAnswer("P4", "Kravet"), HeadingAnswer(2, "Båten"), HeadingAnswer("P9", "Nei")])

    assert [TEXT[row["start"] :][:4] for row in quotes] == ["gikk", "Rede"]
    assert [(row["title"], TEXT[row["start"] :][:6]) for row in headings] == [("Båten", "Rederi"), ("Kravet", "Ørnes'")]


def test_title_author_and_date_are_the_texts_own_words() -> None:
    looked = grounder()
    answer = Description(title="båten skal slepes", author="Ola Oppdikta", published="3. mai 2024")

    found = looked.head(answer, HEAD, None)

    assert found == {"title": "båten skal slepes", "published": "2024-05-03"}
    assert [row["kind"] for row in looked.ungrounded] == ["author"]
    assert grounder().head(Description(published="i Bodø"), HEAD, datetime(2024, 5, 4)) == {}


def test_paragraphs_hold_all_words_and_parts_hold_all_paragraphs() -> None:
    long = "Et ord til. " * 1200
    clip = make_clip(Paste(f"{TEXT}\n\n{long}\n\n{'x' * 7000}"))
    paragraphs = number_paragraphs(clip)

    text = clip["clean_text"]
    assert "".join("".join(text[p.start : p.end].split()) for p in paragraphs) == "".join(text.split())
    assert all(p.end - p.start <= MOST_LETTERS for p in paragraphs)
    assert [p.number for p in paragraphs] == list(range(1, len(paragraphs) + 1))
    for room in (900, 2000, 10**6):
        parts = divide(paragraphs, room)
        assert [p for part in parts for p in part] == paragraphs
        assert all(len(part) == 1 or sum(p.tokens for p in part) <= room for part in parts)
    assert find_paragraph("P0", paragraphs) is None
    assert find_paragraph("avsnitt 2", paragraphs) is None


def test_prompts_have_the_same_sections() -> None:
    assert len({tuple(WORDING.sections(language)) for language in OUTPUT_LANGUAGES}) == 1


def test_question_asks_only_for_what_the_cleaning_has_not_found() -> None:
    asker = make_asker(UUID(int=1), "nn", ("author",), 128_000)
    question = asker.question("clip", "clip", ["P1 Hei <|im_end|> der"])

    assert "title" not in question.schema.schema["properties"]
    assert next(iter(question.schema.schema["properties"])) == "author"
    assert "<|im_end|>" not in question.messages[1].text
    assert "nynorsk" in question.messages[0].text
    assert question == asker.question("clip", "clip", ["P1 Hei <|im_end|> der"])
    assert asker.room("clip") > 90_000
