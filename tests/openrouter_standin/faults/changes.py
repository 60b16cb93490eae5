"""Failures inside a 200: the answer that comes is not the one that should."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tests.openrouter_standin.answers import Answer
from tests.openrouter_standin.failures import failure
from tests.openrouter_standin.fault import Fault

MEGABYTE = 1_000_000


def only_an_error(
    code: Any = 429, message: str = "Rate limit exceeded", *, is_event: bool = False, **more: Any
) -> Fault:
    """Shape a: the body is nothing but the error."""
    return Fault("200 with an error alone", 200, failure(code, message, **more), is_event=is_event)


def all_null(code: Any = 429, message: str = "Provider returned error", **more: Any) -> Fault:
    """Shape b: every field of a completion, all null, beside the error."""
    nulls = dict.fromkeys(("id", "object", "created", "model", "choices", "usage", "system_fingerprint"))
    return Fault("200 with nulls and an error", 200, nulls | failure(code, message, **more))


def died_halfway(code: Any = 502, message: str = "The provider disconnected", *, stream_code: Any = None) -> Fault:
    """Shape c: half an answer, finish_reason `error`, no usage."""

    def change(answer: Answer) -> Answer:
        half = str(answer.content)[: max(1, len(str(answer.content)) // 2)]
        error = {"code": code, "message": message}
        return replace(
            answer, content=half, finish_reason="error", usage=None, error=error, error_code_in_stream=stream_code
        )

    return Fault("200 that died halfway", change=change, hits_first_model=True)


def no_choices(choices: str = "none") -> Fault:
    """Shape d: no choice at all."""
    return changed("200 without choices", choices=choices, content="", finish_reason=None)


def content(value: Any, *, finish_reason: str | None = "stop", **more: Any) -> Fault:
    """The answer says this instead."""
    return changed("other content", content=value, finish_reason=finish_reason, **more)


def empty(value: Any = "", finish_reason: str | None = "stop") -> Fault:
    return changed("empty content", content=value, finish_reason=finish_reason)


def only_reasoning(tokens: int = 500) -> Fault:
    """Reasoning ate the whole budget."""
    return changed("reasoning alone", content="", reasoning="tenk " * tokens, finish_reason="length")


def refuses(text: str = "I'm sorry, I can't help with that.") -> Fault:
    return changed("refusal", content=None, refusal=text, finish_reason="stop")


def content_filter() -> Fault:
    return changed("content filter", content="", finish_reason="content_filter", native_finish_reason="SAFETY")


def cut_off(share: float = 0.5) -> Fault:
    """Half the document, finish_reason `length`."""

    def change(answer: Answer) -> Answer:
        kept = str(answer.content)[: int(len(str(answer.content)) * share)]
        return replace(answer, content=kept, finish_reason="length", native_finish_reason="MAX_TOKENS")

    return Fault("cut off", change=change)


def rewritten(name: str, rewrite: Callable[[str], Any]) -> Fault:
    """The ordinary answer's text, rewritten."""
    return Fault(name, change=lambda answer: replace(answer, content=rewrite(str(answer.content))))


def fenced() -> Fault:
    return rewritten("fenced", lambda text: f"```json\n{text}\n```")


def in_prose() -> Fault:
    return rewritten("in prose", lambda text: f"Her er svaret du ba om:\n\n{text}\n\nSi fra om noe mangler!")


def trailing_comma() -> Fault:
    return rewritten("trailing comma", lambda text: text.rstrip().removesuffix("}") + ",}")


def in_parts() -> Fault:
    return rewritten("in parts", lambda text: [{"type": "text", "text": text[:9]}, {"type": "text", "text": text[9:]}])


def with_document(name: str, edit: Callable[[dict[str, Any]], Any]) -> Fault:
    """The ordinary answer's document, edited."""
    return rewritten(name, lambda text: json.dumps(edit(json.loads(text)), ensure_ascii=True))


def usage(name: str, counts: Mapping[str, Any] | None) -> Fault:
    """The answer is in order and its usage is not."""
    return Fault(name, change=lambda answer: replace(answer, usage=counts))


def byok(upstream_cost: float, cost: float = 0.0) -> Fault:
    details = {
        "upstream_inference_cost": upstream_cost,
        "upstream_inference_prompt_cost": upstream_cost / 2,
        "upstream_inference_completions_cost": upstream_cost / 2,
    }
    return usage("own provider key", {"is_byok": True, "cost": cost, "cost_details": details})


def answered_by(model: str) -> Fault:
    """Another model answered than the one asked for."""
    return changed("another model", model=model)


def huge(megabytes: int = 5) -> Fault:
    """A body of that size, which is no JSON."""
    return rewritten(f"{megabytes} MB", lambda _: "x" * (megabytes * MEGABYTE))


def changed(name: str, **fields: Any) -> Fault:
    return Fault(name, change=lambda answer: replace(answer, **fields))
