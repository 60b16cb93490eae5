"""Show notes in Markdown, made of checked parts only. Every text in them is escaped: it shows as it was written."""

import re
from collections.abc import Sequence
from typing import Any

from services.openrouter.chapters import Chapter
from services.openrouter.names import Person
from services.openrouter.quotations import Quotation

HEADINGS = {
    "nb": {"chapters": "Kapitler", "guests": "Gjester", "hosts": "Programledere", "quotes": "Sitater"},
    "nn": {"chapters": "Kapittel", "guests": "Gjester", "hosts": "Programleiarar", "quotes": "Sitat"},
    "en": {"chapters": "Chapters", "guests": "Guests", "hosts": "Hosts", "quotes": "Quotes"},
}
_ANYWHERE = re.compile(r"([\\`*_\[\]<>|~&#$])")
_LINK = re.compile(r"(:)(?=//)|(?<=www)(\.)|(@)", re.IGNORECASE)
_BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")  # would turn around what follows, too
_AT_START = re.compile(r"^([+\-=!:>])|^(\d{1,9})([.)])")


def show_notes(
    head: dict[str, Any],
    chapters: Sequence[Chapter],
    people: Sequence[Person],
    quotes: Sequence[Quotation],
    language: str,
) -> str:
    """The notes; a section that has nothing is left out."""
    words = HEADINGS[language]
    guests, hosts = [p for p in people if p.is_guest], [p for p in people if not p.is_guest]
    parts = [
        f"# {escape(head['title'])}" if head["title"] else "",
        _paragraphs(head["summary_long"] or head["summary_short"] or ""),
        _section(words["chapters"], [f"- {clock(c.start)} {escape(c.title)}" for c in chapters]),
        _section(words["guests"], [_person(person) for person in guests]),
        _section(words["hosts"], [_person(person) for person in hosts]),
        _section(words["quotes"], [_quote(quote) for quote in quotes], between="\n\n"),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def escape(text: str) -> str:
    """A text as Markdown that shows exactly it, on one line."""
    text = " ".join(_BIDI.sub("", text).split())
    text = _ANYWHERE.sub(r"\\\1", text)
    text = _LINK.sub(lambda found: f"\\{found.group()}", text)
    return _AT_START.sub(lambda found: f"\\{found[1]}" if found[1] else f"{found[2]}\\{found[3]}", text)


def clock(seconds: float) -> str:
    """1:02:03, or 2:03."""
    whole = int(seconds)
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes}:{left:02}"


def _paragraphs(text: str) -> str:
    return "\n\n".join(escape(part) for part in text.split("\n\n") if part.strip())


def _section(heading: str, lines: Sequence[str], *, between: str = "\n") -> str:
    return f"## {heading}\n\n{between.join(lines)}" if lines else ""


def _person(person: Person) -> str:
    role = f", {escape(person.role)}" if person.role else ""
    return f"- **{escape(person.name)}**{role}"


def _quote(quote: Quotation) -> str:
    speaker = escape(quote.speaker) if quote.speaker else ""
    time = clock(quote.start) if quote.start is not None else ""
    by = ", ".join(part for part in (speaker, time) if part)
    return f"> {escape(quote.text)}" + (f"\n>\n> — {by}" if by else "")
