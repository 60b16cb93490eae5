"""A clip that is too long for one question: its parts are asked about, halved where need be, and put together."""

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from openrouter_client.outcomes import TooLongError
from openrouter_client.request import Question
from services.research import enrichment
from services.research.clip import make_clip
from services.research.enrichment import ModelEnricher
from services.research.paste import Clip, Paste
from services.research.payload import ClipPayload
from sidelinja_jobs import PauseJobTypeError, PermanentError
from tests.unit.analysis_support import Scripted, Silent, empty_answer, material

SUMMARY = "Teksten handler om en båt som gikk på grunn, og om hva rederiet og kommunen mener at de må gjøre nå."
ENGLISH = "The text is about a boat that ran aground, and about what the company thinks that they must do now."
LINES = [f"Avsnitt nummer {n} sier at det skal bli nye båter langs hele kysten av landet." for n in range(120)]
CLIP = make_clip(Paste("\n\n".join(LINES)))


def sensible(question: Question) -> dict[str, Any]:
    """A quote and a heading from the first paragraph of what is asked about."""
    name, _, words = material(question).splitlines()[1].partition(" ")
    row = {"paragraph": name, "quote": words}
    heading = {"paragraph": name, "title": f"Om {name}"}
    return empty_answer(question, summary=SUMMARY, topics=["båt"], quotes=[row], headings=[heading]) | {
        name: None for name in question.schema.fields if name in ("title", "author", "published")
    }


def described(model: Any, clip: Clip = CLIP, **payload: Any) -> Clip:
    job: Any = SimpleNamespace(id=UUID(int=7), payload=ClipPayload(text="x", **payload))
    ctx: Any = Silent()
    return ModelEnricher(model, "a/model").enrich(clip, job, ctx)


def steps(model: Scripted) -> list[str]:
    return [question.step for question in model.questions]


def assert_all_was_asked_about(model: Scripted) -> None:
    asked = [line for question in model.questions for line in material(question).splitlines() if line[:1] == "P"]
    assert [line.partition(" ")[2] for line in asked] == LINES


def test_a_short_clip_is_one_question() -> None:
    model = Scripted(sensible)

    clip = described(model)

    assert steps(model) == ["clip"]
    assert_all_was_asked_about(model)
    assert (clip["summary"], clip["topics"], clip["provenance"]["parts"]) == (SUMMARY, ["båt"], 1)
    assert [quote["quote"] for quote in clip["quotes"]] == LINES[:1]


def test_a_long_one_is_asked_in_parts_that_are_all_of_it_and_then_about_the_whole() -> None:
    model = Scripted(sensible, context_tokens=7000)

    clip = described(model)

    assert steps(model)[-1] == "whole"
    assert len(model.questions) == clip["provenance"]["parts"] + 1 > 3
    assert_all_was_asked_about(model)
    assert material(model.questions[-1]).splitlines()[1:-1] == [f"- {SUMMARY} (båt)"] * clip["provenance"]["parts"]
    assert len(clip["quotes"]) == len(clip["headings"]) == clip["provenance"]["parts"]


def test_what_does_not_fit_after_all_is_halved_and_one_paragraph_alone_is_not() -> None:
    def narrow(question: Question) -> dict[str, Any]:
        if len(material(question)) > 3000:
            raise TooLongError("400: context_length_exceeded")
        return sensible(question)

    model = Scripted(narrow)
    clip = described(model)

    assert clip["provenance"]["parts"] == 4
    assert [quote["quote"] for quote in clip["quotes"]] == [LINES[0], LINES[30], LINES[60], LINES[90]]
    with pytest.raises(TooLongError):
        described(Scripted(narrow), make_clip(Paste("ord " * 1000)))


def test_notes_that_no_two_of_fit_are_not_put_together_for_ever() -> None:
    note = {"summary": SUMMARY + "🧀" * 500, "topics": ["🧀" * 60] * 8}
    model = Scripted(lambda question: sensible(question) | note, context_tokens=7000)

    with pytest.raises(PermanentError, match="cannot hold the notes on two parts") as caught:
        described(model)

    assert caught.value.error_class == "config"


def test_a_context_that_is_too_small_is_told_before_anything_is_asked() -> None:
    model = Scripted(sensible, context_tokens=2048)

    with pytest.raises(PermanentError, match="2048 tokens"):
        described(model)
    assert model.questions == []


@pytest.mark.parametrize(
    ("answer", "warnings"),
    [
        ({}, []),
        ({"summary": ENGLISH}, ["language_drift"]),
        ({"claims": [{"text": ENGLISH * 3, "paragraph": "P1", "quote": LINES[0]}]}, ["language_drift"]),
        (
            {"summary": ENGLISH, "claims": [{"text": SUMMARY, "paragraph": "P1", "quote": LINES[0]}] * 30},
            ["language_drift"],
        ),
        ({"summary": f"{SUMMARY} Det har kostet 731 kroner."}, ["summary_number_not_in_text"]),
        ({"summary": f"{SUMMARY} Les mer på evil[.]com."}, ["address_left_out"]),
    ],
)
def test_what_a_reader_should_know_is_a_warning(answer: dict[str, Any], warnings: list[str]) -> None:
    clip = described(Scripted(lambda question: sensible(question) | answer))

    assert clip["quality"]["warnings"] == warnings


@pytest.mark.parametrize(("error_class", "rests"), [("auth", True), ("credits", True), ("budget_exceeded", False)])
def test_a_refused_key_and_spent_credit_rest_the_model_and_a_spent_day_does_not(
    monkeypatch: pytest.MonkeyPatch, error_class: str, rests: bool
) -> None:
    def refused(question: Question) -> dict[str, Any]:
        raise PauseJobTypeError("no", until=None, error_class=error_class)  # type: ignore[arg-type]

    now = [1000.0]
    monkeypatch.setattr(enrichment.time, "monotonic", lambda: now[0])
    model: Any = Scripted(refused)
    enricher = ModelEnricher(model, "a/model")
    job: Any = SimpleNamespace(id=UUID(int=7), payload=ClipPayload(text="x"))
    ctx: Any = Silent()
    with pytest.raises(PauseJobTypeError):
        enricher.enrich(CLIP, job, ctx)

    assert enricher.problem == (error_class if rests else None)
    now[0] += enrichment.REST_SECONDS + 1
    assert enricher.problem is None
