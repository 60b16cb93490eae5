"""A model's own words: cut, cleaned, and without addresses that their source lacks."""

import pytest

from openrouter_client.prose import Prose


@pytest.mark.parametrize(
    "address",
    [
        "evil.ai", "bit.ly/abc123", "t.me/skam", "evil．com", "post@evil.xyz", "kari@firma.no", "firma.co.uk/x",
        "ftp://x.y/z", "//evil.com/x", "https:// evil.com", "http//evil.com", "xn--e1.xn--p1ai", "192.168.1.1/x",
        "evil[.]com", "evil(dot)com", "hxxp://evil.com", "javascript:alert(1)", "tel:+4790000000", "evil.shop",
        "evil.c\u00adom", "EVIL.DEV", "mailto:a@b.c", "www.evil", "evil.com:8080/x", "bücher.de/x", "пример.рф/x",
    ],
)  # fmt: skip
def test_an_address_that_nobody_said_is_dropped_with_all_its_parts(address: str) -> None:
    prose = Prose("vi snakker om ost")
    line = prose.line(f"Les mer på {address} nå", 200)

    assert line == "Les mer på nå"
    assert prose.dropped_addresses == 1


@pytest.mark.parametrize(
    "text",
    [
        "Node.js er bra, kl. 12.30, f.eks. i går, bl.a. og/eller", "Den 12.03.2024 hendte det: 1.000 kr/t.", "a/b-test",
        "Prop. 12 S (2023/24) om NAV-loven § 8-9 m.m.", "Hva så? Jo: det gikk.", "Han sa «no» og at.de gikk",
        "Ola m/familie, ca.100 stk., 50 %/år", "Tel Aviv: en by", "Spill 3: slutten", "U.S.A. og d.v.s. o.l.",
        "Ferdig.Så gikk de", "Kari (dot) Olsen", "Versjon 3.11.2 kom",
    ],
)  # fmt: skip
def test_what_only_looks_like_an_address_stays(text: str) -> None:
    prose = Prose("vi snakker om ost")

    assert prose.line(text, 300) == text
    assert prose.dropped_addresses == 0


def test_an_address_that_was_said_stays() -> None:
    assert Prose("gå til ost.no da").line("Se ost.no i dag", 100) == "Se ost.no i dag"


@pytest.mark.parametrize(
    ("source", "address"),
    [
        ("gå til ost.no da", "ost.no"),
        ("Gå inn på oste.no, sa han, og på www.smør.no.", "www.smør.no"),
        ("skriv til post ost no", "post@ost.no"),  # as a recognizer may have it
        ("Se https://avisa.example/sak og post@avisa.example.", "https://avisa.example/sak"),
        ("Se https://avisa.example/sak og post@avisa.example.", "avisa.example/sak"),
    ],
)
def test_an_address_that_the_source_has_stays(source: str, address: str) -> None:
    prose = Prose(source)

    assert prose.line(f"Les mer på {address}, nå", 200) == f"Les mer på {address}, nå"
    assert prose.dropped_addresses == 0


@pytest.mark.parametrize(
    ("source", "address"),
    [
        ("vi spiste ost nokså ofte", "ost.no"),
        ("Se https://avisa.example/saken", "https://avisa.example/sak"),
        ("Se https://avisa.example/sak", "visa.example/sak"),
    ],
)
def test_an_address_out_of_pieces_of_words_is_not_in_the_source(source: str, address: str) -> None:
    prose = Prose(source)

    assert prose.line(f"Les mer på {address} nå", 200) == "Les mer på nå"
    assert prose.dropped_addresses == 1


def test_texts_are_cut_at_a_word_and_lost_of_what_is_not_seen() -> None:
    prose = Prose("")

    assert prose.line("Et ord til og så enda ett ord", 20) == "Et ord til og så…"
    assert prose.line("a\u202eb\x00c\td", 20) == "ab\ufffdc d"
    assert prose.line("Les\u202e https://ond.example/x?y=1 nå\n\x07", 99) == "Les nå"
    assert prose.paragraphs("En\nlinje.\n\n\n  To. \r\n\r\nTre.", 100) == "En linje.\n\nTo.\n\nTre."


def test_lists_hold_each_text_once_where_it_stood_first() -> None:
    prose = Prose("")

    assert prose.lines(("Ost", "Smør", " ost ", "", "Brød"), 2, 10) == ["Ost", "Smør"]
    assert prose.lines(("Ost", "Smør", "ost"), 1, 10) == ["Ost"]
