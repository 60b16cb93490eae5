"""What cleaning does to a paste, one thing at a time: what went, why, and what stands there now."""

from datetime import datetime

import pytest

from services.research.clip import Clip, make_clip, restore_lines
from services.research.paste import Paste

MATTER = "Fylkesrådet legger i dag fram en ny avtale med rederiet, og den gjelder fra 2028. Båten går som før."
PASTED_AT = datetime.fromisoformat("2026-08-20T08:15:00+02:00")  # a Thursday


def clip_of(*paragraphs: str, between: str = "\n\n") -> Clip:
    return make_clip(Paste(between.join(paragraphs), pasted_at=PASTED_AT))


@pytest.mark.parametrize(
    ("pasted", "clean", "how"),
    [
        ("Bå\u200bten går\u00ad nå i\ufeff dag.", "Båten går nå i dag.", "invisible characters removed"),
        ("Den \u202eskrevet bakover\u202c teksten.", "Den skrevet bakover teksten.", "invisible characters removed"),
        ("FylkesrÃ¥det sier Ã¸nsket er Ã¦rlig.", "Fylkesrådet sier ønsket er ærlig.", "mojibake repaired"),
        ("FylkesrÃƒÂ¥det sier Ãƒ¸nsket nÃƒÂ¥.", "Fylkesrådet sier ønsket nå.", "mojibake repaired"),
        ("Fylkesr√•det sier √∏nsket er √¶rlig.", "Fylkesrådet sier ønsket er ærlig.", "mojibake repaired"),
        ("Pris:\u00a01\u202f000 kroner.", "Pris: 1 000 kroner.", "spaces made plain"),
        ("Se https://a.example/?utm_source=b&id=3 nå.", "Se https://a.example/?id=3 nå.", "addresses cleaned"),
    ],
)
def test_characters_and_addresses_are_mended_and_it_is_told(pasted: str, clean: str, how: str) -> None:
    clip = clip_of(pasted, MATTER)

    assert clip["clean_text"] == f"{clean}\n\n{MATTER}"
    assert [(one["original"], list(one["how"])) for one in clip["changed"]] == [([pasted], [how])]
    assert ("direction_marks_removed" in clip["quality"]["warnings"]) == ("\u202e" in pasted)


def test_quotes_and_dashes_are_the_authors() -> None:
    said = "Hun sa «ja», og “maybe”, og han sa – nei: 'kanskje' - \"trolig\"."

    clip = clip_of(said)

    assert (clip["clean_text"], clip["changed"], clip["removed"]) == (said, [], [])


def test_wrapped_lines_and_broken_words_are_joined_and_can_be_parted_again() -> None:
    lines = [
        "Dette er en lang linje som er brukket av et program for e-post, og der kom-",
        "munen har fått et brev som de må svare på innen fristen, og som",
        "går videre her med små bokstaver til slutten av avsnittet.",
    ]

    clip = clip_of(*lines, between="\n")

    assert clip["clean_text"] == f"{lines[0][:-1]}{lines[1]} {lines[2]}"
    [joined] = clip["changed"]
    assert (joined["lines"], joined["original"]) == ([1, 2, 3], lines)
    assert list(joined["how"]) == ["word joined", "lines joined"]
    assert restore_lines(clip) == lines


def test_paragraph_that_stands_twice_goes_once() -> None:
    other = "Et annet avsnitt om kaia som er bygd i betong."

    clip = clip_of(MATTER, other, MATTER)

    assert clip["clean_text"] == f"{MATTER}\n\n{other}"
    assert clip["removed"] == [{"line": 5, "text": MATTER, "reason": "duplicate"}]


@pytest.mark.parametrize(
    ("said", "published"),
    [
        ("i dag", "2026-08-20"),
        ("i går kl. 17.05", "2026-08-19T17:05"),
        ("i forgårs", "2026-08-18"),
        ("for 3 timer siden", "2026-08-20"),
        ("for tre dagar sidan", "2026-08-17"),
        ("19. august 2026", "2026-08-19"),
        ("mandag 17. aug. 2026 kl. 06:12", "2026-08-17T06:12"),
        ("19.08.2026", "2026-08-19"),
        ("19.08.26 kl 9:05", "2026-08-19T09:05"),
        ("2026-08-19", "2026-08-19"),
    ],
)
def test_norwegian_dates_are_read_relative_ones_from_when_it_was_pasted(said: str, published: str) -> None:
    below = "Kaia skal bygges i betong, og arbeidet tar to år fra våren av, sier havnesjefen i kommunen."

    clip = clip_of("Havna får ny kai", "Av Kari Nordmann", f"Publisert {said}", MATTER, below)

    assert (clip["title"], clip["source"]["author"]) == ("Havna får ny kai", "Kari Nordmann")
    assert clip["source"]["published"] == published
    assert clip["clean_text"] == f"Havna får ny kai\n\n{MATTER}\n\n{below}"


@pytest.mark.parametrize(
    "lines",
    [
        ["Logg inn", "Les også: Rederiet taper penger", "Del på Facebook", "Foto: Ola Nordmann / NTB", "Annonse"],
        ["Logg inn", "Les òg: Reiarlaget taper pengar", "Del på Facebook", "Foto: Ola Nordmann", "Annonse"],
        ["Log in", "Read also: The company loses money", "Share on Facebook", "Photo: Ola Nordmann", "Advertisement"],
    ],
    ids=["nb", "nn", "en"],
)
def test_lines_of_a_page_go_each_with_its_reason(lines: list[str]) -> None:
    clip = clip_of(lines[0], MATTER, *lines[1:], "Vi bruker informasjonskapsler", "Godta alle", between="\n")

    assert clip["clean_text"] == MATTER
    reasons = {row["text"]: row["reason"] for row in clip["removed"]}
    assert [reasons[line] for line in lines] == ["login", "read also", "share", "photo credit", "advertising"]
    assert reasons["Godta alle"] == "consent"
