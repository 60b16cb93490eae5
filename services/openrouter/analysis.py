"""Asks for the analysis of a transcript: in one call where it fits, else part by part and then about the parts.

Parts are asked from the transcript itself, never from an earlier answer. What quotes, names and chapters come from the
parts is kept with its blocks, and only titles, summaries and the choice of chapters are made from the notes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from openrouter_client.asker import Asker
from openrouter_client.asking import Answer as ModelAnswer
from openrouter_client.asking import LanguageModel
from openrouter_client.inquiry import Inquiry
from openrouter_client.language import is_language, is_near
from openrouter_client.outcomes import TooLongError, TruncatedError
from openrouter_client.parts import grouped
from services.openrouter.answers import FORM, Answer, ChapterAnswer, PersonAnswer, QuoteAnswer
from services.openrouter.blocks import Block, block_line
from services.openrouter.payload import AnalyzePayload
from services.openrouter.plan import Chunk, divide, halves, token_bound
from services.openrouter.quotations import MOST_QUOTES
from services.openrouter.transcript import Transcript
from sidelinja_jobs import Context, Job

Plan = Literal["single", "map_reduce"]
Note = tuple[str, Answer]  # the blocks it is about, what was answered
LEAST_NOTES_TOKENS = 1700  # two notes


@dataclass
class Draft:
    """What the model proposes, unchecked, and what it took. Quotes, people and chapters still name blocks."""

    plan: Plan
    head: Answer
    chapters: Sequence[ChapterAnswer]
    people: Sequence[PersonAnswer]
    quotes: Sequence[QuoteAnswer]
    language_ok: bool
    was_cut: bool  # an answer, or a question, was too long, so smaller ones were asked
    answers: Sequence[ModelAnswer]


class Analyst:
    """Asks for one job's transcript. `single_tokens`: above this, parts are asked even where all of it fits."""

    def __init__(
        self,
        model: LanguageModel,
        job: Job[AnalyzePayload],
        ctx: Context,
        asker: Asker,
        transcript: Transcript,
        blocks: Sequence[Block],
        *,
        single_tokens: int,
    ) -> None:
        self._ctx, self._asker = ctx, asker
        self._inquiry = Inquiry(model, job, ctx, asker=asker, form=FORM, max_cost_usd=job.payload.max_cost_usd)
        self._blocks, self._single_tokens = blocks, single_tokens
        self._lines = [block_line(transcript, block) for block in blocks]
        self._sizes = [token_bound(line) + 1 for line in self._lines]
        self._was_cut = False

    @property
    def fits_one_call(self) -> bool:
        return sum(self._sizes) <= min(self._asker.room("analysis"), self._single_tokens)

    def draft(self) -> Draft:
        """The whole draft, by the plan that fits."""
        if self.fits_one_call:
            try:
                return self._single()
            except (TooLongError, TruncatedError) as error:
                self._was_cut = True
                self._ctx.log.warning("one call is not enough, asking part by part", reason=str(error)[:300])
        return self._map_reduce()

    def _single(self) -> Draft:
        self._ctx.progress(0.05, f"asking about the whole transcript, {len(self._blocks)} blocks in one call")
        answer, language_ok = self._inquiry.ask_in_language("analysis", "analysis", self._lines, _is_in)
        return self._draft("single", answer, answer.people, answer.quotes, language_ok)

    def _map_reduce(self) -> Draft:
        self._asker.require_room("part")
        if "whole" in self._asker.tasks:
            self._asker.require_room("whole", "condense", least=LEAST_NOTES_TOKENS)
        chunks = divide(self._blocks, self._sizes, self._asker.room("part"))
        notes: list[Note] = []
        for number, chunk in enumerate(chunks, start=1):
            self._ctx.progress(0.05 + 0.75 * (number - 1) / len(chunks), f"asking about part {number} of {len(chunks)}")
            notes += self._part(chunk)
        head, language_ok = self._reduce(notes) if "whole" in self._asker.tasks else (Answer(), True)
        parts = [answer for _, answer in notes]
        people = [person for part in parts for person in part.people]
        return self._draft("map_reduce", head, people, _by_turns([part.quotes for part in parts]), language_ok)

    def _draft(
        self,
        plan: Plan,
        head: Answer,
        people: Sequence[PersonAnswer],
        quotes: Sequence[QuoteAnswer],
        language_ok: bool,
    ) -> Draft:
        return Draft(plan, head, head.chapters, people, quotes, language_ok, self._was_cut, self._inquiry.answers)

    def _part(self, chunk: Chunk) -> list[Note]:
        """The notes on a chunk: one, or those on its halves where it is too much at once."""
        lines = [self._lines[block.number - 1] for block in chunk.blocks]
        try:
            return [(chunk.name, self._inquiry.ask("part", f"part {chunk.name}", lines))]
        except (TooLongError, TruncatedError):
            self._was_cut = True
            split = halves(chunk)
            if split is None:
                raise
            return [note for half in split for note in self._part(half)]

    def _reduce(self, notes: Sequence[Note]) -> tuple[Answer, bool]:
        """The answer about the whole, from notes that are condensed until they fit."""
        level = 0
        while sum(map(_note_tokens, notes)) > self._asker.room("whole"):
            level += 1
            self._ctx.progress(0.8, f"putting {len(notes)} parts together, round {level}")
            notes = self._condense(notes, level)
        self._ctx.progress(0.85, "asking about the whole from its parts")
        lines = [line for note in notes for line in _note_lines(note)]
        return self._inquiry.ask_in_language("whole", "whole", lines, _is_in)

    def _condense(self, notes: Sequence[Note], level: int) -> list[Note]:
        condensed: list[Note] = []
        for number, group in enumerate(grouped(notes, _note_tokens, self._asker.room("condense")), start=1):
            lines = [line for note in group for line in _note_lines(note)]
            name = f"{group[0][0].split('-')[0]}-{group[-1][0].split('-')[-1]}"
            condensed.append((name, self._inquiry.ask("condense", f"condense {level}.{number}", lines)))
        if len(condensed) >= len(notes):
            raise self._asker.too_small_error("cannot hold the notes on two parts")
        return condensed


def _note_lines(note: Note) -> list[str]:
    blocks, answer = note
    chapters = [f"  {chapter.start_block}: {' '.join(chapter.title.split())[:80]}" for chapter in answer.chapters[:12]]
    return [
        f"{blocks}: {' '.join(answer.summary.split())[:500]}",
        f"  ({', '.join(' '.join(topic.split())[:60] for topic in answer.topics[:6])})",
        *chapters,
    ]


def _note_tokens(note: Note) -> int:
    return sum(token_bound(line) + 1 for line in _note_lines(note))


def _by_turns(quotes: Sequence[Sequence[QuoteAnswer]]) -> list[QuoteAnswer]:
    """One of each part in turn, parts from all over the episode first: so the first ones that are kept are spread."""
    count = len(quotes)
    spread = [count * number // MOST_QUOTES for number in range(MOST_QUOTES)]
    order = list(dict.fromkeys([*spread, *range(count)]))
    rounds = range(max(map(len, quotes), default=0))
    return [quotes[part][number] for number in rounds for part in order if number < len(quotes[part])]


def _is_in(answer: Answer, language: str) -> bool:
    """Whether all of it is in the language, and neither summary alone is English among Norwegian, or the reverse."""
    if not is_language(_prose_of(answer), language):
        return False
    return all(is_near(summary, language) for summary in (answer.summary_short, answer.summary_long))


def _prose_of(answer: Answer) -> str:
    summary = f"{answer.summary_short} {answer.summary_long}".strip()
    chapters = [chapter.title for chapter in answer.chapters]
    return summary or ". ".join([answer.title, *answer.title_alternatives, *answer.topics, *chapters])
