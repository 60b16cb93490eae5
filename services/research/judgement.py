"""Judges one line by itself: whether its wording is that of a page's furniture, and whether it is a sentence."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from services.research.wordings import CONSENT_THINGS, CONSENT_WORDS, NAV_WORDS, NUMBERS, WORDINGS, Reading

_EDGES = " \t.,:;!…«»“”„\"'|*_#–—-·•›‹→←↑↓>=/\\~^▾▼▲►▶★☆"
_GLUED = re.compile("(?<=[a-zæøå0-9?])(?=[A-ZÆØÅ])")  # buttons whose line breaks got lost
_GLUE = re.compile("[a-zæøå0-9?][A-ZÆØÅ]")
_CRUMBS = re.compile(r"\S +[›»>▸«‹] +(?=\S)")
_LONGEST_STEP, _LEAST_BARS = 4, 3  # words; signs between entries
_DIGIT = re.compile(r"\d")
_ALIKE = str.maketrans("123456789", "000000000")
_SPOKEN_NUMBER = re.compile("|".join(rf"{number}(?<!\d{number})(?!\d)" for number in sorted(NUMBERS)))
_CAPITAL = re.compile(" [A-ZÆØÅ]")
_CAPITALS = re.compile(" (?=[A-ZÆØÅ])(?<! (?:på|on|to|by) )(?<! (?:til|via) )")
_SIGNS = re.compile("[\u2190-\u2bff─-╿\U0001f000-\U0001faff\ufe0f\u200d]+")
_EMOJI = re.compile("[\u2600-\u27bf\U0001f000-\U0001faff]")
_SEPARATORS = re.compile(r"\s*[|•·›»>▸/⁄<]\s+|\s+[|•·›»/–]\s*|\t+|\s{2,}")
_SEPARATOR_SIGNS = re.compile(r"[|•·›»>▸«‹/⁄<–\t]")  # a line without one, and without two blanks, has one entry
_CLOSING = "»”\"')"
_ENDS_OF_SENTENCES, _MARKS = frozenset(".!?:…"), frozenset("!?")
_DIGITS = re.compile(r"[\d\s.,:k%/+-]+\Z")
_LONGEST_JUDGED, _LONGEST_FOLDED = 560, 2000  # no wording of a page is longer than the first
_LEAST_SENTENCE_WORDS = 5
_LONG_LINE = 100
_LEAST_CONSENT_WORDS = 2
_MENU_ITEMS = 2
_LONGEST_MENU, _LONGEST_ENTRY, _MOST_BLANKS = 200, 40, 5


class Judgement(NamedTuple):
    """What a line says about itself."""

    folded: str
    family: str | None = None
    is_strong: bool = False
    is_sentence: bool = False  # running text: what ends a section of headlines, and begins the matter
    section: str | None = None  # headlines, page matters or contents stand below it
    is_menu: bool = False
    is_number: bool = False
    consent_words: int = 0


def fold(text: str) -> str:
    """Lower case, one blank between words, no signs at the ends and no pictures."""
    if text.isdecimal():
        return text
    folded = text.casefold()
    if not folded.isascii():
        folded = _SIGNS.sub(" ", folded)
    if "  " in folded or "\t" in folded:
        folded = " ".join(folded.split())
    folded = folded.strip(_EDGES)
    if folded[:1] in "([" and folded[-1:] in ")]":
        folded = folded[1:-1].strip(_EDGES)
    return folded


def judge(text: str, *, is_row: bool = False) -> Judgement:
    """Judges the text of a line, of a long one its beginning and its end; `is_row`: it is known to be no menu."""
    return _judge_long(text) if len(text) > _LONGEST_JUDGED else _judge_short(text, is_row)


def forget() -> None:
    """Lets go of what was judged: one paste's lines are of no use for the next."""
    _judge_short.cache_clear()
    _judge_alike.cache_clear()


def _judge_long(text: str) -> Judgement:
    consent = _consent_words(fold(text[:_LONGEST_FOLDED]))
    return Judgement(fold(text[:_LONGEST_JUDGED]), is_sentence=" " in text, consent_words=consent)


@lru_cache(maxsize=65536)  # more than a paste may have lines
def _judge_short(text: str, is_row: bool) -> Judgement:
    """Numbers of which no wording speaks are all alike: what is said of one row of a table holds for the next."""
    if not _DIGIT.search(text) or _SPOKEN_NUMBER.search(text):
        return _judge_words(text, is_row)
    return Judgement(fold(text), *_judge_alike(text.translate(_ALIKE), is_row)[1:])


@lru_cache(maxsize=16384)
def _judge_alike(text: str, is_row: bool) -> Judgement:
    return _judge_words(text, is_row)


def _judge_words(text: str, is_row: bool) -> Judgement:
    folded = fold(text)
    words = folded.count(" ") + 1
    ends = _ends(text)
    is_sentence = (ends and words >= _LEAST_SENTENCE_WORDS) or (len(text) >= _LONG_LINE and words >= 12)
    if not folded:
        return Judgement(folded) if _EMOJI.search(text) else Judgement(folded, "rule", True)
    if _DIGITS.match(folded):
        return Judgement(folded, is_number=True)
    if text[:1] in "«“" and text[-1:] in "»”" and words > 5:
        return Judgement(folded, is_sentence=is_sentence)  # somebody's words, whatever they are
    is_spoken = words >= 5 and _ends_fully(text)
    reading = WORDINGS.read(folded)
    family = reading.spoken if is_spoken else reading.strong
    consent = _consent_words(folded) if reading.may_ask_consent and len(folded) > 25 else 0
    if family is not None:
        return Judgement(folded, family, True, is_sentence, reading.section, consent_words=consent)
    section = None if ends and not text.rstrip().endswith(":") else reading.section
    # Entries are made of the line's own words; but where it stands in brackets, that is seen of the whole line alone.
    hints = None if "(" in text or "[" in text else reading.hints
    may_be_menu = not is_row and len(text) <= _LONGEST_MENU
    glued = _folded(_GLUED.split(text)) if may_be_menu and _GLUE.search(text) else []
    if may_be_menu and ":" not in text and _is_labels(text, glued, hints=hints):
        return Judgement(folded, "labels", True, is_sentence)
    weak = None if is_spoken else reading.weak
    is_menu = may_be_menu and not is_spoken and _is_menu(text, glued, hints=hints)
    name = weak or ("navigation" if is_menu else None)
    return Judgement(folded, name, False, is_sentence, section, is_menu, consent_words=consent)


def _ends(text: str) -> bool:
    """Whether a line ends as a sentence may."""
    if not text.isascii():
        text = _SIGNS.sub("", text)
    return text.rstrip().rstrip(_CLOSING + "’]")[-1:] in _ENDS_OF_SENTENCES


def _ends_fully(text: str) -> bool:
    """Whether a line ends with a stop of its own: not with a colon, nor with dots for what is left out."""
    end = text.rstrip(_CLOSING)[-2:]
    return end[-1:] in _MARKS or (len(end) == 2 and end[1] == "." and end[0] != ".")


def _consent_words(folded: str) -> int:
    """How many different things that a request for consent speaks of stand in the text."""
    if not any(word in folded for word in CONSENT_WORDS):
        return 0
    return len({found.lastindex for found in CONSENT_THINGS.finditer(folded)})


def _is_menu(text: str, glued: list[str], *, hints: int | None) -> bool:
    """Whether a line is a row of menu entries: short, most of them words that menus have."""
    entries = glued
    if _SEPARATOR_SIGNS.search(text) or "  " in text:
        if _are_steps(text):
            return True
        separate = _folded(_SEPARATORS.split(text))
        entries = separate if len(separate) >= _MENU_ITEMS else glued
    if len(entries) >= _MENU_ITEMS:
        if any(entry.count(" ") >= _MOST_BLANKS for entry in entries):
            return False
        least = 1 if text.count(" | ") >= _LEAST_BARS and not _DIGIT.search(text) else max(2, 0.4 * len(entries))
        words = [entry for entry in entries if not entry.isdecimal()]
        return _are_many((_is_known(entry, WORDINGS.read(entry, hints)) for entry in words), len(words), least)
    first = text.split(maxsplit=3)[:3]
    if len(first) == 1:
        return fold(text) in NAV_WORDS
    if len(first) < 3 or any(word[0].islower() for word in first):
        return False
    words = text.split()
    return sum(1 for word in words if fold(word) in NAV_WORDS) >= 0.6 * len(words)


def _are_steps(text: str) -> bool:
    """Whether a line tells the way to a page: a > b > c, a / b / c."""
    if len(_CRUMBS.findall(text)) >= 2:
        return True
    steps = text.split(" / ")
    return len(steps) > _MENU_ITEMS and all(0 < len(step.split()) <= _LONGEST_STEP for step in steps)


def _folded(cells: Iterable[str]) -> list[str]:
    """The entries of a row that hold anything."""
    return [entry for entry in map(fold, cells) if entry]


def _is_labels(text: str, glued: list[str], *, hints: int | None) -> bool:
    """Whether a line is two or more buttons whose line breaks got lost."""
    if glued and _are_labels(glued, hints=hints):
        return True
    return _is_capitalised(text) and _are_labels(_folded(_CAPITALS.split(text)), hints=hints)


def _is_capitalised(text: str) -> bool:
    """Whether every fourth word begins like a label."""
    words = text.count(" ")
    return words > 0 and 4 * len(_CAPITAL.findall(text)) >= words


def _are_labels(parts: list[str], *, hints: int | None) -> bool:
    """Whether two in five are worded as a page's own wherever they stand, and three in five at all."""
    count = len(parts)
    if count < _MENU_ITEMS:
        return False
    strong = known = 0
    for left, part in zip(range(count - 1, -1, -1), parts, strict=True):
        reading = WORDINGS.read(part, hints)
        strong += reading.strong is not None
        known += _is_known(part, reading)
        if strong + left < max(1, 0.4 * count) or known + left < 0.6 * count:
            return False
    return True


def _are_many(told: Iterable[bool], count: int, least: float) -> bool:
    """Whether at least so many of `count` are true; asks no more of them than it needs."""
    found = 0
    for left, is_true in zip(range(count - 1, -1, -1), told, strict=True):
        found += is_true
        if found >= least:
            return True
        if found + left < least:
            return False
    return least <= 0


def _is_known(entry: str, reading: Reading) -> bool:
    """Whether one entry of a row is itself a label of a page."""
    return entry in NAV_WORDS or (len(entry) <= _LONGEST_ENTRY and (reading.strong or reading.weak) is not None)


def is_consent(judgement: Judgement) -> bool:
    """Whether a text may ask for consent."""
    return judgement.consent_words >= _LEAST_CONSENT_WORDS
