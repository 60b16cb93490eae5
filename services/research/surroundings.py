"""Takes out what surrounds the matter: menus, consent, sharing, lists of other headlines, footers.

First each line is judged by itself; then its neighbours count. Ordinary words (Map, Contact, a place's name below a
text) go only where the lines around them have gone for their own sake, before the title or after the last sentence.
What is marked as a numbered list, as a table or as code stays.
"""

import re

from services.research.sheet import LONGEST_LABEL, Sheet, groups_of, is_label, is_marked, is_structure, is_table

_LONG_SENTENCE, _LEAST_ABOVE = 100, 2
_TELLS = re.compile(r": .*\d|[.?] [–A-ZÆØÅ]")  # a figure, or more than one sentence
_STOPS = re.compile(r"[^\W\d]{2}[.!?](?= |\Z)")
_LOOK_AHEAD = 3
_LEAST_ATTACHED, _SMALL_GROUP = 2, 2
_TAIL_SHARE, _HEAD_SHARE = 0.2, 0.25  # of lines that are a page's own
_LONGEST_ENCLOSED = 80


def first_matter(sheet: Sheet) -> int | None:
    """Where the first sentence of the matter stands."""
    for position, line in enumerate(sheet.lines):
        is_text = sheet.is_matter(position) and line.kind != "row" and not sheet.judgements[position].family
        if is_text and line.text.endswith(("?", "!")) and len(line.text) < _LONG_SENTENCE:
            continue  # a title may ask
        if is_text or (line.kind == "item" and _is_list(sheet, position)):
            return position
        if line.kind == "row" and is_table(sheet, position) and is_table(sheet, position + 1):
            return position
    return None


def _is_list(sheet: Sheet, position: int) -> bool:
    """Three items of a list that are no menu."""
    three = range(position, min(position + 3, len(sheet.lines)))
    return len(three) == 3 and all(
        sheet.lines[place].kind == "item"
        and sheet.lines[place].is_kept
        and not sheet.lines[place].is_link
        and not sheet.judgements[place].family
        for place in three
    )


def body_start(sheet: Sheet, begin: int | None) -> int | None:
    """Where running text begins: a sentence with another soon after; `begin` is the first of the matter.

    A lead, or a page's notice, may stand before.
    """
    if begin is None or not sheet.is_page:
        return begin
    kept = [
        place
        for place in range(begin, len(sheet.lines))
        if sheet.lines[place].is_kept and not sheet.judgements[place].family
    ]
    for index, place in enumerate(kept):
        ahead = kept[index + 1 : index + 1 + _LOOK_AHEAD]
        if sheet.is_matter(place) and sum(1 for other in ahead if sheet.is_matter(other)) >= min(2, len(ahead)):
            return place
    return begin


def is_below_matter(sheet: Sheet, title: int) -> bool:
    """Whether sentences stand above a line, so that it is no title; one may, as a page's notice does."""
    above = [place for place in range(title) if sheet.is_matter(place) and sheet.judgements[place].family is None]
    return len(above) >= _LEAST_ABOVE and sheet.lines[title].level != 1


def remove_head(sheet: Sheet, title: int) -> None:
    """Takes out what stands before the title, where that is a page's head."""
    before = range(title)
    furniture = sum(1 for position in before if sheet.is_furniture(position))
    if sheet.is_page or (furniture >= 1 and furniture >= _HEAD_SHARE * len(before)):
        for position in before:
            if not is_marked(sheet.lines[position]) and not is_table(sheet, position):
                sheet.lines[position].remove("before the title")


def remove_labels(sheet: Sheet, begin: int, end: int) -> None:
    """Takes out ordinary words of menus between title and text, and those beside what has gone."""
    for position in range(begin, end):
        line, judgement = sheet.lines[position], sheet.judgements[position]
        is_weak = line.is_kept and judgement.family and not judgement.is_sentence and not is_marked(line)
        if is_weak and not _is_above_text(sheet, position):
            line.remove(judgement.family or "label")
        elif is_label(sheet, position) and not _leads_on(sheet, position):
            line.remove("label")


def remove_islands(sheet: Sheet, begin: int) -> None:
    """Takes out groups of lines inside the text that hold nothing of it.

    A group with a page's own line in it and no sentence goes whole. So does a group of few lines without any sign of
    belonging to the text, where headings stand right above their paragraphs.
    """
    if not (sheet.is_page and sheet.has_gaps):
        return
    groups = [group for group in groups_of(sheet) if group[0] >= begin]
    attached = sum(1 for group in groups if len(group) > 1 and is_label(sheet, group[0]) and sheet.is_matter(group[1]))
    for group, below in zip(groups, [*groups[1:], []], strict=False):
        if any(sheet.is_matter(place) or is_structure(sheet, place) for place in group):
            continue
        has_strong = any(sheet.lines[place].is_strong or sheet.judgements[place].family for place in group)
        leads_on = bool(below) and (is_structure(sheet, below[0]) or (attached < _LEAST_ATTACHED and len(group) == 1))
        if has_strong or (attached >= _LEAST_ATTACHED and len(group) <= _SMALL_GROUP and not leads_on):
            for place in group:
                if not sheet.judgements[place].is_sentence or sheet.judgements[place].family:
                    sheet.lines[place].remove("label")


def _leads_on(sheet: Sheet, place: int) -> bool:
    """Whether a label stands right above text or a list, as a heading does; or tells something: Price: 120."""
    if re.search(r"\d", sheet.lines[place].text) or ":" in sheet.lines[place].text:
        return True
    return _is_above_text(sheet, place)


def _is_above_text(sheet: Sheet, place: int) -> bool:
    below = place + 1
    if below >= len(sheet.lines) or not sheet.lines[below].is_kept:
        return False
    is_near = not (sheet.has_gaps and sheet.lines[below].has_gap)
    return is_near and (sheet.is_matter(below) or is_structure(sheet, below))


def remove_tail(sheet: Sheet) -> None:
    """Takes out what stands after the last sentence of the matter, where that is a page's end."""
    if not sheet.is_page:
        return
    last = _last_matter(sheet)
    if last is None:
        return
    begin = next((place for place in range(last + 1, len(sheet.lines)) if _begins_tail(sheet, place)), None)
    if begin is not None and sheet.has_gaps:
        while begin - 1 > last and is_label(sheet, begin - 1) and not sheet.lines[begin].has_gap:
            begin -= 1  # the rest of its group
    if begin is None:
        return
    tail = range(begin, len(sheet.lines))
    furniture = sum(1 for position in tail if sheet.is_furniture(position))
    if furniture < _TAIL_SHARE * len(tail):
        return
    for position in tail:
        line = sheet.lines[position]
        if not is_marked(line) and not is_table(sheet, position):
            line.remove(sheet.judgements[position].family or "after the text")


def _begins_tail(sheet: Sheet, position: int) -> bool:
    line, judgement = sheet.lines[position], sheet.judgements[position]
    if is_marked(line) or is_table(sheet, position):
        return False
    return line.is_strong or judgement.section is not None or judgement.is_menu or judgement.family is not None


def _last_matter(sheet: Sheet) -> int | None:
    """The last sentence of the matter; one that stands alone among a page's furniture is none."""
    found = [place for place in range(len(sheet.lines)) if sheet.is_matter(place) or is_table(sheet, place)]
    while len(found) >= 3 and not (sheet.is_forum or sheet.is_posts):
        last, before = found[-1], found[-2]
        between = range(before + 1, last)
        furniture = sum(1 for place in between if sheet.is_furniture(place))
        text = sheet.lines[last].text
        is_long = (len(text) >= _LONG_SENTENCE or len(_STOPS.findall(text)) > 1) and not sheet.judgements[last].family
        labels = sum(1 for place in between if is_label(sheet, place) and not sheet.is_furniture(place))
        if (
            furniture + labels < 3
            or furniture < 1
            or furniture + labels < 0.6 * len(between)
            or is_marked(sheet.lines[last])
            or is_long
        ):
            break
        found.pop()
    return found[-1] if found else None


def remove_enclosed(sheet: Sheet, title: int | None) -> None:
    """A label of no known wording between two that are, in one group of lines."""
    if not sheet.has_gaps:
        return
    for position in range(1, len(sheet.lines) - 1):
        above, line, below = sheet.lines[position - 1 : position + 2]
        if not (above.is_strong and below.is_strong):
            continue
        is_short = len(line.text) <= (LONGEST_LABEL if sheet.judgements[position].is_sentence else _LONGEST_ENCLOSED)
        is_text = sheet.judgements[position].is_sentence and above.reason != "advertising"
        is_own = is_short and not is_text and not _TELLS.search(line.text)
        is_label_like = is_own and line.kind == "text" and line.is_kept and position != title
        is_in_group = not line.has_gap and not below.has_gap
        if is_label_like and is_in_group:
            line.remove("among the page's labels")
