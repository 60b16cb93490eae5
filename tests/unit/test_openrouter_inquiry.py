"""The questions of a run: what the model is told beside each, and what is kept of its answers and told in results."""

from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import structlog

from openrouter_client.answer_form import AnswerForm
from openrouter_client.asking import Answer
from openrouter_client.inquiry import Inquiry
from openrouter_client.provenance import provenance
from openrouter_client.request import Question
from openrouter_client.usage import Usage


class Said(msgspec.Struct, frozen=True):
    summary: str = ""


def answer(data: dict[str, Any], **fields: Any) -> Answer:
    values: dict[str, Any] = {
        "text": "", "generation_id": "gen-1", "model": "a/b", "provider": "Google", "usage": Usage(100, 10, 3, 7),
        "cost_usd": Decimal("0.001"), "cost_source": "provider", "finish_reason": "stop", "is_reused": False,
        "is_cache_hit": False, "is_possible_duplicate": False, "is_repaired": False,
    }  # fmt: skip
    return Answer(data=data, **(values | fields))


class Model:
    """Says one thing after the other, and keeps what it was told."""

    def __init__(self, *said: str) -> None:
        self.said = list(said)
        self.told: list[dict[str, Any]] = []

    def ask(self, question: Question, job: object, ctx: object, **told: Any) -> Answer:
        self.told.append({"step": question.step, **told})
        return answer({"summary": self.said.pop(0)})


def question(step: str, name: str, lines: list[str], *, is_again: bool) -> Any:
    fields = SimpleNamespace(fields=["summary", "topics"])
    return SimpleNamespace(step=f"{name}:language" if is_again else name, schema=fields)


def inquiry_of(model: Any, **options: Any) -> tuple[Inquiry[Said], list[str]]:
    notes: list[str] = []
    ctx: Any = SimpleNamespace(log=structlog.get_logger(), progress=lambda _, note: notes.append(note))
    tasks = {"part": SimpleNamespace(core="summary")}
    asker: Any = SimpleNamespace(language="nb", tasks=tasks, question=question, again=lambda problems: "once more")
    form = AnswerForm(Said, must_say=frozenset({"summary"}))
    job: Any = SimpleNamespace()
    return Inquiry(model, job, ctx, asker=asker, form=form, **options), notes


def test_a_question_goes_with_its_form_what_asks_again_and_the_jobs_limit() -> None:
    model = Model("Om ost")
    inquiry, _ = inquiry_of(model, max_cost_usd=Decimal("0.05"))

    assert inquiry.ask("part", "part B1-B9", ["B1 Hei"]) == Said("Om ost")

    (told,) = model.told
    assert (told["step"], told["max_cost_usd"], told["reask"](["x"])) == ("part B1-B9", Decimal("0.05"), "once more")
    assert told["check"]({"summary": "Om ost"}) == ["the field 'topics' is missing"]
    assert [told["accepts"](data) for data in ({"summary": "Om ost"}, {"topics": []}, {"summary": " "})] == [
        True, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("said", "is_right", "steps"),
    [
        (["på norsk"], True, ["whole"]),
        (["in English", "på norsk"], True, ["whole", "whole:language"]),
        (["in English", "still not"], False, ["whole", "whole:language"]),
    ],
)
def test_an_answer_in_another_language_is_asked_for_once_more(
    said: list[str], is_right: bool, steps: list[str]
) -> None:
    model = Model(*said)
    inquiry, notes = inquiry_of(model)

    def is_norwegian(one: Said, language: str) -> bool:
        return (language, one.summary) == ("nb", "på norsk")

    assert inquiry.ask_in_language("part", "whole", [], is_norwegian) == (Said(said[-1]), is_right)
    assert [told["step"] for told in model.told] == steps
    assert [one.data["summary"] for one in inquiry.answers] == said, "each was paid for"
    assert notes == ["the answer is not in nb, asking once more"] * (len(steps) - 1)


def test_results_tell_of_all_answers_together() -> None:
    answers = [
        answer({}, is_reused=True),
        answer({}, generation_id=None, model="c/d", provider=None, cost_usd=Decimal("0.0250"), cost_source="estimate"),
        answer({}, generation_id="gen-3"),
    ]
    told = provenance(answers, prompt_version="v1-x", model="a/b:nitro", tokens=("prompt", "cached"), parts=2)

    assert list(told.items()) == [
        ("prompt_version", "v1-x"),
        ("model_requested", "a/b:nitro"),
        ("model_used", "a/b, c/d"),
        ("provider", "Google"),
        ("generation_ids", ["gen-1", "gen-3"]),
        ("parts", 2),
        ("calls", 3),
        ("reused_answers", 1),
        ("tokens", {"prompt": 300, "cached": 21}),
        ("cost_usd", "0.0270"),
        ("cost_source", "provider, estimate"),
    ]
