"""Takes out the lines below a letter and below a forum's post, and numbers that count something of the page."""

import re

from services.research.sheet import LONGEST_LABEL, Sheet

_CLOSING = re.compile(
    r"(?:med |mange |de |dei )?(?:(?:vennlig|venleg|vennlege|beste|best|kind|warm|kjær|hjertelig|hjarteleg"
    r"|mange|godt|god)"
    r"(?:e|ste)? )?(?:hilsen|helsing|hilsning\w*|regards|wishes|hälsning\w*)|mvh|vh|m\.v\.h|cheers"
    r"|sincerely|klem|thanks"
    r"|yours (?:sincerely|truly|faithfully)|ha en fin \w+|ha det bra|all the best|best|takk på forhånd"
)
_DASHES = ("--", "__", "___")


def remove_signatures(sheet: Sheet) -> None:
    """Lines below a letter's closing and name, and below a forum post's counters."""
    is_below, names = False, 0
    for line, judgement in zip(sheet.lines, sheet.judgements, strict=True):
        if line.has_gap and is_below and names:
            is_below = False
        if _CLOSING.fullmatch(judgement.folded) or line.source in _DASHES:
            is_below, names = True, 0 if judgement.folded else 1
            continue
        if not is_below or line.kind == "code":
            continue
        if judgement.is_sentence and not judgement.family:
            is_below = False
        elif names:
            line.remove("signature", is_strong=judgement.is_strong)
        else:
            names += 1
    if sheet.is_forum:
        _remove_forum_signatures(sheet)


def _remove_forum_signatures(sheet: Sheet) -> None:
    is_below = False
    for line, judgement in zip(sheet.lines, sheet.judgements, strict=True):
        if line.has_gap:
            is_below = False
        if judgement.family in ("forum", "counter") and judgement.is_strong:
            is_below = True
        elif is_below and line.is_kept and len(line.text) <= LONGEST_LABEL and not judgement.is_sentence:
            line.remove("signature")
        elif is_below:
            is_below = False


def remove_counters(sheet: Sheet) -> None:
    """Numbers alone, where something that is counted stands beside them."""
    for position, (line, judgement) in enumerate(zip(sheet.lines, sheet.judgements, strict=True)):
        if not judgement.is_number or not line.is_kept or line.kind == "code":
            continue
        above = sheet.lines[position - 1] if position else None
        below = sheet.lines[position + 1] if position + 1 < len(sheet.lines) else None
        is_beside = (above is not None and not line.has_gap and above.is_strong) or (
            below is not None and not below.has_gap and below.is_strong and line.kind == "text"
        )
        if is_beside or ((sheet.is_posts or sheet.is_forum) and line.kind != "row"):
            line.remove("counter", is_strong=True)
