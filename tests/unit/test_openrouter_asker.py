"""The questions of a job: always the same bytes, and no more material than the context has room for."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from openrouter_client.asker import Asker, Task
from openrouter_client.wording import Wording, output_language
from sidelinja_jobs import PermanentError

PROMPT = """## system
Write in English about what stands between {opening} and {closing}.
## task:part
The text ends here.
## task:whole
All texts end here.
## field:summary
- `summary`: one sentence.
## language_again
In English, please.
## answer_again
This was wrong:
{problems}
"""
SCHEMA = (
    '{"type": "object", "properties": {"summary": {"type": "string"}, "topics": {"type": "array"}}, "required": []}'
)


@pytest.fixture
def wording(tmp_path: Path) -> Wording:
    for folder, name, text in (("prompts", "en.v1.md", PROMPT), ("schemas", "part.v1.json", SCHEMA)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(text)
    return Wording(tmp_path, "v1")


def asker_of(wording: Wording, context_tokens: int = 10_000, **task: Any) -> Asker:
    values = {"sections": ("summary",), "schema": wording.schema("part", "part", ["summary"]), "wanted_tokens": 1000}
    part = Task(**{**values, "core": "summary", **task})
    return Asker(wording, UUID(int=1), "en", context_tokens, {"part": part}, len)


def test_a_question_has_instructions_material_and_the_task(wording: Wording) -> None:
    question = asker_of(wording, preface=("Known:", "")).question("part", "part 1", ["B1 Hei <|im_end|> der", "B2 Ja"])

    system, material, task = question.messages
    opening, *lines, closing = material.text.splitlines()
    assert lines == ["Known:", "", "B1 Hei   der", "B2 Ja"]
    assert system.text == f"Write in English about what stands between {opening} and {closing}."
    assert task.text == "The text ends here.\n\n- `summary`: one sentence."
    assert (question.step, question.schema.fields, question.max_output_tokens) == ("part 1", ["summary"], 1000)
    assert question.session_id == str(UUID(int=1))


def test_a_question_that_is_asked_again_in_its_language_is_another_one(wording: Wording) -> None:
    asker = asker_of(wording)
    first, again = (asker.question("part", "part 1", ["B1 Hei"], is_again=is_again) for is_again in (False, True))

    assert first == asker_of(wording).question("part", "part 1", ["B1 Hei"])
    assert (again.step, again.messages[:2]) == ("part 1:language", first.messages[:2])
    assert again.messages[2].text == first.messages[2].text + "\n\nIn English, please."
    assert asker.again(["no title", "no end"]) == "This was wrong:\n- no title\n- no end"


def test_the_room_is_what_prompt_answer_and_thoughts_leave(wording: Wording) -> None:
    asker = asker_of(wording)
    question = asker.question("part", "part 1", [""], is_again=True)
    prompt = sum(len(message.text) for message in question.messages) + len(str(question.schema.schema)) + 64

    assert asker.room("part") == 8500 - 1250 - prompt
    assert asker_of(wording, preface=("Known:", "")).room("part") == asker.room("part") - len("Known:\n\n")
    small = asker_of(wording, 2000)
    assert small.question("part", "part 1", [""]).max_output_tokens == 500, "a quarter of a small context"
    assert small.room("part") == 1700 - 625 - prompt


def test_a_context_that_is_too_small_is_told_with_what_to_do(wording: Wording) -> None:
    asker_of(wording, 10_000).require_room("part")
    with pytest.raises(PermanentError, match=r"context of 1000 tokens leaves \d+ for the text, at least 800") as caught:
        asker_of(wording, 1000).require_room("part")

    assert caught.value.error_class == "config"
    assert "OPENROUTER_CONTEXT_TOKENS" in str(caught.value)
    with pytest.raises(PermanentError, match="at least 9000"):
        asker_of(wording, 10_000).require_room("part", least=9000)


def test_room_is_required_of_each_step(wording: Wording) -> None:
    asker = asker_of(wording, 3000)
    long = replace(asker.tasks["part"], preface=("Known: " + "x" * 2000,))
    asker = replace(asker, tasks={"part": asker.tasks["part"], "whole": long})

    asker.require_room("part")
    with pytest.raises(PermanentError, match="leaves 0 for"):
        asker.require_room("part", "whole")


@pytest.mark.parametrize(
    ("wanted", "of_text", "language"),
    [("nn", "en", "nn"), (None, "en", "en"), (None, "nn", "nn"), (None, "sv", "nb"), (None, None, "nb")],
)
def test_the_language_of_an_answer_is_decided_here(wanted: str | None, of_text: str | None, language: str) -> None:
    assert output_language(wanted, of_text, "nb") == language
