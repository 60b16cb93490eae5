"""Finds author, date and site of a cleaned paste, and takes the lines that say nothing else out of the text."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from services.research.bylines import is_role, names_in, read_byline, read_name_alone
from services.research.dates import FoundDate, find_dates, is_date_line
from services.research.judgement import judge
from services.research.line import Line

_ABOVE, _BELOW = 4, 14  # lines around the title that may be its credits
_WITHOUT_TITLE = 8
_HANDLE_SIGN = "@"
_WHERE_NAMES = (None, "by-line", "before the title", "label", "duplicate")  # why a line with a name may have gone


@dataclass(frozen=True)
class Credits:
    """What the lines of a paste say about it; None where they are silent."""

    author: str | None = None
    published: str | None = None
    updated: str | None = None


def read_credits(
    lines: list[Line], title: Line | None, pasted_at: datetime | None, *, is_posts: bool = False
) -> Credits:
    """Reads by-line and dates, also in lines that went as a page's furniture."""
    near = list(_near(lines, title))
    authors = _authors(near, is_posts=is_posts)
    dates = list(_dates(lines, near, pasted_at, is_posts=is_posts))
    published = _best(dates, "published")
    updated = _best([one for one in dates if one[1].label == "updated"], "updated")
    if published is None:
        published = updated
    return Credits(
        ", ".join(authors) or None,
        published.iso if published else None,
        updated.iso if updated and updated is not published else None,
    )


def remove_credits(lines: list[Line], title: Line | None) -> None:
    """Takes by-line, date and their like out of the lines below a title: they stand in the clip's own fields."""
    if title is None:
        return
    near = [line for line in _near(lines, title) if line is not title]
    credited: list[Line] = []
    for line in near:
        if not line.is_kept or line.kind in ("code", "item", "row"):
            continue
        if read_byline(line.text) and len(line.text) < 100:
            line.remove("by-line")
        elif is_date_line(line.text, find_dates(line.text, None)) or _is_relative_date(line.text):
            line.remove("date")
        else:
            continue
        credited.append(line)
    _remove_beside(near, credited)


def _remove_beside(near: list[Line], credited: list[Line]) -> None:
    """A name beside a date, a person's work and address beside the name."""
    for _ in range(2):
        for position, line in enumerate(near):
            if not line.is_kept or line.kind not in ("text", "heading"):
                continue
            beside = [
                near[other]
                for other in (position - 1, position + 1)
                if 0 <= other < len(near)
                and not (near[max(position, other)].has_gap and abs(near[other].number - line.number) > 2)
            ]
            is_label = is_role(line.text) or judge(line.text).family == "contact" or bool(read_name_alone(line.text))
            if is_label and any(one in credited for one in beside):
                line.remove("by-line")
                credited.append(line)


def _is_relative_date(text: str) -> bool:
    """Whether a line such as «Publisert: i går kl. 17.05» is one, whatever day it means."""
    return len(text) < 80 and is_date_line(text, find_dates(text, datetime(2000, 1, 1)))  # any day will do


def _near(lines: list[Line], title: Line | None) -> Iterator[Line]:
    """The lines where credits stand."""
    if title is None:
        yield from lines[:_WITHOUT_TITLE]
        return
    place = next((position for position, line in enumerate(lines) if line is title), 0)
    yield from lines[max(0, place - _ABOVE) : place + _BELOW]


def _authors(near: list[Line], *, is_posts: bool) -> list[str]:
    for line in near:
        if line.reason in _WHERE_NAMES and (names := read_byline(line.text)):
            return names
    for position, line in enumerate(near):
        below = near[position + 1] if position + 1 < len(near) else None
        next_but_one = near[position + 2] if position + 2 < len(near) else None
        above = near[position - 1] if position else None
        names = read_name_alone(line.text) if line.reason in _WHERE_NAMES else []
        if names and (
            _is_credit(below)
            or (_is_short(below) and _is_credit(next_but_one))
            or _is_credit(above)
            or (is_posts and below is not None and below.text.startswith(_HANDLE_SIGN))
        ):
            return names
    if is_posts:
        for line in near:
            name, sign, _ = line.text.partition(f" {_HANDLE_SIGN}")
            if sign and read_name_alone(name):
                return [name]
    return []


def _is_credit(line: Line | None) -> bool:
    if line is None:
        return False
    if is_role(line.text):
        return True
    return len(line.text) < 60 and (bool(find_dates(line.text, None)) or _is_relative_date(line.text))


def _is_short(line: Line | None) -> bool:
    """Whether a line may tell a person's work and place."""
    return line is not None and len(line.text) < 50 and not judge(line.text).is_sentence


def _dates(
    lines: list[Line], near: list[Line], pasted_at: datetime | None, *, is_posts: bool
) -> Iterator[tuple[int, FoundDate]]:
    """Dates with their rank: below the title, in a line of its own elsewhere, inside a line."""
    for line in near:
        is_short = len(line.text) <= 100
        for one in find_dates(line.text, pasted_at, takes_loose=is_short):
            own = is_date_line(line.text, [one]) or one.label is not None
            yield (3 if own else 2 if is_short else 0), one
            if own:
                break  # what follows in a date's own line is another: next update, correction
    beyond = [line for line in lines if line not in near] if len(lines) < 400 else [*lines[:100], *lines[-100:]]
    for line in beyond:
        if len(line.text) <= 160:
            for one in find_dates(line.text, pasted_at):
                if one.label or (is_posts and one.is_relative):
                    yield 1, one


def _best(dates: list[tuple[int, FoundDate]], label: str) -> FoundDate | None:
    """The date that is likeliest to be the one that is asked for; the first of equals."""
    told = [(rank + (2 if one.label == label else -2 if one.label else 0), one) for rank, one in dates]
    told = [(rank, one) for rank, one in told if rank >= 1]
    if not told:
        return None
    best = max(rank for rank, _ in told)
    return next(one for rank, one in told if rank == best)


def names_of(text: str | None) -> str | None:
    """Names in a field of a page's head, where they can be told; else the field."""
    if not text:
        return None
    names = names_in(text)
    return ", ".join(names) if names else text.strip() or None
