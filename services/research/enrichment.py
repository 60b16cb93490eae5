"""Stage B: a model describes what the cleaning left. It never changes the text.

Short clips are asked about at once, long ones part by part; from the notes on the parts only the summary and the topics
are made. Answers are kept in the ledger, so a run after a crash asks only what was not answered.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from openrouter_client.asker import Asker
from openrouter_client.asking import Answer, LanguageModel
from openrouter_client.inquiry import Inquiry
from openrouter_client.language import is_language, is_near
from openrouter_client.outcomes import (
    KEY_LIMIT,
    NO_CREDIT,
    NO_KEY,
    REFUSED_KEY,
    ModelAwayError,
    TooLongError,
    TruncatedError,
)
from openrouter_client.parts import grouped
from openrouter_client.prose import Prose
from openrouter_client.provenance import provenance
from openrouter_client.wording import output_language
from services.research.descriptions import FORM, Description
from services.research.figures import is_said, numbers_in
from services.research.grounding import Grounder
from services.research.paragraphs import Paragraph, divide, number_paragraphs
from services.research.paste import Clip
from services.research.payload import ClipPayload
from services.research.questions import HEAD, WORDING, Step, make_asker, tokens
from sidelinja_jobs import ComeBackLaterError, Context, Job, PauseJobTypeError

MOST_SINGLE_TOKENS = 100_000  # a longer text is asked about in parts, even where all of it fits the model
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
        language = output_language(job.payload.output_language, clip["language"], FALLBACK_LANGUAGE)
        source = clip["source"]
        known = {"title": clip["title"], "author": source["author"], "published": source["published"]}
        head = tuple(name for name in HEAD if not known[name])
        try:
            asker = make_asker(job.id, language, head, self._model.context_tokens)
            draft = _Describer(self._model, job, ctx, asker=asker, paragraphs=paragraphs).draft()
        except PauseJobTypeError as error:
            if error.error_class in _RESTING:
                self._rest(error.error_class)
            raise
        except ModelAwayError as error:
            if job.payload.mode != "auto":
                raise
            # It goes without a model after some tries, and does not wait for its turn among many.
            raise ComeBackLaterError(str(error), until=error.alone_until, error_class=error.error_class) from error
        if self._model.metrics is not None:
            self._model.metrics.key_usable.set(1)
        ctx.progress(0.95, "looking the answer up in the text")
        return _merged(
            clip,
            draft,
            paragraphs,
            language=language,
            head=head,
            pasted_at=job.payload.pasted_there,
            model=self._model_name,
        )

    def _rest(self, error_class: str) -> None:
        self._rests_until, self._resting_for = time.monotonic() + REST_SECONDS, error_class
        if self._model.metrics is not None:
            self._model.metrics.key_usable.set(0)


@dataclass
class _Draft:
    """What the model proposes, unchecked: about the whole, and about each part."""

    whole: Description
    parts: Sequence[Description]
    is_language_right: bool
    answers: Sequence[Answer]


class _Describer:
    """Asks for one clip."""

    def __init__(
        self,
        model: LanguageModel,
        job: Job[ClipPayload],
        ctx: Context,
        *,
        asker: Asker,
        paragraphs: Sequence[Paragraph],
    ) -> None:
        self._ctx, self._asker, self._paragraphs = ctx, asker, paragraphs
        self._inquiry = Inquiry(model, job, ctx, asker=asker, form=FORM)
        self._is_language_right = True

    def draft(self) -> _Draft:
        """The whole draft, in one call where it fits."""
        size = sum(paragraph.tokens for paragraph in self._paragraphs)
        if size <= min(self._asker.room("clip"), MOST_SINGLE_TOKENS):
            try:
                self._ctx.progress(0.1, f"asking about {len(self._paragraphs)} paragraphs in one call")
                whole = self._ask("clip", "clip", [paragraph.line for paragraph in self._paragraphs])
                return self._draft(whole, [whole])
            except (TooLongError, TruncatedError) as error:
                self._ctx.log.warning("one call is not enough, asking part by part", reason=str(error)[:300])
        self._asker.require_room("part", "whole")
        groups = divide(self._paragraphs, self._asker.room("part"))
        parts: list[Description] = []
        for number, group in enumerate(groups, start=1):
            self._ctx.progress(0.1 + 0.75 * (number - 1) / len(groups), f"asking about part {number} of {len(groups)}")
            parts += self._part(group)
        return self._draft(self._whole(parts), parts)

    def _draft(self, whole: Description, parts: Sequence[Description]) -> _Draft:
        return _Draft(whole, parts, self._is_language_right, self._inquiry.answers)

    def _part(self, group: Sequence[Paragraph]) -> list[Description]:
        """What is said of a part: once, or of each half where it is too much at once."""
        name = f"part P{group[0].number}-P{group[-1].number}"
        try:
            return [self._ask("part", name, [paragraph.line for paragraph in group])]
        except (TooLongError, TruncatedError):
            if len(group) < 2:
                raise
            middle = len(group) // 2
            return [*self._part(group[:middle]), *self._part(group[middle:])]

    def _whole(self, parts: Sequence[Description]) -> Description:
        """Summary and topics of all, from notes that are put together until they are few enough."""
        notes, room, level = [_note(part) for part in parts], self._asker.room("whole"), 0
        while sum(map(tokens, notes)) > room:
            level += 1
            groups = grouped(notes, tokens, room)
            if len(groups) == len(notes):
                raise self._asker.too_small_error("cannot hold the notes on two parts")
            self._ctx.progress(0.85, f"putting {len(notes)} notes together, round {level}")
            names = (f"whole {level}.{number}" for number in range(1, len(groups) + 1))
            notes = [_note(self._inquiry.ask("whole", name, group)) for name, group in zip(names, groups, strict=True)]
        self._ctx.progress(0.9, "asking about the whole from its parts")
        return self._ask("whole", "whole", notes)

    def _ask(self, step: Step, name: str, lines: Sequence[str]) -> Description:
        answer, is_right = self._inquiry.ask_in_language(step, name, lines, _is_in)
        self._is_language_right &= is_right
        return answer


def _note(part: Description) -> str:
    topics = ", ".join(" ".join(topic.split())[:LONGEST_TOPIC] for topic in part.topics[:MOST_TOPICS])
    return f"- {' '.join(part.summary.split())[:600]} ({topics})"


def _is_in(answer: Description, language: str) -> bool:
    """Whether neither the summary nor all the model's sentences are in another language."""
    sentences = " ".join([answer.summary, *(claim.text for claim in answer.claims)])
    return is_language(sentences, language) and is_near(answer.summary, language)


def _merged(
    clip: Clip,
    draft: _Draft,
    paragraphs: Sequence[Paragraph],
    *,
    language: str,
    head: Sequence[str],
    pasted_at: datetime | None,
    model: str,
) -> Clip:
    text = clip["clean_text"]
    prose = Prose(text)
    grounder = Grounder(text, paragraphs, prose)
    summary = prose.line(draft.whole.summary, LONGEST_SUMMARY)
    described: Clip = {
        "mode_used": "llm",
        "output_language": language,
        "summary": summary or None,
        "topics": prose.lines(draft.whole.topics, MOST_TOPICS, LONGEST_TOPIC),
        "entities": grounder.entities(entity for part in draft.parts for entity in part.entities),
        "claims": grounder.claims(claim for part in draft.parts for claim in part.claims),
        "facts": grounder.facts(fact for part in draft.parts for fact in part.facts),
        "quotes": grounder.quotes(quote for part in draft.parts for quote in part.quotes),
        "headings": grounder.headings(heading for part in draft.parts for heading in part.headings),
        "provenance": provenance(
            draft.answers,
            prompt_version=WORDING.fingerprint,
            model=model,
            tokens=("prompt", "completion"),
            parts=len(draft.parts),
        ),
    }
    found = grounder.head(draft.parts[0], head, pasted_at)
    title = found.pop("title", clip["title"])
    described |= {"title": title, "source": {**clip["source"], **found}, "ungrounded": grounder.ungrounded}
    return {**clip, **described, "quality": _quality(clip, draft, grounder, prose, summary)}


def _quality(clip: Clip, draft: _Draft, grounder: Grounder, prose: Prose, summary: str) -> dict[str, Any]:
    numbers = frozenset().union(*numbers_in(clip["clean_text"]))
    warnings = {
        "language_drift": not draft.is_language_right,
        "summary_number_not_in_text": not is_said(numbers_in(summary), numbers),
        "address_left_out": prose.dropped_addresses > 0,
    }
    told = dict.fromkeys(warning for answer in draft.answers for warning in answer.warnings)
    return {
        **clip["quality"],
        "ungrounded": {reason: count for reason, count in sorted(grounder.counts.items()) if count},
        "warnings": [*clip["quality"]["warnings"], *(name for name, is_so in warnings.items() if is_so), *told],
    }
