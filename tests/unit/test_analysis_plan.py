"""Three hours of Norwegian: one call where the context allows, parts that cover everything where it does not."""

from pathlib import Path
from typing import Any

import pytest

from openrouter_client.outcomes import TooLongError, TruncatedError
from openrouter_client.request import Question
from services.openrouter.blocks import block_line, make_blocks
from services.openrouter.transcript import Transcript
from sidelinja_jobs import PermanentError
from tests.unit.analysis_support import BLOCK, IN_BOKMAAL, Scripted, analysed, empty_answer, episode, material, sensible

IN_ENGLISH = "This episode is about the weather in the north and what it does to the people who live there."
IN_NYNORSK = "Denne episoden handlar om vêret i nord og kva det gjer med menneska som bur der heile året."


def parts_of(model: Scripted) -> list[Question]:
    return [question for question in model.questions if question.step.startswith("part ")]


def assert_everything_was_asked_about(model: Scripted, transcript: Transcript) -> None:
    lines = [block_line(transcript, block) for block in make_blocks(transcript)]
    asked = [line for question in parts_of(model) for line in material(question).splitlines() if BLOCK.match(line)]
    assert list(dict.fromkeys(asked)) == lines
    assert len(asked) - len(lines) < len(parts_of(model)), "more than one block of overlap"


def test_three_hours_are_one_call_where_the_context_allows(samples: Path) -> None:
    transcript = episode(samples, "nb", hours=3)
    model = Scripted(sensible, context_tokens=1_048_576)

    result, _ = analysed(model, transcript)

    assert [question.step for question in model.questions] == ["analysis"]
    assert result["provenance"]["plan"] == "single"
    lines = [line for line in material(model.questions[0]).splitlines() if BLOCK.match(line)]
    assert lines == [block_line(transcript, block) for block in make_blocks(transcript)]


@pytest.mark.parametrize("context_tokens", [8192, 16_384, 32_768])
def test_three_hours_are_parts_that_cover_everything_where_it_does_not(samples: Path, context_tokens: int) -> None:
    transcript = episode(samples, "nb", hours=3)
    model = Scripted(sensible, context_tokens=context_tokens)

    result, notes = analysed(model, transcript)

    assert result["provenance"]["plan"] == "map_reduce"
    assert len(parts_of(model)) > 2
    assert_everything_was_asked_about(model, transcript)
    assert model.questions[-1].step == "whole"
    assert len(result["chapters"]) >= 2
    assert result["quality"]["grounded_quotes"] == min(8, len(parts_of(model))), "each part has its turn"
    assert {quote["start_s"] // 3600 for quote in result["quotes"]} == {0, 1, 2}
    assert f"asking about part 2 of {len(parts_of(model))}" in notes
    for question in model.questions:
        letters = sum(len(message.text) for message in question.messages)
        assert letters / 2.5 + question.max_output_tokens <= context_tokens


def test_a_transcript_over_the_limit_of_one_call_is_asked_in_parts_all_the_same(samples: Path) -> None:
    model = Scripted(sensible)

    result, _ = analysed(model, episode(samples, "nb", hours=3), single_tokens=20_000)

    assert result["provenance"]["plan"] == "map_reduce"


@pytest.mark.parametrize("error", [TooLongError("400: context_length_exceeded"), TruncatedError("cut off")])
def test_what_does_not_fit_after_all_is_asked_in_smaller_parts(samples: Path, error: PermanentError) -> None:
    transcript = episode(samples, "nb", hours=0.5)

    def narrow(question: Question) -> dict[str, Any]:
        if len(BLOCK.findall(material(question))) > 20:
            raise error
        return sensible(question)

    model = Scripted(narrow)
    result, _ = analysed(model, transcript)

    assert result["provenance"]["plan"] == "map_reduce"
    assert result["quality"]["truncated"] is True
    answered = [question for question in parts_of(model) if len(BLOCK.findall(material(question))) <= 20]
    asked = {name for question in answered for name in BLOCK.findall(material(question))}
    assert asked == {block.id for block in make_blocks(transcript)}


def test_what_never_fits_ends_with_the_error(samples: Path) -> None:
    def never(question: Question) -> dict[str, Any]:
        raise TooLongError("too long")

    with pytest.raises(TooLongError):
        analysed(Scripted(never), episode(samples, "nb", hours=0.1))


def test_a_tiny_context_is_refused_before_anything_is_asked(samples: Path) -> None:
    model = Scripted(sensible, context_tokens=2048)

    with pytest.raises(PermanentError, match="2048 tokens") as caught:
        analysed(model, episode(samples, "nb", hours=1))

    assert caught.value.error_class == "config"
    assert model.questions == []


def test_notes_that_no_two_of_fit_are_not_put_together_for_ever(samples: Path) -> None:
    """Letters of four bytes are more tokens than the words that the least room is counted in."""
    chapters = [{"start_block": "B1", "title": "🧀" * 80}] * 12
    note = {"summary": "🧀" * 500, "topics": ["🧀" * 60] * 6, "chapters": chapters}
    model = Scripted(lambda question: empty_answer(question, **note), context_tokens=5200)

    with pytest.raises(PermanentError, match="cannot hold the notes on two parts") as caught:
        analysed(model, episode(samples, "nb", hours=1))

    assert caught.value.error_class == "config"


def test_a_context_too_small_for_notes_is_refused_only_where_notes_are_needed(samples: Path) -> None:
    transcript = episode(samples, "nb", hours=1)
    with pytest.raises(PermanentError, match="at least 1700 are needed"):
        analysed(Scripted(sensible, context_tokens=4800), transcript)

    result, _ = analysed(Scripted(sensible, context_tokens=4800), transcript, wants=("quotes",))
    assert len(result["quotes"]) == 8


@pytest.mark.parametrize(("name", "right", "wrong"), [("nb", IN_BOKMAAL, IN_NYNORSK), ("nn", IN_NYNORSK, IN_BOKMAAL)])
@pytest.mark.parametrize("context_tokens", [1_000_000, 8192])
def test_an_answer_that_drifts_is_asked_for_once_more(
    samples: Path, name: str, right: str, wrong: str, context_tokens: int
) -> None:
    transcript = episode(samples, name, hours=0.7)
    drifts = iter([IN_ENGLISH, right])

    def say(question: Question) -> dict[str, Any]:
        is_last = "summary_long" in question.schema.schema["properties"]
        return empty_answer(question, summary_long=next(drifts) if is_last else wrong)

    model = Scripted(say, context_tokens=context_tokens)
    result, _ = analysed(model, transcript)

    again = model.questions[-1]
    assert again.step in ("analysis:language", "whole:language")
    assert len([question for question in model.questions if question.step.endswith(":language")]) == 1
    assert (result["language"], result["summary_long"]) == (name, right)
    assert result["quality"]["language_ok"] is True
    assert "language_drift" not in result["quality"]["warnings"]
    assert {"nb": "ikke var på bokmål", "nn": "ikkje var på nynorsk"}[name].split()[-1] in again.messages[-1].text


@pytest.mark.parametrize(("name", "wrong"), [("nb", IN_ENGLISH), ("nb", IN_NYNORSK), ("nn", IN_BOKMAAL)])
def test_an_answer_that_stays_in_another_language_is_taken_with_a_warning(samples: Path, name: str, wrong: str) -> None:
    model = Scripted(lambda question: empty_answer(question, summary_long=wrong))

    result, _ = analysed(model, episode(samples, name, hours=0.2))

    assert [question.step for question in model.questions] == ["analysis", "analysis:language"]
    assert (result["language"], result["summary_long"]) == (name, wrong)
    assert result["quality"]["language_ok"] is False
    assert "language_drift" in result["quality"]["warnings"]


def test_without_summaries_the_titles_tell_the_language(samples: Path) -> None:
    titles = {"title": IN_ENGLISH[:60], "title_alternatives": [IN_ENGLISH[60:]]}
    model = Scripted(lambda question: empty_answer(question, **titles))

    result, _ = analysed(model, episode(samples, "nb", hours=0.2), wants=("title",))

    assert [question.step for question in model.questions] == ["analysis", "analysis:language"]
    assert result["quality"]["warnings"] == ["language_drift"]


def test_the_same_job_asks_the_same_bytes(samples: Path) -> None:
    transcript = episode(samples, "nb", hours=0.7)
    first, second = Scripted(sensible, context_tokens=8192), Scripted(sensible, context_tokens=8192)

    analysed(first, transcript)
    analysed(second, transcript)

    assert [(q.step, q.messages) for q in first.questions] == [(q.step, q.messages) for q in second.questions]
    assert len({question.step for question in first.questions}) == len(first.questions)
