"""The words of the pages: complete in both languages, all of them used; numbers, times and spans read well."""

import re
import string
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from services.admin.words import LANGUAGES, Speech, Word, all_words, doing, preferred_language
from tests.databases import ROOT

FOLDER = ROOT / "services" / "admin"
NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
NB = Speech("nb", ZoneInfo("Europe/Oslo"), NOW)
EN = Speech("en", ZoneInfo("Europe/Oslo"), NOW)


def values_in(word: Word) -> set[str]:
    texts = word if isinstance(word, list) else [word]
    return {name for text in texts for _, name, _, _ in string.Formatter().parse(text) if name}


def used_keys() -> tuple[set[str], set[str]]:
    """Keys that templates and code name whole, and the beginnings of those that they put together."""
    whole, beginnings = set(), set()
    for path in [*FOLDER.rglob("*.html"), *FOLDER.rglob("*.py")]:
        text = path.read_text()
        beginnings |= set(re.findall(r"""["']([a-z_]+\.[a-z_]*)["'] ~""", text))
        beginnings |= set(re.findall(r"""f["']([a-z_]+\.[a-z_]*)\{""", text))
        whole |= {key for key in re.findall(r"""["']([a-z_]+\.[a-z0-9_]+)["']""", text) if key in all_words()}
        whole |= set(re.findall(r"""\bt\(\s*["']([a-z_]+\.[a-z0-9_]+)["'](?! ~)""", text))
    return whole, beginnings


def test_every_word_is_there_in_both_languages_with_the_same_values() -> None:
    assert len(all_words()) > 100
    for key, word in all_words().items():
        assert set(word) == set(LANGUAGES), key
        assert values_in(word["nb"]) == values_in(word["en"]), key
        for text in word.values():
            assert not isinstance(text, list) or len(text) == 2, f"one and many: {key}"
            assert text, key


def test_a_number_before_a_noun_has_a_word_for_one() -> None:
    """A noun in the plural stands in a pair's many alone. Days are seven at least, jobs "or more" a thousand."""
    plurals = "jobber|grupper|ganger|linjer|arbeidere|jobs|groups|times|lines|workers|attempts|errors"
    counted = re.compile(rf"\{{(\w+)\}} (?:\w+ )?(?:{plurals})\b")
    wrong = []
    for key, word in all_words().items():
        for text in word.values():
            one, many = text if isinstance(text, list) else (text, "")
            wrong += [key] if counted.search(one) or set(counted.findall(many)) - {"n"} else []

    assert set(wrong) == {"reason.jobs_ahead_more"}


def test_every_word_that_is_used_is_there() -> None:
    whole, beginnings = used_keys()

    assert len(whole) > 100
    assert sorted(key for key in whole if key not in all_words()) == []
    parts = {key.partition(".")[0] for key in all_words()}
    ours = [start for start in beginnings if start.partition(".")[0] in parts]
    assert [start for start in ours if not any(key.startswith(start) for key in all_words())] == []


def test_no_word_is_there_that_nobody_uses() -> None:
    whole, beginnings = used_keys()
    unused = [key for key in all_words() if key not in whole and not key.startswith(tuple(beginnings))]

    assert unused == []


@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("", "nb"), ("nb-NO,nb;q=0.9,en;q=0.8", "nb"), ("nn", "nb"), ("en-GB,en;q=0.9", "en"),
        ("de-DE,de;q=0.9", "en"), ("de,no;q=0.5,en;q=0.3", "nb"), ("en;q=x", "nb"), (",;,", "nb"), ("*", "en"),
        ("sv-SE", "nb"), ("en;q=0.2,nb;q=0.9", "nb"), ("x" * 10_000, "en"),
    ],
)  # fmt: skip
def test_the_browser_chooses_the_language(header: str, language: str) -> None:
    assert preferred_language(header) == language


@pytest.mark.parametrize(
    ("seconds", "nb", "en"),
    [
        (0, "0 s", "0 s"), (0.0123, "12 ms", "12 ms"), (3.25, "3,2 s", "3.2 s"), (42, "42 s", "42 s"),
        (59.7, "1 min", "1 min"), (192, "3 min 12 s", "3 min 12 s"), (3600, "1 t", "1 h"),
        (7500, "2 t 5 min", "2 h 5 min"),
        (273_600, "3 d 4 t", "3 d 4 h"), (-5, "0 s", "0 s"), (None, "", ""), (timedelta(minutes=2), "2 min", "2 min"),
    ],
)  # fmt: skip
def test_a_span_has_two_units_at_most_and_is_never_negative(
    seconds: float | timedelta | None, nb: str, en: str
) -> None:
    assert NB.duration(seconds).replace("\u202f", " ") == nb
    assert EN.duration(seconds).replace("\u202f", " ") == en


def test_numbers_and_money_are_written_the_way_of_the_language() -> None:
    assert (NB.number(1234567.5, 1), EN.number(1234567.5, 1)) == ("1\u202f234\u202f567,5", "1,234,567.5")
    assert (NB.money(0.0123), EN.money(12.5), EN.money(0)) == ("$0,0123", "$12.50", "$0.00")
    assert NB.number(2**63 - 1).replace("\u202f", "") == "9223372036854775807"


def test_one_and_many_have_their_own_words() -> None:
    assert [NB.t("overview.pause_running", n=n).split()[1] for n in (0, 1, 2)] == ["jobber", "jobb", "jobber"]


def test_a_time_is_machine_readable_in_utc_and_shown_in_the_zone() -> None:
    """In the night of 2026-10-25 the clock in Oslo shows 02:30 twice."""
    first, second = datetime(2026, 10, 25, 0, 30, tzinfo=UTC), datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
    shown = [str(NB.time(first)), str(NB.time(second))]

    assert shown == [
        '<time datetime="2026-10-25T00:30:00Z" title="2026-10-25 02:30:00 CEST">25. okt. 02:30</time>',
        '<time datetime="2026-10-25T01:30:00Z" title="2026-10-25 02:30:00 CET">25. okt. 02:30</time>',
    ]
    assert ">13:00:00</time>" in NB.time(NOW), "today: the hour alone"
    assert ">3 Jan 2025 01:00</time>" in EN.time(datetime(2025, 1, 3, tzinfo=UTC))
    assert (NB.time(None), NB.ago(None)) == ("", "")


def test_how_long_ago_and_in_how_long() -> None:
    assert ">5 min siden</time>" in str(NB.ago(NOW - timedelta(minutes=5))).replace("\u202f", " ")
    assert ">in 5 min</time>" in str(EN.ago(NOW + timedelta(minutes=5))).replace("\u202f", " ")
    assert NB.day(date(2026, 5, 17)) == "17. mai"


def test_what_a_running_job_is_at() -> None:
    job = {"job_type": "whisper_transcribe", "attempts": 1, "max_attempts": 3, "cancel_requested_at": None}

    assert doing("nb", job) == "Transkriberer … 2/3 forsøk"
    assert doing("en", job | {"job_type": "somebody_elses"}) == "Running … attempt 2/3"
    assert doing("nb", job | {"cancel_requested_at": NOW}) == "Stopper … 2/3 forsøk"
