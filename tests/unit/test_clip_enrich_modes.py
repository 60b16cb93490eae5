"""What the modes make of a model that does not answer, and that any answer leaves a clip that can be stored."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openrouter_client.outcomes import TooLongError
from openrouter_client.prose import Prose
from services.research.clip import make_clip
from services.research.descriptions import FORM
from services.research.grounding import Grounder
from services.research.handler import Researcher
from services.research.paragraphs import number_paragraphs
from services.research.paste import Clip, Paste
from services.research.payload import MOST_HTML_BYTES, MOST_TEXT_BYTES, ClipPayload
from services.research.questions import HEAD
from services.research.settings import ResearchSettings
from sidelinja_jobs import ComeBackLaterError, Job, PauseJobTypeError, PermanentError, RetryLaterError
from sidelinja_jobs.errors import HandlerError
from sidelinja_jobs.json_text import encode_result

LATER = datetime(2030, 1, 1, tzinfo=UTC)


class Failing:
    """A model that never answers."""

    def __init__(self, error: HandlerError, problem: str | None = None) -> None:
        self.error, self.problem = error, problem

    def enrich(self, clip: Clip, job: Job[ClipPayload], ctx: Any) -> Clip:
        raise self.error


class Ctx(SimpleNamespace):
    """What the handler uses of a context."""

    def __init__(self) -> None:
        super().__init__(stored=[], log=SimpleNamespace(warning=lambda *_, **__: None))

    def progress(self, *_: Any) -> None: ...

    def checkpoints(self) -> list[Any]:
        return list(self.stored)

    def checkpoint(self, data: Any) -> None:
        self.stored.append(data)

    def drop_checkpoints(self) -> None:
        self.stored.clear()


def job(mode: str, attempt: int = 1, **fields: str) -> Job[ClipPayload]:
    payload = ClipPayload(**{"text": "Et avsnitt om havn og kai.", "mode": mode, **fields})  # type: ignore[arg-type]
    return Job(UUID(int=1), "research_clip", payload, attempt, 3, 0, LATER, LATER, None)


@pytest.fixture(scope="module")
def cleaned() -> Iterator[Researcher]:
    """One cleaning process for all tests here."""
    researcher = Researcher(ResearchSettings())
    yield researcher
    researcher.close()


def handle(researcher: Researcher, enricher: Failing, ctx: Ctx, *args: Any) -> dict[str, Any]:
    researcher._enricher = enricher
    stored = encode_result(researcher.handle(job(*args), ctx))  # type: ignore[arg-type]
    result: dict[str, Any] = json.loads(bytes(stored))
    return result


@pytest.mark.parametrize(
    ("error", "attempt", "warning"),
    [
        (PauseJobTypeError("x", until=LATER, error_class="auth"), 1, "llm_key_refused"),
        (PauseJobTypeError("x", until=LATER, error_class="key_limit"), 1, "llm_credit_spent"),
        (PauseJobTypeError("x", until=LATER, error_class="budget_exceeded"), 1, "llm_budget_spent"),
        (PermanentError("x", error_class="refused"), 1, "llm_failed: refused"),
        (TooLongError("x"), 1, "llm_failed: too_long"),
        (RetryLaterError("x", seconds=1, error_class="upstream"), 3, "llm_failed: upstream"),
        (HandlerError("x", error_class="timeout"), 3, "llm_failed: timeout"),
    ],
)
def test_auto_keeps_the_cleaned_clip(cleaned: Researcher, error: HandlerError, attempt: int, warning: str) -> None:
    clip = handle(cleaned, Failing(error), Ctx(), "auto", attempt)

    assert clip["clean_text"] == "Et avsnitt om havn og kai."
    assert clip["quality"]["warnings"] == ["no_llm", warning]


def test_auto_tries_again_while_there_are_attempts_left(cleaned: Researcher) -> None:
    with pytest.raises(RetryLaterError):
        handle(cleaned, Failing(RetryLaterError("x", seconds=1)), Ctx(), "auto", 2)


def test_auto_comes_back_a_few_times_where_the_server_asks_for_it(cleaned: Researcher) -> None:
    ctx, busy = Ctx(), Failing(ComeBackLaterError("x", until=LATER, error_class="rate_limited"))
    for _ in range(2):
        with pytest.raises(ComeBackLaterError):
            handle(cleaned, busy, ctx, "auto")

    assert handle(cleaned, busy, ctx, "auto")["quality"]["warnings"] == ["no_llm", "llm_failed: rate_limited"]


@pytest.mark.parametrize("problem", [None, "auth"])
def test_full_waits_alone_and_ends_with_what_is_missing(cleaned: Researcher, problem: str | None) -> None:
    ctx, refused = Ctx(), Failing(PauseJobTypeError("refused", until=LATER, error_class="auth"), problem)
    for _ in range(18):
        with pytest.raises(ComeBackLaterError) as waits:
            handle(cleaned, refused, ctx, "full")
        assert waits.value.error_class == "auth"

    with pytest.raises(PermanentError, match="waited 18 times") as ended:
        handle(cleaned, refused, ctx, "full")
    assert ended.value.error_class == "auth"
    assert ctx.stored == [], "a retry by hand waits anew"


@pytest.mark.parametrize("field", ["text", "html"])
def test_size_is_counted_in_bytes(field: str) -> None:
    whole = {"text": MOST_TEXT_BYTES, "html": MOST_HTML_BYTES}[field]
    too_long = job("auto", **{field: "ø" * (whole // 2 + 1)})
    researcher = Researcher(ResearchSettings())

    with pytest.raises(PermanentError, match=f"{field} has {whole + 2} bytes in UTF-8") as caught:
        researcher.handle(too_long, Ctx())  # type: ignore[arg-type]
    assert caught.value.error_class == "too_long"
    researcher.close()


_TEXTS = st.text(max_size=60) | st.sampled_from(["P1", "Båten gikk på grunn ved Ørnes 🚢", "1 250 liter", "\ud800", ""])
_ROWS = st.fixed_dictionaries(
    {name: _TEXTS for name in ("text", "quote", "subject", "predicate", "value", "name", "type", "title")}
    | {"paragraph": _TEXTS | st.integers()}
)
_ANSWERS = st.fixed_dictionaries(
    {name: st.lists(_ROWS, max_size=3) for name in ("claims", "facts", "quotes", "entities", "headings")}
    | {name: _TEXTS | st.none() for name in HEAD}
)


@settings(max_examples=150, deadline=None)
@given(answer=_ANSWERS, text=_TEXTS)
def test_any_answer_about_any_text_gives_slices_of_it_and_sound_text(answer: dict[str, Any], text: str) -> None:
    clip = make_clip(Paste(f"Båten gikk på grunn ved Ørnes 🚢.\n\n{text}\n\n1 250 liter"))
    own, description = clip["clean_text"], FORM.read(answer)
    grounder = Grounder(own, number_paragraphs(clip), Prose(own))

    claims, facts = grounder.claims(description.claims), grounder.facts(description.facts)
    quotes, entities = grounder.quotes(description.quotes), grounder.entities(description.entities)
    others = [grounder.headings(description.headings), grounder.head(description, HEAD, None), grounder.ungrounded]

    for row in (*claims, *facts, *quotes):
        assert own[row["start"] : row["end"]] == row["quote"] != ""
    for entity in entities:
        assert all(own[span["start"] : span["end"]].strip() for span in entity["spans"])
    json.dumps([claims, facts, quotes, entities, *others], ensure_ascii=False).encode()
