"""Looks up what a model says about a clip in the clip's own text, and keeps apart what is not there.

A claim, a fact or a quote counts with the place that it quotes; what is stored as `quote` is the text's own slice.
Numbers and dates of a claim or a fact have to stand in that slice.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from openrouter_client.prose import Prose
from openrouter_client.quotes import LEAST_LETTERS, Folded, Span, locate
from services.research.dates import find_dates
from services.research.descriptions import (
    ClaimAnswer,
    Description,
    EntityAnswer,
    FactAnswer,
    HeadingAnswer,
    QuoteAnswer,
    Reference,
)
from services.research.figures import figures_in
from services.research.paragraphs import Paragraph, find_paragraph

Row = dict[str, Any]
ENTITY_TYPES = ("person", "organization", "place", "work", "law", "event")
MOST_ROWS = {"entity": 200, "claim": 200, "fact": 400, "quote": 60, "heading": 200}
MOST_UNGROUNDED = 200
MOST_SPANS = 50
LONGEST_QUOTE = 800
_MOST_SHORT = 2  # letters, folded; a shorter quote says nothing


class Grounder:
    """Looks up answers in one text. What does not hold is in `ungrounded`, with the reason; `counts` has them all."""

    def __init__(self, text: str, paragraphs: Sequence[Paragraph], prose: Prose) -> None:
        self._text, self._paragraphs, self._prose = text, paragraphs, prose
        self._folded = Folded(text)
        self.ungrounded: list[Row] = []
        self.counts: Counter[str] = Counter()

    def claims(self, answers: Iterable[ClaimAnswer]) -> list[Row]:
        """Claims whose quote stands in the text and holds their figures."""
        rows = []
        for answer in answers:
            row: Row = {"text": self._prose.line(answer.text, 400)}
            rows.append(self._with_quote("claim", row, row["text"], answer.paragraph, answer.quote))
        return _kept(rows, "claim", "text")

    def facts(self, answers: Iterable[FactAnswer]) -> list[Row]:
        """Facts whose quote stands in the text and holds their figures."""
        rows = []
        for answer in answers:
            row: Row = {
                "subject": self._prose.line(answer.subject, 160),
                "predicate": self._prose.line(answer.predicate, 120),
                "value": self._prose.line(str(answer.value), 200),
                "unit": self._prose.line(answer.unit or "", 40) or None,
            }
            said = f"{row['value']} {row['unit'] or ''}\n{row['subject']}\n{row['predicate']}"
            is_whole = bool(row["subject"] and row["value"])
            rows.append(self._with_quote("fact", row, said if is_whole else "", answer.paragraph, answer.quote))
        return _kept(rows, "fact", "subject", "predicate", "value")

    def quotes(self, answers: Iterable[QuoteAnswer]) -> list[Row]:
        """Quotes that stand in the text, in its order."""
        rows = [self._with_quote("quote", {}, "quote", answer.paragraph, answer.quote) for answer in answers]
        return sorted(_kept(rows, "quote", "quote"), key=lambda row: int(row["start"]))

    def entities(self, answers: Iterable[EntityAnswer]) -> list[Row]:
        """Names that stand in the text, each once, with the places."""
        rows: list[Row | None] = []
        seen: set[str] = set()
        for answer in answers:
            name = self._prose.line(answer.name, 120)
            if name.casefold() in seen:
                continue
            seen.add(name.casefold())
            spans = [{"start": span.start, "end": span.end} for span in self._mentions(name)]
            kind = answer.type if answer.type in ENTITY_TYPES else "other"
            row: Row = {"name": name, "type": kind}
            if name and not spans:
                self._keep_apart("entity", row, "not_in_text")
            rows.append({**row, "spans": spans} if spans else None)
        return _kept(rows, "entity", "name")

    def headings(self, answers: Iterable[HeadingAnswer]) -> list[Row]:
        """Headings with the paragraph that they stand before, at most one to each; `start` is its place."""
        rows: list[Row | None] = []
        for answer in answers:
            paragraph = find_paragraph(answer.paragraph, self._paragraphs)
            title = self._prose.line(answer.title, 80)
            if title and paragraph is None:
                self._keep_apart("heading", {"title": title}, "no_such_paragraph")
            rows.append({"title": title, "start": paragraph.start} if title and paragraph else None)
        return sorted(_kept(rows, "heading", "start"), key=lambda row: int(row["start"]))

    def head(self, answer: Description, names: Sequence[str], pasted_at: datetime | None) -> dict[str, str]:
        """Title, author and date that the cleaning did not find: the text's own words, the date as ISO 8601."""
        found: dict[str, str] = {}
        for name in names:
            said = self._prose.line(getattr(answer, name) or "", 300)
            place = next(self._mentions(said), None) if said else None
            value = self._text[place.start : place.end] if place else None
            if value and name == "published":
                dates = find_dates(value, pasted_at, takes_loose=True)
                value = dates[0].iso if dates else None
            if value:
                found[name] = " ".join(value.split())
            elif said:
                self._keep_apart(name, {"value": said}, "not_in_text")
        return found

    def _with_quote(self, kind: str, row: Row, said: str, reference: Reference, quote: str) -> Row | None:
        """The row with its place, or None where it does not hold. `said`: the model's words about the quote."""
        span = self._find(quote, reference)
        model_quote = self._prose.line(quote, LONGEST_QUOTE)
        if not said.strip() or not model_quote:
            self.counts["empty"] += 1
            return None
        if span is None:
            self._keep_apart(kind, {**row, "quote": model_quote}, "quote_not_found")
            return None
        own = self._text[span.start : span.end]
        row = {**row, "quote": own, "start": span.start, "end": span.end, "match": span.match}
        problem = "quote_too_long" if len(own) > LONGEST_QUOTE else None
        if problem is None and kind != "quote" and not figures_in(own).holds(figures_in(said)):
            problem = "number_not_in_quote"
        if problem is not None:
            self._keep_apart(kind, {**row, "quote": own[:LONGEST_QUOTE]}, problem)
        return row if problem is None else None

    def _keep_apart(self, kind: str, row: Row, reason: str) -> None:
        self.counts[reason] += 1
        if len(self.ungrounded) < MOST_UNGROUNDED:
            self.ungrounded.append({"kind": kind, **row, "reason": reason})

    def _find(self, quote: str, reference: Reference) -> Span | None:
        """Where a quote stands. It may differ a little in and beside its paragraph; elsewhere nothing may differ."""
        paragraph = find_paragraph(reference, self._paragraphs)
        if paragraph is None:
            return locate(quote, self._folded, (0, 0))
        first = self._paragraphs[max(0, paragraph.number - 2)]
        last = self._paragraphs[min(len(self._paragraphs) - 1, paragraph.number)]
        return self._find_short(quote, paragraph) or locate(quote, self._folded, (first.start, last.end))

    def _find_short(self, quote: str, paragraph: Paragraph) -> Span | None:
        """A quote that is too short to be looked for everywhere: it must stand once in its paragraph."""
        wanted = Folded(quote[:LONGEST_QUOTE]).text
        if not _MOST_SHORT <= len(wanted) - 2 < LEAST_LETTERS:
            return None
        low, high = self._folded.window(paragraph.start, paragraph.end)
        places = list(_places(wanted, self._folded.text, max(0, low - 1), high))
        return self._folded.span(places[0], places[0] + len(wanted), "exact") if len(places) == 1 else None

    def _mentions(self, name: str) -> Iterator[Span]:
        """Where a name stands, also with a genitive's s, the first places."""
        wanted = Folded(name).text.rstrip()
        if len(wanted) < 1 + _MOST_SHORT:
            return
        text, count = self._folded.text, 0
        for place in _places(wanted, text, 0, len(text)):
            end = place + len(wanted)
            if text[end] == " " or text[end : end + 2] == "s ":
                yield self._folded.span(place, end, "exact")
                count += 1
            if count == MOST_SPANS:
                return


def _places(wanted: str, text: str, low: int, high: int) -> Iterator[int]:
    place = text.find(wanted, low, high)
    while place >= 0:
        yield place
        place = text.find(wanted, place + 1, high)


def _kept(rows: Iterable[Row | None], kind: str, *names: str) -> list[Row]:
    """Those that hold, each once by the fields named, and no more than so many."""
    found: dict[str, Row] = {}
    for row in rows:
        if row is not None:
            found.setdefault("\n".join(str(row[name]).casefold() for name in names), row)
    return list(found.values())[: MOST_ROWS[kind]]
