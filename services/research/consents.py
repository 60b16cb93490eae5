"""Takes out texts that ask for consent to cookies. A text about cookies stays."""

import re

from services.research.judgement import is_consent, judge
from services.research.sheet import LONGEST_LABEL, Sheet, is_marked

_ABOVE, _BELOW = 3, 6  # lines where the buttons of a request stand


def remove_consent(sheet: Sheet) -> None:
    """A text that speaks of cookies goes where its buttons stand beside it; a text about cookies stays."""
    asking = [
        place
        for place, judgement in enumerate(sheet.judgements)
        if is_consent(judgement) and (judgement.is_sentence or len(judgement.folded) > LONGEST_LABEL)
    ]
    is_asking = set(asking)
    sentences = [place for place in range(len(sheet.lines)) if sheet.judgements[place].is_sentence]
    is_subject = len(asking) > max(2, 0.5 * len(sentences))
    first = next((place for place in sentences if place not in is_asking and not sheet.judgements[place].family), None)
    headings = [place for place, line in enumerate(sheet.lines) if line.kind == "heading" and line.is_kept]
    for place in asking:
        line = sheet.lines[place]
        if line.is_kept and not is_marked(line) and line.kind != "item":
            has_heading = any(other < place and sheet.lines[other].is_kept for other in headings)
            is_ahead = not has_heading and first is not None and place < first and not is_subject and sheet.is_page
            if _has_buttons(sheet, place) or is_ahead:
                line.remove("consent", is_strong=True)


def _has_buttons(sheet: Sheet, place: int) -> bool:
    """Whether buttons of consent stand in the line's own end, or in its group of lines."""
    text = sheet.lines[place].text
    ending = re.split(r"[.!?:] ", text)[-1]
    if ending != text and len(ending) <= LONGEST_LABEL:
        labels = [judge(label) for label in re.split(r" [/|·] ", ending)]
        if any(label.family == "consent" for label in labels):
            return True
    group = [*range(max(0, place - _ABOVE), place), *range(place + 1, min(len(sheet.lines), place + _BELOW))]
    return any(
        sheet.judgements[other].family == "consent"
        and sheet.judgements[other].is_strong
        and _same_group(sheet, place, other)
        for other in group
    )


def _same_group(sheet: Sheet, one: int, other: int) -> bool:
    low, high = min(one, other), max(one, other)
    return not (sheet.has_gaps and any(sheet.lines[place].has_gap for place in range(low + 1, high + 1)))
