"""Reading a completion: its first choice, what was said, and why it ended."""

from collections.abc import Mapping
from enum import Enum
from typing import Any

from openrouter_client.error_body import as_mapping


class Finish(Enum):
    """Why an answer ended, in one vocabulary."""

    STOP = "stop"
    LENGTH = "length"
    FILTERED = "filtered"
    ERROR = "error"
    NONE = "none"  # it does not say


_FINISHES = {
    Finish.LENGTH: "length max_tokens max_output_tokens model_length",
    Finish.FILTERED: "content_filter safety recitation prohibited_content blocklist spii refusal",
    Finish.ERROR: "error",
    Finish.NONE: "null none",
}
_BY_WORD = {word: finish for finish, words in _FINISHES.items() for word in words.split()}


def first_choice(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """The first choice, or an empty one."""
    choices = body.get("choices")
    return as_mapping(choices[0]) if isinstance(choices, list) and choices else {}


def text_of(choice: Mapping[str, Any]) -> str:
    """What was said: content may be a text, a list of parts, or null."""
    content = as_mapping(choice.get("message")).get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part if isinstance(part, str) else as_mapping(part).get("text") for part in parts)
    return "".join(text for text in texts if isinstance(text, str))


def finish_of(choice: Mapping[str, Any]) -> tuple[Finish, str]:
    """Why it ended, and the provider's own word for it. A provider that ran into the limit is believed over "stop"."""
    native = choice.get("native_finish_reason")
    native = native if isinstance(native, str) else ""
    finish = choice.get("finish_reason")
    found = _BY_WORD.get(finish.lower(), Finish.STOP) if isinstance(finish, str) and finish else Finish.NONE
    if found is Finish.STOP and _BY_WORD.get(native.lower()) is Finish.LENGTH:
        return Finish.LENGTH, native
    return found, native or (finish if isinstance(finish, str) else "")


def completion_tokens(body: Mapping[str, Any]) -> int | None:
    """The tokens of the answer as billed, or None when the usage is missing or no number."""
    value = as_mapping(body.get("usage")).get("completion_tokens")
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def spent_nothing(body: Mapping[str, Any], finish: Finish) -> bool:
    """Whether OpenRouter's insurance holds: no output tokens and no word of an end are not billed."""
    return finish in (Finish.NONE, Finish.ERROR) and not completion_tokens(body)


def reason_for_silence(body: Mapping[str, Any], choice: Mapping[str, Any]) -> str:
    """Why an answer may be empty."""
    if not choice:
        return "the answer has no choices"
    message = as_mapping(choice.get("message"))
    details = as_mapping(as_mapping(body.get("usage")).get("completion_tokens_details"))
    thoughts = details.get("reasoning_tokens")
    if message.get("reasoning") or message.get("reasoning_content") or (isinstance(thoughts, int) and thoughts > 0):
        count = f" ({thoughts} tokens)" if isinstance(thoughts, int) and thoughts > 0 else ""
        return f"the model only thought{count} and did not answer; less OPENROUTER_REASONING leaves more room"
    if message.get("tool_calls"):
        return "the model called a tool, which it was not offered, and did not answer"
    return "the answer is empty"
