"""What holds for any paste: the text is clean, storable, spanned, reversible, and cleaning it again changes nothing."""

import json
import re
import unicodedata
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from services.research.characters import LINE_END, sound
from services.research.cleaner import Paste
from services.research.clip import Clip, make_clip, restore_lines
from sidelinja_jobs.json_text import check_payload

PASTED_AT = datetime(2026, 8, 20, 8, 15, tzinfo=UTC)
# Pieces of what people paste, so that rules meet: labels, sentences, lists, code, tables, broken and invisible signs.
PIECES = st.sampled_from(
    [
        "Del på Facebook", "Annonse", "Les også", "Les også: Ulven er tilbake", "Vi bruker cookies. Godta alle",
        "Logg inn", "Meny | Søk | Hjem", "Nyheter Sport Kultur", "Av Kari Nordmann",
        "Publisert 3. mars 2026 kl. 06:12", "i går kl. 17.05", "Foto: Ola Nordmann", "Siste saker", "Kontakt",
        "© 2026 Avisa AS", "37 kommentarer", "1", "Innhold [skjul]", "1 Årsak",
        "Kommunen har vedtatt å bygge en ny kai, og arbeidet begynner til våren.",
        "– Vi er glade for det, sier ordføreren.",
        "Et tre falt over linja. Det tok 19 timer før strømmen var tilbake i bygda.", "Ny kai på Østre Våg",
        "Må søke om plass", "- 600 g torsk", "1. Skjær grønnsakene i strimler.", "  - innrykket", "a) første ledd",
        "> sitert linje", "> > dypere", "Havn\t2024\t2025", "Skålnes\t4 210\t3 977", "```", "def f(x):",
        "    return x == 1", "$ ls -l", "# Overskrift", "## Mer",
        "**fet** og [lenke](https://a.example/?utm_source=x&id=1)", "| a | b |", "|---|---|", "---",
        "title: Notat", "https://b.example/sti?fbclid=1#sted", "godt for-", "ankret i lokalsamfunnet",
        "E-post: a@b.example", "Tlf. 00 11 22 33", "Ã˜yene fÃ¥r vÃ¦r â€“ nÃ¥", "ÃƒÂ¸yer",
        "u\u00adsyn\u200blig\u2060", "\u202ebakvendt\u202c", "4\u00a0210", "👩\u200d🔧 takk",
        "Fra: Kari <k@a.example>", "Emne: SV: Møte", "Sendt: tirsdag 21. april 2026 13:07", "Mvh", "Kari", "--",
        "@kari · 3 t", "av kari » tor 08. jan. 2026 21:14", "Topp", "Siter", "Innlegg: 14", "<p>avsnitt</p>",
        "<div>", "&aring; &amp; &lt;b&gt;", "\f", "Side 2 av 9", "6                    Haukelidal",
        "Čáhpesluokta – Svartvikveien", "e\u0301n", "═══", "…", "😬",
    ]
)  # fmt: skip
PASTES = st.one_of(
    st.text(max_size=400),
    st.lists(st.one_of(PIECES, st.text(max_size=60)), max_size=25).flatmap(
        lambda pieces: st.sampled_from(["\n", "\n\n", "\r\n", " "]).map(lambda between: between.join(pieces))
    ),
)
TAGS = st.sampled_from(
    [
        "<p>", "</p>", "<div class='cookie-banner'>", "</div>", "<h1>", "</h1>", "<ul><li>", "</li></ul>", "<br>", "<b",
        "<table><tr><td>", "</td><td>", "</td></tr></table>", "<a href='/x?utm_source=1'>", "</a>", "<blockquote>",
        "</blockquote>", "<pre>", "</pre>", "<nav>", "</nav>", "<script>alert(1)</script>", "<!-- x -->", "<![CDATA[",
        "&nbsp;", "<svg><p>", "<template>",
    ]
)  # fmt: skip
QUICK = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def clip_of(text: str, html: str | None = None) -> Clip:
    return make_clip(Paste(text, html, "https://avisa.example/sak", PASTED_AT))


@QUICK
@given(PASTES)
@example("ÃƒÃƒÃƒÂ¸" * 30)
@example("---\ntitle: x\n---\n# a\n\n# a")
@example("> - > 1. a")
@example("<p>&lt;p&gt;hei&lt;/p&gt;&lt;p&gt;</p>")
def test_cleaning_a_clean_text_changes_nothing(text: str) -> None:
    cleaned = clip_of(text)["clean_text"]

    assert clip_of(cleaned)["clean_text"] == cleaned


@QUICK
@given(PASTES)
@example("\ud83d\ude00 og \ud800 alene \x00")
def test_any_unicode_becomes_text_and_json_that_the_database_takes(text: str) -> None:
    clip = clip_of(text)

    check_payload({"clip": json.loads(msgspec.json.encode(clip))["clean_text"].replace("data:", "")[:900]})
    encoded = msgspec.json.encode(clip).decode("utf-8")
    assert "\\u0000" not in encoded
    cleaned = clip["clean_text"]
    assert unicodedata.is_normalized("NFC", cleaned)
    assert not re.search(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2060\ufeff\u202a-\u202e\u2066-\u2069\ue000-\uf8ff]", cleaned
    )


@QUICK
@given(PASTES)
def test_spans_slice_exactly_in_code_points(text: str) -> None:
    clip = clip_of(text)
    cleaned = clip["clean_text"]

    assert all(cleaned[link["start"] : link["end"]] == link["text"] for link in clip["links"])
    end = 0
    for block in clip["blocks"]:
        assert end <= block["start"] <= block["end"] <= len(cleaned)
        assert "\n" not in cleaned[block["start"] : block["end"]]
        end = block["end"]
    outside = cleaned
    for block in reversed(clip["blocks"]):
        outside = outside[: block["start"]] + outside[block["end"] :]
    assert set(outside) <= set("\n >`")


@QUICK
@given(PASTES)
def test_every_line_of_the_paste_comes_back_from_the_clip(text: str) -> None:
    clip = clip_of(text)
    wanted = [line.strip() for line in LINE_END.split(sound(text).replace("\f", "\n"))]

    if clip["kind"] in ("plain", "markdown", "pdf"):
        assert restore_lines(clip) == [line for line in wanted if line]


@QUICK
@given(PASTES)
def test_nothing_is_made_up(text: str) -> None:
    """Each word of a clean plain text stands in the paste."""
    clip = clip_of(text)

    if clip["kind"] == "plain" and not set(text) & set("ÃÂâïËð√¬‚├┬ÔÄÅ&"):
        pasted = "".join(filter(str.isalnum, unicodedata.normalize("NFC", re.sub("[\u00ad\u200b\u2060]", "", text))))
        for block in clip["blocks"]:
            words = "".join(filter(str.isalnum, clip["clean_text"][block["start"] : block["end"]]))
            assert words in pasted or set(words) - set(pasted) == set()


@QUICK
@given(st.lists(st.one_of(PIECES, st.text(max_size=40)), max_size=15), st.lists(TAGS, max_size=15))
def test_any_html_becomes_a_clip_that_is_settled(pieces: list[str], tags: list[str]) -> None:
    html = "".join(tag + piece for piece, tag in zip(pieces + [""] * 15, [*tags, *[""] * 15], strict=False))
    clip = clip_of("", html)
    cleaned = clip["clean_text"]

    assert clip_of(cleaned)["clean_text"] == cleaned
    assert "<script" not in clip["markdown"].replace("\\<script", "")


@pytest.mark.parametrize("sign", ["a", "<", " ", "\n", "-", "Ã", "[", "\t", "🧵", "1. ", "> ", "av ", "é"])
def test_paste_of_one_sign_is_settled(sign: str) -> None:
    cleaned = clip_of(sign * 3000)["clean_text"]

    assert clip_of(cleaned)["clean_text"] == cleaned
