"""Stage B: a model describes what the cleaning left. It never changes the text.

Short clips are asked about at once, long ones part by part; from the notes on the parts only the summary and the topics
are made. Answers are kept in the ledger, so a run after a crash asks only what was not answered.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from openrouter_client.asking import Answer, LanguageModel
from openrouter_client.language import detect, is_language
from openrouter_client.outcomes import KEY_LIMIT, NO_CREDIT, NO_KEY, REFUSED_KEY, TooLongError, TruncatedError
from services.research.descriptions import Description, checker, has_summary, read_description
from services.research.figures import is_said, numbers_in
from services.research.grounding import Grounder
from services.research.model_words import ModelWords
from services.research.paragraphs import Paragraph, divide, number_paragraphs
from services.research.paste import Clip
from services.research.payload import ClipPayload
from services.research.questions import HEAD, OUTPUT_LANGUAGES, WORDING, Asker, Step, tokens
from sidelinja_jobs import Context, Job, PauseJobTypeError, PermanentError

MOST_SINGLE_TOKENS = 100_000  # a longer text is asked about in parts, even where all of it fits the model
LEAST_ROOM_TOKENS = 800
REST_SECONDS = 300.0  # no clip asks again for so long after the key was refused or its credit spent
LONGEST_SUMMARY, MOST_TOPICS, LONGEST_TOPIC = 1000, 8, 60
FALLBACK_LANGUAGE = "nb"
_RESTING = (REFUSED_KEY, NO_CREDIT, KEY_LIMIT)


class ModelEnricher:
    """Describes clips with one model. `model_name` is the one that is asked for."""

    def __init__(self, model: LanguageModel, model_name: str) -> None:
        self._model, self._model_name = model, model_name
        self._rests_until, self._resting_for = 0.0, NO_KEY

    @property
    def problem(self) -> str | None:
        """The class of what speaks against asking now, None where nothing does."""
        if not self._model.is_usable:
            return NO_KEY
        return self._resting_for if time.monotonic() < self._rests_until else None

    def enrich(self, clip: Clip, job: Job[ClipPayload], ctx: Context) -> Clip:
        """The clip with the model's fields, as far as the text bears them out."""
        paragraphs = number_paragraphs(clip)
        if not paragraphs:
            return clip
        language = output_language(job.payload.output_language, clip["language"])
        source = clip["source"]
        known = {"title": clip["title"], "author": source["author"], "published": source["published"]}
        head = tuple(name for name in HEAD if not known[name])
        try:
            asker = Asker(job.id, language, head, self._model.context_tokens)
            draft = _Describer(self._model, job, ctx, asker, paragraphs).draft()
        except PauseJobTypeError as error:
            if error.error_class in _RESTING:
                self._rest(error.error_class)
            raise
        if self._model.metrics is not None:
            self._model.metrics.key_usable.set(1)
        ctx.progress(0.95, "looking the answer up in the text")
        return _merged(clip, draft, paragraphs, asker, job.payload, self._model_name)

    def _rest(self, error_class: str) -> None:
        self._rests_until, self._resting_for = time.monotonic() + REST_SECONDS, error_class
        if self._model.metrics is not None:
            self._model.metrics.key_usable.set(0)


def output_language(wanted: str | None, of_text: str | None) -> str:
    """The payload's word, else the text's language where there are prompts in it, else bokmål."""
    return wanted or (of_text if of_text in OUTPUT_LANGUAGES else None) or FALLBACK_LANGUAGE


@dataclass
class _Draft:
    """What the model proposes, unchecked: about the whole, and about each part."""

    whole: Description
    parts: Sequence[Description]
    is_language_right: bool
    answers: list[Answer] = field(default_factory=list)


class _Describer:
    """Asks for one clip."""

    def __init__(
        self,
        model: LanguageModel,
        job: Job[ClipPayload],
        ctx: Context,
        asker: Asker,
        paragraphs: Sequence[Paragraph],
    ) -> None:
        self._model, self._job, self._ctx, self._asker = model, job, ctx, asker
        self._paragraphs = paragraphs
        self._answers: list[Answer] = []
        self._is_language_right = True

    def draft(self) -> _Draft:
        """The whole draft, in one call where it fits."""
        size = sum(paragraph.tokens for paragraph in self._paragraphs)
        if size <= min(self._asker.room("clip"), MOST_SINGLE_TOKENS):
            try:
                self._ctx.progress(0.1, f"asking about {len(self._paragraphs)} paragraphs in one call")
                whole = self._ask_in_language("clip", "clip", [paragraph.line for paragraph in self._paragraphs])
                return _Draft(whole, [whole], self._is_language_right, self._answers)
            except (TooLongError, TruncatedError) as error:
                self._ctx.log.warning("one call is not enough, asking part by part", reason=str(error)[:300])
        room = self._asker.room("part")
        self._require_room(min(room, self._asker.room("whole")))
        groups = divide(self._paragraphs, room)
        parts: list[Description] = []
        for number, group in enumerate(groups, start=1):
            self._ctx.progress(0.1 + 0.75 * (number - 1) / len(groups), f"asking about part {number} of {len(groups)}")
            parts += self._part(group)
        return _Draft(self._whole(parts), parts, self._is_language_right, self._answers)

    def _part(self, group: Sequence[Paragraph]) -> list[Description]:
        """What is said of a part: once, or of each half where it is too much at once."""
        name = f"part P{group[0].number}-P{group[-1].number}"
        try:
            return [self._ask_in_language("part", name, [paragraph.line for paragraph in group])]
        except (TooLongError, TruncatedError):
            if len(group) < 2:
                raise
            middle = len(group) // 2
            return [*self._part(group[:middle]), *self._part(group[middle:])]

    def _whole(self, parts: Sequence[Description]) -> Description:
        """Summary and topics of all, from notes that are put together until they are few enough."""
        notes, room, level = [_note(part) for part in parts], self._asker.room("whole"), 0
        while sum(tokens(note) for note in notes) > room:
            level += 1
            groups = _grouped(notes, room)
            if len(groups) == len(notes):
                raise self._too_small(room)
            self._ctx.progress(0.85, f"putting {len(notes)} notes together, round {level}")
            notes = [_note(self._ask("whole", f"whole {level}.{n}", group)) for n, group in enumerate(groups, start=1)]
        self._ctx.progress(0.9, "asking about the whole from its parts")
        return self._ask_in_language("whole", "whole", notes)

    def _ask_in_language(self, step: Step, name: str, lines: Sequence[str]) -> Description:
        """The answer; asked for once more where it is in another language, and then taken as it is."""
        answer = self._ask(step, name, lines)
        if _is_in(answer, self._asker.language):
            return answer
        self._ctx.log.warning("answer in another language", step=name, wanted=self._asker.language)
        again = self._ask(step, name, lines, is_again=True)
        self._is_language_right &= _is_in(again, self._asker.language)
        return again

    def _ask(self, step: Step, name: str, lines: Sequence[str], *, is_again: bool = False) -> Description:
        answer = self._model.ask(
            self._asker.question(step, name, lines, is_again=is_again),
            self._job,
            self._ctx,
            check=checker(self._asker.fields(step)),
            accepts=has_summary,
            reask=self._asker.again,
        )
        self._answers.append(answer)
        return read_description(answer.data)

    def _require_room(self, room: int) -> None:
        if room < LEAST_ROOM_TOKENS:
            raise self._too_small(room)

    def _too_small(self, room: int) -> PermanentError:
        return PermanentError(
            f"The model's context of {self._asker.context_tokens} tokens leaves {max(room, 0)} for the text, too few. "
            "Next: give the server a larger context and set OPENROUTER_CONTEXT_TOKENS, or choose another model",
            error_class="config",
        )


def _note(part: Description) -> str:
    topics = ", ".join(" ".join(topic.split())[:LONGEST_TOPIC] for topic in part.topics[:MOST_TOPICS])
    return f"- {' '.join(part.summary.split())[:600]} ({topics})"


def _grouped(notes: Sequence[str], room: int) -> list[list[str]]:
    """Neighbours that fit together, at least one in a group."""
    groups: list[list[str]] = [[]]
    size = 0
    for note in notes:
        if groups[-1] and size + tokens(note) > room:
            groups.append([])
            size = 0
        groups[-1].append(note)
        size += tokens(note)
    return groups


def _is_in(answer: Description, language: str) -> bool:
    """Whether neither the summary nor all the model's sentences are in another language."""
    sentences = " ".join([answer.summary, *(claim.text for claim in answer.claims)])
    found = detect(answer.summary).language
    return is_language(sentences, language) and (found is None or (found == "en") == (language == "en"))


def _merged(
    clip: Clip,
    draft: _Draft,
    paragraphs: Sequence[Paragraph],
    asker: Asker,
    payload: ClipPayload,
    model_name: str,
) -> Clip:
    text = clip["clean_text"]
    words = ModelWords(text)
    grounder = Grounder(text, paragraphs, words)
    summary = words.line(draft.whole.summary, LONGEST_SUMMARY)
    described: Clip = {
        "mode_used": "llm",
        "output_language": asker.language,
        "summary": summary or None,
        "topics": words.lines(draft.whole.topics, MOST_TOPICS, LONGEST_TOPIC),
        "entities": grounder.entities(entity for part in draft.parts for entity in part.entities),
        "claims": grounder.claims(claim for part in draft.parts for claim in part.claims),
        "facts": grounder.facts(fact for part in draft.parts for fact in part.facts),
        "quotes": grounder.quotes(quote for part in draft.parts for quote in part.quotes),
        "headings": grounder.headings(heading for part in draft.parts for heading in part.headings),
        "provenance": _provenance(draft.answers, len(draft.parts), model_name),
    }
    found = grounder.head(draft.parts[0], asker.head, payload.pasted_there)
    title = found.pop("title", clip["title"])
    described |= {"title": title, "source": {**clip["source"], **found}, "ungrounded": grounder.ungrounded}
    warnings = {
        "language_drift": not draft.is_language_right,
        "summary_number_not_in_text": not is_said(numbers_in(summary), frozenset().union(*numbers_in(text))),
        "address_left_out": words.dropped_addresses > 0,
    }
    told = dict.fromkeys(warning for answer in draft.answers for warning in answer.warnings)
    quality = {
        **clip["quality"],
        "ungrounded": {reason: count for reason, count in sorted(grounder.counts.items()) if count},
        "warnings": [*clip["quality"]["warnings"], *(name for name, is_so in warnings.items() if is_so), *told],
    }
    return {**clip, **described, "quality": quality}


def _provenance(answers: Sequence[Answer], parts: int, model_name: str) -> dict[str, Any]:
    usages = [answer.usage for answer in answers]
    return {
        "prompt_version": WORDING.fingerprint,
        "model_requested": model_name,
        "model_used": _joined([answer.model for answer in answers]),
        "provider": _joined([answer.provider for answer in answers]),
        "generation_ids": [answer.generation_id for answer in answers if answer.generation_id],
        "parts": parts,
        "calls": len(answers),
        "reused_answers": sum(answer.is_reused for answer in answers),
        "tokens": {
            "prompt": sum(usage.prompt_tokens for usage in usages),
            "completion": sum(usage.completion_tokens for usage in usages),
        },
        "cost_usd": f"{sum((answer.cost_usd for answer in answers), Decimal(0)):f}",
        "cost_source": _joined([str(answer.cost_source) for answer in answers]),
    }


def _joined(values: Sequence[str | None]) -> str | None:
    return ", ".join(dict.fromkeys(value for value in values if value)) or None
