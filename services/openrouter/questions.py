"""What a model is asked about a transcript: the known names before it, and how long the answer may be."""

from uuid import UUID

from openrouter_client.asker import Asker, Task
from openrouter_client.fence import without_template_tokens
from services.openrouter.payload import Hints, Want
from services.openrouter.plan import token_bound
from services.openrouter.wording import STEPS, WORDING, Step, answer_schema, asked

ANSWER_TOKENS: dict[Step, int] = {"analysis": 6000, "part": 2000, "condense": 1200, "whole": 4000}


def make_asker(job_id: UUID, language: str, wants: frozenset[Want], hints: Hints, context_tokens: int) -> Asker:
    """The questions of a job: those of its steps that ask for anything."""
    known = tuple(_hint_lines(hints))
    preface = (WORDING.sections(language)["hints"], *known, "") if known else ()
    tasks: dict[str, Task] = {step: _task(step, wants, preface) for step in STEPS if asked(step, wants)}
    return Asker(WORDING, job_id, language, context_tokens, tasks, token_bound)


def _task(step: Step, wants: frozenset[Want], preface: tuple[str, ...]) -> Task:
    parts = asked(step, wants)
    sections = tuple(section for section, _ in parts)
    core = parts[0][1][0]  # the first text
    is_of_transcript = step in ("analysis", "part")
    return Task(sections, answer_schema(step, wants), ANSWER_TOKENS[step], core, preface if is_of_transcript else ())


def _hint_lines(hints: Hints) -> list[str]:
    lines = [
        ("show", hints.show_title),
        ("hosts", ", ".join(hints.hosts)),
        ("guests", ", ".join(hints.guests)),
        ("published", hints.published),
    ]
    return [f"{name}: {' '.join(without_template_tokens(value).split())}" for name, value in lines if value]
