"""Finds the title among the lines before the text."""

import re
from datetime import datetime

from services.research.bylines import is_role, read_byline, read_name_alone
from services.research.dates import find_dates, is_date_line
from services.research.judgement import Judgement, fold
from services.research.line import Line
from services.research.sheet import Sheet, is_marked

_LONGEST, _SHORTEST, _LONG_SENTENCE = 220, 3, 50
_FEW_WORDS, _LONGEST_CREDIT = 3, 60
_PARTS = frozenset(("sammendrag", "samandrag", "summary", "abstract", "innledning", "innleiing", "introduction"))
_DIGIT = re.compile(r"\d")
_MOTTO = re.compile(r" [·|–—-] ")
_CREDITED = re.compile(r"(?:av|by) |.*\(tekst\)\Z", re.IGNORECASE)
_BY_COUNT = {1: 0.5, 2: 1.5, 3: 2.5}  # of words
_STOPS = re.compile(r"[^\W\d]{2}[.!?](?= |\Z)")
_LABELLED = re.compile(r"[\w æøåÆØÅ-]{2,24}:(?: |\t|$)")
_POSTED = re.compile(
    r"(?:(?:av|by|fra|frå|from|skrevet av) .{2,60}\d{4}|(?:posted|publisert|lagt ut|spurt|asked) (?:by|av) \S)",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"\d{1,2}(?:\.\d{1,2})+\.?[ \t]+\S|\d{1,2}[.)][ \t]+\S|\d{1,2}[ \t]+[A-ZÆØÅ]|\(\d|§")
_LEAST_LIKENESS, _SURE = 0.5, 9.0
_ANY_DAY = datetime(2000, 1, 1)  # so that «3 hours ago» is seen; which day it means does not matter
_LEAST_TOLD, _LEAST_NAMED = 15, 2
_LEAST_LINES = 2
_WITHOUT_TEXT = 25  # lines that are looked at where no sentence is found


def find_title(sheet: Sheet, first_matter: int | None, body: int | None, told: str | None = None) -> int | None:
    """Where the title stands: a heading of the page, else the line that is likest to one; `told` by the page's head."""
    headings = [place for place, line in enumerate(sheet.lines) if line.kind == "heading" and line.is_kept]
    first_level = [place for place in headings if sheet.lines[place].level == 1]
    if len(first_level) == 1 or (first_level and first_level[0] == _first_kept(sheet)):
        return first_level[0]
    if told is not None and (place := _told(sheet, fold(told))) is not None:
        return place
    if sheet.is_posts or len(sheet.lines) < _LEAST_LINES:
        return None
    place, likeness = _likest(sheet, first_matter)
    is_later = body is not None and first_matter is not None and body > first_matter and likeness < _LEAST_LIKENESS
    if is_later and not any(
        sheet.lines[other].kind in ("row", "item") for other in range(first_matter or 0, body or 0)
    ):
        return _likest(sheet, body)[0]  # the first sentence was the page's, not the text's
    return place


def _likest(sheet: Sheet, before: int | None) -> tuple[int | None, float]:
    """The line before a place that is likest to a title."""
    end = min(before, len(sheet.lines)) if before is not None else min(_WITHOUT_TEXT, len(sheet.lines))
    candidates = [place for place in range(end) if _is_candidate(sheet.lines[place], sheet.judgements[place])]
    if not candidates:
        return None, 0.0
    has_head = sheet.is_page or any(
        sheet.judgements[place].family not in (None, "notice") for place in range(candidates[-1])
    )
    if not has_head:
        first = candidates[0]
        is_title = first == _first_kept(sheet) and not sheet.lines[first].text.endswith((".", ",", ";"))
        return (first, _SURE) if is_title else (None, 0.0)
    best = max(candidates, key=lambda place: (_likeness(sheet, place, end), place))
    return best, _likeness(sheet, best, end)


def _told(sheet: Sheet, title: str) -> int | None:
    """The line that the page's head names; the head may have the site's name beside it."""
    for place, (line, judgement) in enumerate(zip(sheet.lines, sheet.judgements, strict=True)):
        is_long = len(judgement.folded) >= _LEAST_TOLD
        if line.is_kept and (judgement.folded == title or (is_long and judgement.folded in title)):
            return place
    return None


def _first_kept(sheet: Sheet) -> int | None:
    return next((place for place, line in enumerate(sheet.lines) if line.is_kept), None)


def _is_candidate(line: Line, judgement: Judgement) -> bool:
    text = line.text
    if judgement.folded in _PARTS:
        return False
    if not line.is_kept or line.kind not in ("text", "heading") or judgement.family or judgement.is_number:
        return False
    if (
        not _SHORTEST <= len(text) <= _LONGEST
        or text[:1] in "@#"
        or _NUMBERED.match(line.source)
        or _POSTED.match(text)
    ):
        return False
    if judgement.is_sentence and text.rstrip("»”\"')")[-1:] in ".…:" and len(text) > _LONG_SENTENCE:
        return False
    if len(_STOPS.findall(text)) > 1:
        return False
    if _LABELLED.match(text) and text.count(" ") < 4:
        return False
    if is_marked(line) or (judgement.section == "page matters") or is_role(text) or read_byline(text):
        return False
    return not is_date_line(text, find_dates(text, _ANY_DAY))


def _likeness(sheet: Sheet, place: int, end: int) -> float:
    """How like a title a line before the text is, by its place and by its words. Only differences mean something."""
    return _by_place(sheet, place, end) + _by_words(sheet.lines[place].text, place)


def _by_place(sheet: Sheet, place: int, end: int) -> float:
    """First of its group, near the text, above the credits, repeated on a PDF's pages; not the site's name."""
    lines, judgements = sheet.lines, sheet.judgements
    kept = [other for other in range(place + 1, end) if lines[other].is_kept]
    below = [other for other in range(place + 1, min(place + 4, len(lines))) if lines[other].is_kept]
    above = [other for other in range(max(0, place - 5), place) if lines[other].is_kept]
    distance = sum(1 for other in kept if not judgements[other].family and not _is_credit(lines[other].text))
    is_first = sheet.is_page and place == 0
    is_credited = bool(below) and _is_credit(lines[below[0]].text)
    return sum(
        weight
        for holds, weight in (
            (sheet.has_gaps and (lines[place].has_gap or not any(line.is_kept for line in lines[:place])), 1.0),
            (not kept, 1.0),
            (is_credited, -2.0 if read_name_alone(lines[place].text) else 1.0),
            (any(_is_credit(lines[other].text) for other in above), -1.5),
            (judgements[place].folded in sheet.running_heads, 2.0),
            (place and judgements[place - 1].is_number and not lines[place].has_gap, -1.5),  # an entry with its time
            (_is_repeated(sheet, place), -1.5),
            (is_first and any(judgement.family for judgement in judgements[1:4]), -1.0),
            (is_first and _MOTTO.search(lines[place].text), -1.5),
            (True, -min(1.0 if is_credited else 2.0, 0.25 * distance)),
        )
        if holds
    )


def _by_words(text: str, place: int) -> float:
    """A few words; no menu, date, name or label in capitals."""
    words = text.count(" ") + 1
    weights = (
        (" | " in text or "\t" in text, -2.0),
        (place == 0 and words == 1, -1.0),
        (find_dates(text, None) or _CREDITED.match(text), -3.0),
        (text.isupper() or text[:1] in "–—", -1.0 if words > 1 else -2.0),
        (text.count(",") > 1, -1.5),
        (words <= _FEW_WORDS and _DIGIT.search(text), -1.0),
        (len(read_name_alone(text)) > 1, -2.0),
    )
    return _BY_COUNT.get(words, 3.0) + sum(weight for holds, weight in weights if holds)


def _is_repeated(sheet: Sheet, place: int) -> bool:
    """Whether other lines name it, as they do with a site or a sender."""
    name = sheet.judgements[place].folded
    others = (
        judgement.folded
        for other, judgement in enumerate(sheet.judgements)
        if other != place and sheet.lines[other].reason != "page furniture" and not judgement.is_sentence
    )
    return sum(1 for text in others if name in text and text != f"re: {name}") >= _LEAST_NAMED


def _is_credit(text: str) -> bool:
    """Whether a line says who wrote, or when."""
    if read_byline(text) or read_name_alone(text):
        return True
    dates = find_dates(text, _ANY_DAY)
    return is_date_line(text, dates) or (bool(dates) and dates[0].start == 0 and len(text) <= _LONGEST_CREDIT)
