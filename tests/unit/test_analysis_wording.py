"""Prompts and schemas are whole, in every language, and fit what the code reads."""

import re

import pytest

from openrouter_client.language import detect
from services.openrouter.answers import Answer, checker, has_core, read_answer
from services.openrouter.payload import WANTS, Want
from services.openrouter.wording import OUTPUT_LANGUAGES, STEPS, WORDING, Step, answer_schema, asked

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


def test_what_is_wrong_with_an_answer_is_named_for_the_model() -> None:
    problems = checker("analysis", frozenset({"title", "chapters"}))

    assert problems({"title": "Ost", "title_alternatives": [], "chapters": []}) == []
    assert problems([]) == ["expected an object with the fields title, title_alternatives, chapters"]
    assert problems({"title": " ", "title_alternatives": None}) == [
        "the field 'chapters' is missing",
        "the field 'title' is empty",
        "Expected `array`, got `null` - at `title_alternatives`",
    ]


def test_an_answer_whose_first_text_is_there_is_of_use_and_the_rest_is_left_out() -> None:
    data = {"title": "Ost", "title_alternatives": 5, "chapters": [{"start_block": "B1"}], "more": 1}

    assert has_core("analysis", ALL)(data)
    assert not has_core("analysis", ALL)({"title": "  ", "summary_short": "a"})
    assert read_answer(data) == Answer(title="Ost")
