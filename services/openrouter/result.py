"""The result, version 1: every part checked against the transcript, everything that was dropped counted."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from openrouter_client.fence import injection_suspected
from openrouter_client.prose import Prose
from openrouter_client.provenance import provenance
from services.openrouter.analysis import Draft
from services.openrouter.answers import Answer
from services.openrouter.blocks import Block
from services.openrouter.chapters import FEWEST, Candidate, Chapter, make_chapters
from services.openrouter.languages import SpokenLanguage
from services.openrouter.names import Names, Person, names_in
from services.openrouter.payload import AnalyzePayload
from services.openrouter.quotations import Quotation, make_quotations
from services.openrouter.show_notes import show_notes
from services.openrouter.transcript import Transcript
from services.openrouter.wording import WORDING, everything_in

SCHEMA_VERSION = 1
TITLE, SHORT, LONG, KEYWORD, CHAPTER_TITLE = 120, 300, 3000, 60, 80
MOST_ALTERNATIVES, MOST_KEYWORDS, MOST_TOPICS, MOST_UNVERIFIED = 3, 12, 8, 20
Row = dict[str, Any]


@dataclass
class Checked:
    """What is left of a draft, with counts by reason of what is not."""

    head: Row
    chapters: list[Chapter]
    people: list[Person]
    quotes: list[Quotation]
    dropped_chapters: Counter[str] = field(default_factory=Counter)
    dropped_names: Counter[str] = field(default_factory=Counter)
    dropped_quotes: Counter[str] = field(default_factory=Counter)
    dropped_addresses: int = 0
    unverified_names: list[str] = field(default_factory=list)


def check_draft(draft: Draft, blocks: Sequence[Block], transcript: Transcript, payload: AnalyzePayload) -> Checked:
    """Holds everything that a model proposed against the transcript and the hints."""
    hints = payload.hints
    known = [hints.show_title or "", *hints.hosts, *hints.guests]
    prose = Prose(" ".join([transcript.text, *known]))
    names = Names(transcript, hints)
    chapters, people, quotes = Counter[str](), Counter[str](), Counter[str]()
    candidates = [Candidate(c.start_block, prose.line(c.title, CHAPTER_TITLE)) for c in draft.chapters]
    checked = Checked(
        _head(draft.head, prose),
        make_chapters(candidates, blocks, transcript, chapters),
        names.people(draft.people, prose, people),
        make_quotations(draft.quotes, blocks, transcript, quotes),
        chapters,
        people,
        quotes,
    )
    checked.dropped_addresses = prose.dropped_addresses
    told = [value for value in checked.head.values() if isinstance(value, str)]
    found = names_in(" . ".join([*told, *(chapter.title for chapter in checked.chapters)]))
    checked.unverified_names = [
        name for name in found if name not in (hints.show_title or "") and not names.is_grounded(name)
    ][:MOST_UNVERIFIED]
    return checked


def build_result(
    payload: AnalyzePayload,
    transcript: Transcript,
    spoken: SpokenLanguage,
    language: str,
    draft: Draft,
    checked: Checked,
    *,
    model: str,
) -> Row:
    """The result, but for the files written and the time taken."""
    notes = show_notes(checked.head, checked.chapters, checked.people, checked.quotes, language)
    guests, hosts = [p for p in checked.people if p.is_guest], [p for p in checked.people if not p.is_guest]
    result: Row = {
        "schema_version": SCHEMA_VERSION,
        "language": language,
        **checked.head,
        "chapters": [_chapter_row(chapter) for chapter in checked.chapters],
        "guests": [_person_row(person) for person in guests],
        "hosts": [_person_row(person) for person in hosts],
        "quotes": [_quote_row(quote) for quote in checked.quotes],
        "shownotes_md": notes if "shownotes" in payload.wants else None,
        "transcript": _transcript_row(payload, transcript, spoken),
        "quality": _quality(draft, checked, transcript, spoken, "chapters" in everything_in(payload.wants)),
        "provenance": provenance(
            draft.answers,
            prompt_version=WORDING.fingerprint,
            model=model,
            tokens=("prompt", "completion", "reasoning", "cached"),
            plan=draft.plan,
        ),
    }
    passed_on = {"episode_id": payload.episode_id, "tema_id": payload.tema_id}
    if payload.corrects_job_id is not None:
        passed_on["corrects_job_id"] = str(payload.corrects_job_id)
    return result | {name: value for name, value in passed_on.items() if value is not None}


def _head(answer: Answer, prose: Prose) -> Row:
    return {
        "title": prose.line(answer.title, TITLE) or None,
        "title_alternatives": prose.lines(answer.title_alternatives, MOST_ALTERNATIVES, TITLE),
        "summary_short": prose.line(answer.summary_short, SHORT) or None,
        "summary_long": prose.paragraphs(answer.summary_long, LONG) or None,
        "keywords": prose.lines(answer.keywords, MOST_KEYWORDS, KEYWORD),
        "topics": prose.lines(answer.topics, MOST_TOPICS, KEYWORD),
    }


def _transcript_row(payload: AnalyzePayload, transcript: Transcript, spoken: SpokenLanguage) -> Row:
    return {
        "job_id": None if payload.transcript_job_id is None else str(payload.transcript_job_id),
        "language": spoken.language,
        "duration_s": transcript.duration,
        "segments": len(transcript.segments),
        "characters": len(transcript.text),
    }


def _chapter_row(chapter: Chapter) -> Row:
    return {
        "start_s": chapter.start,
        "end_s": chapter.end,
        "title": chapter.title,
        "block_from": chapter.first_block.id,
        "block_to": chapter.last_block.id,
    }


def _person_row(person: Person) -> Row:
    return {
        "name": person.name,
        "role": person.role,
        "mentions": list(person.mentions),
        "grounded": True,
        "known": person.is_known,
    }


def _quote_row(quote: Quotation) -> Row:
    return {
        "text": quote.text,
        "speaker": quote.speaker,
        "start_s": quote.start,
        "end_s": quote.end,
        "seg_from": quote.first_segment,
        "seg_to": quote.last_segment,
        "position": quote.position,
        "match": quote.match,
    }


def _quality(
    draft: Draft, checked: Checked, transcript: Transcript, spoken: SpokenLanguage, wants_chapters: bool
) -> Row:
    lines = "\n".join(segment.text for segment in transcript.segments)
    is_injected = injection_suspected(lines) or injection_suspected(transcript.text)  # also across segments
    warnings = {
        "language_drift": not draft.language_ok,
        "mixed_language": spoken.is_mixed,
        "injection_suspected": is_injected,
        "no_times": not transcript.has_times,
        "few_chapters": wants_chapters and transcript.has_times and len(checked.chapters) < FEWEST,
        "trial_transcript": transcript.is_trial,
        "unverified_names": bool(checked.unverified_names),
        "possible_duplicate": any(answer.is_possible_duplicate for answer in draft.answers),
    }
    of_model = [warning for answer in draft.answers for warning in answer.warnings]
    return {
        "grounded_quotes": len(checked.quotes),
        "dropped_quotes": checked.dropped_quotes.total(),
        "dropped_chapters": checked.dropped_chapters.total(),
        "dropped_names": checked.dropped_names.total(),
        "dropped_addresses": checked.dropped_addresses,
        "dropped": {
            "quotes": _reasons(checked.dropped_quotes),
            "chapters": _reasons(checked.dropped_chapters),
            "names": _reasons(checked.dropped_names),
        },
        "unverified_names": checked.unverified_names,
        "time_precision_s": transcript.longest_segment_seconds,
        "language_ok": draft.language_ok,
        "truncated": draft.was_cut,
        "injection_suspected": is_injected,
        "warnings": [name for name, is_so in warnings.items() if is_so] + list(dict.fromkeys(of_model)),
    }


def _reasons(dropped: Counter[str]) -> dict[str, int]:
    return {reason: count for reason, count in sorted(dropped.items()) if count}
