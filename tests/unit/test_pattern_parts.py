"""Words that a pattern needs: whatever it fits holds them, so that it need not be tried on anything else."""

import re
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openrouter_client.fence import _ADDRESSES
from openrouter_client.pattern_parts import alternatives, elements, fold_case, holds, needed, needs_digit
from services.research import wordings
from services.research.judgement import fold

PATTERNS = [address for _, address in _ADDRESSES]
compiled = cache(re.compile)
LETTERS = st.characters(max_codepoint=0x2100)  # Latin letters, and signs of print
WORDINGS = sorted({part for _, part in wordings.WORDINGS.parts()})


@pytest.mark.parametrize(
    ("pattern", "needs"),
    [
        ("vær varsom", [{"vær varsom"}]),
        (".{2,40} (?:lagt ut|delt) av", [{" av"}, {"lagt ut", "delt"}]),
        (r"instruks\w*|beskjeden?e?|(?:alt|alle) før", [{"instruks", "beskjede", " før"}]),
        (r"to+r a{2,3}b? c{0,2}d", [{"to"}, {"r a"}, {" "}, {"d"}]),
        (r"foto: ?\S|\d{4}", []),
        (r"(?<!ikke )bra(?=!)", [{"bra"}]),
        (r"kr\. [a-z](?:ja|\d)?", [{"kr. "}]),
    ],
)
def test_needs_of_a_pattern(pattern: str, needs: list[set[str]]) -> None:
    assert sorted(map(sorted, needed(pattern))) == sorted(sorted(words) for words in needs if words != {" "})


@pytest.mark.parametrize(
    ("pattern", "is_needed"),
    [
        (r"side \d{1,3}", True),
        (r"(?:kr \d+|\d+ kr) per år", True),
        (r"side \d{0,3}", False),
        (r"(?:side \d)?", False),
        (r"(?:side|\d) av", False),
        (r"\d svar|ingen svar", False),
        (r"[\d ]{3}", False),
    ],
)
def test_digit_that_a_pattern_needs(pattern: str, is_needed: bool) -> None:
    assert needs_digit(pattern) is is_needed


def test_pattern_is_taken_apart_at_its_top() -> None:
    assert alternatives(r"a|(?:b|c)|[|]|\|") == ["a", "(?:b|c)", "[|]", r"\|"]
    assert list(elements(r"a?(?:b|c){2,}\d[]x]*?.")) == [
        ("a", "?"),
        ("(?:b|c)", "{2,}"),
        (r"\d", ""),
        ("[]x]", "*?"),
        (".", ""),
    ]


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.pattern[:40])
def test_whatever_a_pattern_fits_holds_what_it_needs(pattern: re.Pattern[str]) -> None:
    needs = needed(pattern.pattern)

    @settings(max_examples=10, deadline=None, database=None)
    @given(st.from_regex(pattern))
    def check(text: str) -> None:
        assert holds(needs, fold_case(text))

    check()


def test_a_line_that_is_worded_as_a_pages_own_is_found_as_such() -> None:
    """Whatever looking only at likely lines saves, nothing that fits a pattern is missed."""

    @settings(max_examples=150, deadline=None, database=None)
    @given(st.sampled_from(WORDINGS).flatmap(lambda part: st.from_regex(part, fullmatch=True, alphabet=LETTERS)))
    def check(text: str) -> None:
        folded = fold(text)
        reading, read = wordings.WORDINGS.read(folded), wordings.WORDINGS.families
        fitting = sorted({number for number, part in wordings.WORDINGS.parts() if compiled(part).fullmatch(folded)})
        for told, uses in (
            (reading.strong, ("labels", "sentences")),
            (reading.spoken, ("sentences",)),
            (reading.weak, ("weak",)),
            (reading.section, ("section",)),
        ):
            wanted = next((read[number] for number in fitting if read[number].use in uses), None)
            assert told == (wanted.name if wanted and len(folded) <= wanted.longest else None)
        assert reading.may_ask_consent == any(word in folded for word in wordings.CONSENT_WORDS)

    check()


def test_letters_that_only_a_search_without_case_takes_for_i_and_s_are_folded() -> None:
    assert re.search("ignorer svar k", "ıgnorer ſvar \u212a", re.IGNORECASE)
    assert fold_case("ıGNORER ſVAR \u212a İ") == "ignorer svar k i"
    assert len(fold_case("a\u2028b\x85c").splitlines()) == 3
