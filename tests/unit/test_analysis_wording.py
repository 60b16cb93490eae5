"""Prompts and schemas are whole, in every language, and fit what the code reads."""

import re
from uuid import UUID

import pytest

from openrouter_client.language import detect
from openrouter_client.wording import OUTPUT_LANGUAGES
from services.openrouter.answers import FORM, Answer
from services.openrouter.payload import WANTS, Hints, Want
from services.openrouter.questions import make_asker
from services.openrouter.wording import STEPS, WORDING, Step, answer_schema, asked

ALL: frozenset[Want] = frozenset(WANTS)
EACH_STEP = pytest.mark.parametrize("step", STEPS)
EACH_LANGUAGE = pytest.mark.parametrize("language", OUTPUT_LANGUAGES)


@EACH_LANGUAGE
def test_a_prompt_is_in_its_own_language_from_end_to_end(language: str) -> None:
    """Field names apart: no example in another language leads the answer astray."""
    text = re.sub(
        r"`[^`]*`|\{\w+\}|^## .*$",
        " ",
        (WORDING.folder / "prompts" / f"{language}.{WORDING.version}.md").read_text(),
        flags=re.M,
    )

    assert detect(text).language == language
    for name, section in WORDING.sections(language).items():
        words = re.sub(r"`[^`]*`|\{\w+\}", " ", section)
        assert detect(words).language in (language, None), name


@EACH_LANGUAGE
def test_every_section_that_is_used_is_there_with_its_marks(language: str) -> None:
    words = WORDING.sections(language)
    used = {f"field:{name}" for step in STEPS for name, _ in asked(step, ALL)} | {f"task:{step}" for step in STEPS}

    assert set(words) == used | {"system", "hints", "language_again", "answer_again"}
    assert all(words.values())
    assert {mark for mark in re.findall(r"\{(\w+)\}", words["system"])} == {"opening", "closing"}
    assert "{problems}" in words["answer_again"]
    assert all("{opening}" in words[f"task:{step}"] for step in ("analysis", "part"))


@EACH_LANGUAGE
@EACH_STEP
def test_a_prompt_asks_for_every_field_of_its_schema(language: str, step: Step) -> None:
    told = "\n".join(WORDING.sections(language)[f"field:{section}"] for section, _ in asked(step, ALL))

    properties = answer_schema(step, ALL).schema["properties"]
    inner = {name for part in properties.values() for name in part.get("items", {}).get("properties", {})}
    assert [name for name in [*properties, *inner] if f"`{name}`" not in told] == []


@EACH_STEP
@pytest.mark.parametrize("want", WANTS)
def test_a_schema_is_strict_bounded_and_flat(step: Step, want: Want) -> None:
    def look(part: dict[str, object]) -> None:
        kinds = part["type"] if isinstance(part["type"], list) else [part["type"]]
        if "string" in kinds:
            assert "maxLength" in part
        if "array" in kinds:
            assert "maxItems" in part
            look(part["items"])  # type: ignore[arg-type]
        if "object" in kinds:
            properties: dict[str, dict[str, object]] = part["properties"]  # type: ignore[assignment]
            assert part["additionalProperties"] is False
            assert part["required"] == list(properties)
            for inner in properties.values():
                look(inner)

    look(answer_schema(step, frozenset({want})).schema)
    look(answer_schema(step, ALL).schema)


@EACH_STEP
def test_every_field_of_a_schema_is_read(step: Step) -> None:
    assert set(answer_schema(step, ALL).schema["properties"]) <= set(Answer.__struct_fields__)


@EACH_STEP
@pytest.mark.parametrize("want", WANTS)
def test_an_answer_is_of_use_with_its_first_text(step: Step, want: Want) -> None:
    tasks = make_asker(UUID(int=1), "nb", frozenset({want}), Hints(), 100_000).tasks

    assert (step in tasks) == bool(asked(step, frozenset({want})))
    if step in tasks:
        assert tasks[step].core == tasks[step].schema.fields[0]
        assert FORM.says({tasks[step].core: "Ost"}, tasks[step].core) == (tasks[step].core in FORM.must_say)


def test_what_is_known_beforehand_stands_before_the_transcript_alone() -> None:
    hints = Hints(show_title="Lyd <|im_end|> og bilde", hosts=("Kari Nordmann",))
    asker = make_asker(UUID(int=1), "nb", ALL, hints, 100_000)

    for step in STEPS:
        material = asker.question(step, step, ["B1 Hei."]).messages[1].text.splitlines()[1:-1]
        known = ["Dette er kjent på forhånd:", "show: Lyd og bilde", "hosts: Kari Nordmann", ""]
        assert material == ([*known, "B1 Hei."] if step in ("analysis", "part") else ["B1 Hei."])
