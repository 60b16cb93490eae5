"""For tests of the analysis: transcripts, any that can be and long real ones, and models that answer about them."""

import functools
import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import structlog
from hypothesis import strategies as st

from openrouter_client.asking import Answer, Check
from openrouter_client.request import Question
from openrouter_client.usage import Usage
from openrouter_client.wording import output_language
from services.openrouter.analysis import Analyst
from services.openrouter.blocks import make_blocks
from services.openrouter.languages import spoken_language
from services.openrouter.payload import AnalyzePayload
from services.openrouter.questions import make_asker
from services.openrouter.result import build_result, check_draft
from services.openrouter.transcript import Segment, Transcript

BLOCK = re.compile(r"^(B\d+) ", re.MULTILINE)
IN_BOKMAAL = "Denne episoden handler om været i nord og hva det gjør med menneskene som bor der hele året."
WORDS_PER_HOUR = 11_667  # 35,000 in three hours, an episode of lively talk
WORDS_PER_SECOND = WORDS_PER_HOUR / 3600

TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00[]"), min_size=1, max_size=120)

FISH = Transcript(
    [
        Segment("Velkommen til Fiskeprat, jeg heter Kari Nordmann og dette er episode tolv.", 0.0, 30.0, "Kari"),
        Segment("I dag snakker vi med Ola Hansen om hvordan torsken har det i fjorden.", 30.0, 62.0, "Kari"),
        Segment("Takk, det er hyggelig å være her, og torsken har det ikke så bra.", 62.0, 95.0, "Ola"),
        Segment("Det må vi snakke om, for dette er viktig for hele kysten vår.", 95.0, 130.0, "Kari"),
    ],
    duration=135.5,
    language="no",
)
GOOD: dict[str, Any] = {
    "title": "Torsken i fjorden",
    "summary_short": "Kari Nordmann snakker med Ola Hansen om hvordan torsken har det i fjorden.",
    "summary_long": "Ola Hansen forteller at torsken ikke har det så bra. De snakker om hva det betyr for hele kysten.",
    "keywords": ["torsk", "fjord"],
    "topics": ["fiske"],
    "chapters": [{"start_block": "B1", "title": "Velkommen"}, {"start_block": "B3", "title": "Torsken"}],
    "people": [{"name": "Ola Hansen", "role": "fisker", "is_guest": True, "blocks": ["B2"]}],
    "quotes": [
        {"block": "B3", "text": "torsken har det ikke så bra"},
        {"block": "B1", "text": "Torsken er død, alt er forbi og slutt."},
    ],
}  # fmt: skip


@st.composite
def transcripts(draw: st.DrawFn, text: st.SearchStrategy[str] = TEXT) -> Transcript:
    """Sorted segments of any text, some at the same time, some with speakers; now and then without times."""
    has_times = draw(st.booleans())
    segments, at = [], 0.0
    for words in draw(st.lists(text.map(str.strip).filter(bool), min_size=1, max_size=30)):
        at += draw(st.floats(0, 40, allow_subnormal=False)) if has_times else 0
        end = at + draw(st.floats(0.1, 90)) if has_times else None
        segments.append(Segment(words, at if has_times else None, end, draw(st.sampled_from([None, "Kari", "Ola"]))))
    return Transcript(segments, duration=at + draw(st.floats(0, 100)) if has_times else None)


@functools.cache
def episode(samples: Path, name: str, *, hours: float) -> Transcript:
    """An episode read from a sample text, a sentence to a segment, at the pace of speech."""
    return Transcript(sentences(samples, name, hours=hours), language="no")


def sentences(samples: Path, name: str, *, hours: float) -> list[Segment]:
    segments: list[Segment] = []
    at, words = 0.0, 0
    lines = (samples / "text" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    while words < hours * WORDS_PER_HOUR:
        for line in lines:
            count = len(line.split())
            if not count or words >= hours * WORDS_PER_HOUR:
                continue
            end = at + count / WORDS_PER_SECOND
            segments.append(Segment(line.strip(), round(at, 2), round(end, 2)))
            at, words = end, words + count
    return segments


ANSWER = Answer(
    data={}, text="", generation_id=None, model="test/model", provider="Test", usage=Usage(100, 10),
    cost_usd=Decimal("0.001"), cost_source="provider", finish_reason="stop", is_reused=False, is_cache_hit=False,
    is_possible_duplicate=False, is_repaired=False,
)  # fmt: skip


class Scripted:
    """A model that says what a function says, held to a question's form as the real one is, on paper.

    `answer` are other fields of its answers.
    """

    is_usable, metrics = True, None

    def __init__(
        self, say: Callable[[Question], dict[str, Any]], *, context_tokens: int = 1_000_000, **answer: Any
    ) -> None:
        self._say, self.context_tokens, self._answer = say, context_tokens, answer
        self.questions: list[Question] = []

    def ask(self, question: Question, job: object, ctx: object, *, check: Check, **_: Any) -> Answer:
        self.questions.append(question)
        data = self._say(question)
        problems = check(data)
        assert not problems, problems
        return replace(ANSWER, data=data, generation_id=f"gen-{len(self.questions)}", **self._answer)


class Silent:
    """A context that only remembers what was reported."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.log = structlog.get_logger()

    def progress(self, fraction: float | None, note: str | None = None) -> None:
        if note:
            self.notes.append(note)


def analysed(
    model: Scripted, transcript: Transcript, *, single_tokens: int = 100_000, **payload: Any
) -> tuple[dict[str, Any], list[str]]:
    """The result for a transcript, by the same steps as the handler's, and the progress notes."""
    read = AnalyzePayload(text="a", **payload)
    job: Any = SimpleNamespace(id=UUID(int=7), payload=read)
    ctx: Any = Silent()
    spoken = spoken_language(transcript)
    language = output_language(None if read.output_language == "auto" else read.output_language, spoken.language, "nb")
    blocks = make_blocks(transcript)
    asker = make_asker(job.id, language, frozenset(read.wants), read.hints, model.context_tokens)
    told: Any = model
    draft = Analyst(told, job, ctx, asker, transcript, blocks, single_tokens=single_tokens).draft()
    checked = check_draft(draft, blocks, transcript, read)
    return build_result(read, transcript, spoken, language, draft, checked, model="test/model"), ctx.notes


def empty_answer(question: Question, **fields: Any) -> dict[str, Any]:
    """An answer of the question's form: `fields` where they are asked for, else a word or nothing."""
    properties = question.schema.schema["properties"]
    blank = {name: "Om ost" if part["type"] == "string" else [] for name, part in properties.items()}
    return blank | {name: value for name, value in fields.items() if name in properties}


def material(question: Question) -> str:
    """What stands in the fence."""
    return question.messages[1].text


def good(question: Question) -> dict[str, Any]:
    """A good answer about the fish."""
    return empty_answer(question, **GOOD)


def sensible(question: Question) -> dict[str, Any]:
    """The first and the middle block as chapters, a quote from the first: every part has something to keep."""
    text = material(question)
    ids = BLOCK.findall(text) or re.findall(r"^  (B\d+): ", text, re.MULTILINE)
    first = next((line for line in text.splitlines() if line.startswith(f"{ids[0]} ")), "") if ids else ""
    chapters = [{"start_block": name, "title": f"Om {name}"} for name in (ids[:1] + ids[len(ids) // 2 :][:1])]
    quotes = [{"block": ids[0], "text": first.partition(" ")[2][:60]}] if first else []
    return empty_answer(question, summary_short=IN_BOKMAAL, summary_long=IN_BOKMAAL, chapters=chapters, quotes=quotes)
