"""Pastes made to hurt: each ends inside its limits, with a clip or with an error that says what to do."""

import os
import signal
import time
from collections.abc import Iterator
from threading import Thread

import pytest

from services.research.cleaner import Paste
from services.research.cleaning_process import Cleaner, opened
from services.research.clip import make_clip
from services.research.settings import ResearchSettings
from sidelinja_jobs import PermanentError
from tests.waiting import wait_until

MB = 1_000_000
SENTENCE = "Det er fylkesrådet som nå legger fram en ny avtale med rederiet, og «etter planen» gjelder den fra 2028. "
TEXTS = {
    "one letter": "a" * MB,
    "less-than signs": "<" * MB,
    "spaces": " " * (MB - 1) + ".",
    "tabs": "a\t" * (MB // 2),
    "brackets": "[" * MB,
    "fences": "```\n" * 20_000,
    "quotations": "> " * (MB // 2),
    "half repaired letters": "Ãƒ" * (MB // 4),
    "combining marks": "a" + "\u0301" * (MB // 2),
    "joiners": "👩\u200d" * (MB // 8),
    "direction marks": "\u202e" * (MB // 3),
    "addresses": "https://a.example/?utm_source=b&" * (MB // 32),
    "dates": "1. mars 2026 " * (MB // 13),
    "names": "Av Kari Nordmann, " * (MB // 18),
    "one sentence in wrapped lines": "\n".join(["og saa videre i samme setning om kaia som"] * 20_000),
    "broken words": "kom-\nmune " * 48_000,
    "links that never end": "# a\n\n[a](http://b) " + "[a](" * (MB // 4),
    "emphasis that never ends": "# a\n\n**b** " + "*a " * (MB // 3),
    "consent": "informasjonskapsler samtykke partnere valg " * (MB // 45),
    "long labels": "\n".join("Del " + "på " * 30 + str(number) for number in range(9000)),
    "many short lines": "\n".join(f"linje {number}" for number in range(20_000)),
}
PAGES = {
    "5 MB of one letter": "<p>" + "a" * (5 * MB - 3),
    "5 MB of less-than signs": "<" * 5 * MB,
    "5 MB of spaces": "<p>" + " " * (5 * MB - 3),
    "elements a million deep": "<div>" * (MB - 1),
    "elements 300 deep": "<div>" * 300 + "hei" + "</div>" * 300,
    "bold that is never closed": "<p><b>" * 100_000,
    "one element with a million attributes": "<a " + "x=1 " * MB + ">hei</a>",
    "a class of half a million words": f"<div class='{'cookie ' * 500_000}'>hei</div>",
    "tables in tables": "<table><tr><td>" * 120 + "hei",
    "tens of thousands of links": "<ul>" + "<li><a href='/x?utm_source=1'>Del på Facebook</a></li>" * 25_000,
    "JSON that is deep": "<script type='application/ld+json'>" + "[" * 100_000 + "</script><p>hei</p>",
    "entities": "<p>" + "&lt;" * MB,
    "letters that are none": "<p>" + "&x " * (5 * MB // 3),
    "attributes everywhere": "<p a=1 b=2 c=3 d=4 e=5>x</p>" * 110_000,
}


@pytest.fixture(scope="module")
def cleaner() -> Iterator[Cleaner]:
    made = Cleaner(ResearchSettings(clean_seconds=20, clean_memory_mb=768))
    yield made
    made.close()


def end_of(cleaner: Cleaner, paste: Paste) -> str:
    """How cleaning a paste ends."""
    try:
        clip = opened(cleaner.clean(paste))
    except PermanentError as error:
        return error.error_class if "Next: " in str(error) else "an error that helps nobody"
    is_more = letters_of(clip["clean_text"]) > letters_of(paste.text or paste.html or "") + 10
    return "more than there was" if is_more else "clip"


def letters_of(text: str) -> int:
    return sum(map(len, text.split()))


@pytest.mark.parametrize("name", TEXTS)
def test_text_that_is_made_to_hurt_ends_with_a_clip(cleaner: Cleaner, name: str) -> None:
    assert end_of(cleaner, Paste(TEXTS[name])) == "clip"


@pytest.mark.parametrize("name", PAGES)
def test_page_that_is_made_to_hurt_ends_inside_its_limits(cleaner: Cleaner, name: str) -> None:
    assert end_of(cleaner, Paste("", PAGES[name])) in ("clip", "too_complex", "too_long")


def test_process_that_runs_out_of_time_or_memory_is_renewed() -> None:
    hard = Paste("", "<p>" + "a " * 2 * MB)
    slow, small = Cleaner(ResearchSettings(clean_seconds=3)), Cleaner(ResearchSettings(clean_memory_mb=128))
    stopping = Thread(target=lambda: os.kill(wait_until(lambda: slow.pid, 20), signal.SIGSTOP))
    try:
        stopping.start()  # a process that stands still takes too long on any machine
        assert end_of(slow, Paste(TEXTS["long labels"])) == "too_complex"
        assert end_of(small, hard) in ("too_complex", "too_long")
        assert end_of(slow, Paste("Et avsnitt om havn og kai.")) == "clip"
        assert end_of(small, Paste("Et avsnitt om havn og kai.")) == "clip"
    finally:
        stopping.join()
        slow.close()
        small.close()


@pytest.mark.parametrize(
    "lines",
    [
        [f"{number} {SENTENCE * 4}".strip() for number in range(MB // (4 * len(SENTENCE)))],
        [f"Kari {number % 97} skrev om rute {number} mandag" for number in range(26_000)],
        [f"{number}\tHavna i Østre Våg\t{number * 7 % 9973}\t9 %" for number in range(25_000)],
    ],
    ids=["paragraphs", "short lines", "table"],
)
def test_a_megabyte_takes_less_than_a_second_of_cpu(lines: list[str]) -> None:
    """bench/clip_cleaning.py measures it; here, beside other tests, only what would be a fault is caught."""
    began = time.process_time()

    clip = make_clip(Paste("\n".join(lines)))

    assert time.process_time() - began < 3
    assert [line for line in clip["clean_text"].split("\n") if line] == lines
