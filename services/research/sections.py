"""Takes out what goes by the heading above it: headlines of other pages, tables of contents, contacts, small boxes."""

import re
from collections import Counter

from services.research.judgement import Judgement
from services.research.line import Line
from services.research.sheet import Sheet, is_marked

_CONTENTS_LINE = re.compile(r"(?:\d{1,2}(?:\.\d{1,2})*\.? )?(?P<title>\S.*)")
_RANKINGS = ("mest", "most", "top", "sist", "latest")  # their headlines are numbered, and no steps
_LARGEST_BOX, _MOST_CONTACTS = 5, 6
_MOST_BELOW = 14  # lines below a heading of headlines
_LEAST_MATTER = 30  # characters of a sentence that ends a section


def remove_sections(sheet: Sheet) -> None:
    """Headlines below their heading, tables of contents, promoted posts."""
    position, count = 0, len(sheet.lines)
    later = Counter(judgement.folded for judgement in sheet.judgements)
    while position < count:
        judgement, line = sheet.judgements[position], sheet.lines[position]
        if line.kind in ("code", "row") or judgement.section not in ("headlines", "contents") or line.zone:
            is_promoted = judgement.family == "advertising" and judgement.folded.startswith(("promot", "spons"))
            if not (is_promoted and sheet.is_posts):
                position += 1
                continue
        end = _end_of_section(sheet, position, later)
        if end > position + 1 or judgement.is_strong or judgement.section == "contents":
            name = "table of contents" if judgement.section == "contents" else "other headlines"
            for place in range(position, end):
                sheet.lines[place].remove(name, is_strong=True)
        position = max(end, position + 1)


def remove_boxes(sheet: Sheet) -> None:
    """What shares a small box of a page with a label such as Advertisement."""
    sizes = Counter(line.box for line in sheet.lines if line.box)
    for above, line, judgement in zip(sheet.lines, sheet.lines[1:], sheet.judgements[1:], strict=False):
        is_boxed = line.box and line.box == above.box and sizes[line.box] <= _LARGEST_BOX
        if (
            is_boxed
            and above.reason in ("advertising", "read also", "other headlines", "advertisement in a box")
            and not judgement.is_sentence
        ):
            line.remove("advertisement in a box" if above.reason.startswith("adv") else above.reason, is_strong=True)


def remove_contacts(sheet: Sheet) -> None:
    """Names, work and numbers below a heading such as Press contact."""
    for place, judgement in enumerate(sheet.judgements):
        if judgement.family != "press contact" or is_marked(sheet.lines[place]):
            continue
        below = range(place + 1, min(place + 1 + _MOST_CONTACTS, len(sheet.lines)))
        told = [other for other in below if sheet.judgements[other].family == "contact"]
        if told:
            for other in range(place + 1, told[-1] + 1):
                if not sheet.judgements[other].is_sentence:
                    sheet.lines[other].remove("contact", is_strong=True)


def _end_of_section(sheet: Sheet, heading: int, later: Counter[str]) -> int:
    """Where the lines below a heading end: at a gap, a sentence of the matter, or a heading of the text."""
    place, count = heading + 1, len(sheet.lines)
    is_contents = sheet.judgements[heading].section == "contents"
    is_ranking = sheet.judgements[heading].folded.startswith(_RANKINGS)
    while place < count and place - heading <= _MOST_BELOW:
        line, judgement = sheet.lines[place], sheet.judgements[place]
        starts_anew = line.has_gap and (sheet.has_gaps and place > heading + 1)
        is_ranked = is_ranking and not judgement.is_sentence and line.kind == "item"
        is_kept_apart = is_marked(line) and not is_contents and not is_ranked
        if starts_anew or (line.kind == "heading" and not line.is_link) or is_kept_apart:
            break
        if (
            judgement.is_sentence
            and not line.is_link
            and judgement.folded[-1:]
            and len(line.text) >= _LEAST_MATTER
            and _is_prose(line)
        ):
            break
        place += 1
    if is_contents:
        while place > heading + 1 and not _is_repeated(sheet.judgements[place - 1], later):
            place -= 1  # what is not a heading further down is no entry
        return place
    below = place - heading - 1
    if sheet.has_gaps or below <= 1 or place >= count:
        return place
    # No gap tells the last headline from a heading of the text: where a sentence follows, that stays.
    return place - 1 if _is_followed_by_matter(sheet, place) else place


def _is_prose(line: Line) -> bool:
    return line.text.rstrip("»”\"')")[-1:] in ".!?" or len(line.text) > 160


def _is_followed_by_matter(sheet: Sheet, place: int) -> bool:
    return place < len(sheet.lines) and sheet.is_matter(place)


def _is_repeated(judgement: Judgement, later: Counter[str]) -> bool:
    found = _CONTENTS_LINE.match(judgement.folded)
    return found is not None and (later[found.group("title")] > 1 or later[judgement.folded] > 1)
