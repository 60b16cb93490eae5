"""One call, and what the model behind the stand-in answers to it."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

CHARS_PER_TOKEN = 3.5
MOST_PIECES = 40


def count_tokens(text: str) -> int:
    """How the stand-in counts: Norwegian has about 3.5 characters a token."""
    return math.ceil(len(text) / CHARS_PER_TOKEN)


@dataclass(frozen=True)
class ChatCall:
    """A chat request that has come in."""

    body: Mapping[str, Any]
    raw: bytes
    headers: Mapping[str, str]  # names in lower case
    is_reused_connection: bool = False

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def models(self) -> list[str]:
        """The model asked for, then its fallbacks."""
        return list(dict.fromkeys([self.model, *self.body.get("models", [])]))

    @property
    def is_stream(self) -> bool:
        return bool(self.body.get("stream"))

    @cached_property
    def text(self) -> str:
        """All that the messages say."""
        return "\n".join(_text_of(message.get("content")) for message in self.body.get("messages", []))

    @property
    def schema(self) -> dict[str, Any] | None:
        format_ = self.body.get("response_format") or {}
        return (format_.get("json_schema") or {}).get("schema")

    @property
    def max_tokens(self) -> int | None:
        limit: int | None = self.body.get("max_completion_tokens", self.body.get("max_tokens"))
        return limit

    @property
    def session_id(self) -> str:
        return str(self.body.get("session_id") or self.headers.get("x-session-id") or "")


@dataclass(frozen=True)
class Answer:
    """What the model says. `usage` changes the usage that was counted: a dict is laid over it, None sends none."""

    content: Any = ""
    finish_reason: str | None = "stop"
    native_finish_reason: str | None = None
    refusal: str | None = None
    reasoning: str | None = None
    usage: Mapping[str, Any] | None = field(default_factory=dict)
    error: Mapping[str, Any] | None = None
    error_code_in_stream: Any = None  # seen as a string there
    choices: str = "one"  # one, none (an empty list) or null
    model: str = ""
    provider: str = ""

    @property
    def spoken(self) -> str:
        return _text_of(self.content) + (self.refusal or "")

    def tokens(self) -> int:
        return count_tokens(self.spoken + (self.reasoning or ""))

    @property
    def is_insured(self) -> bool:
        """Zero-completion insurance: nothing said and no reason given, or ended in an error: not billed."""
        return self.finish_reason == "error" or (self.tokens() == 0 and not self.finish_reason)

    def pieces(self) -> list[str]:
        """The content in the parts that a stream sends it in."""
        text = _text_of(self.content)
        size = max(7, math.ceil(len(text) / MOST_PIECES))
        return [text[start : start + size] for start in range(0, len(text), size)]


def filled(schema: Mapping[str, Any] | None, call: ChatCall) -> str:
    """The default answer: the shortest instance of the schema, or prose where none was asked for."""
    if schema is None:
        return "Dette er et svar uten noe bestemt format."
    return json.dumps(_instance(schema, schema), ensure_ascii=False)


def _instance(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    if "$ref" in schema:
        return _instance(root["$defs"][schema["$ref"].rsplit("/", 1)[-1]], root)
    if "enum" in schema or "const" in schema:
        return schema.get("const", (schema.get("enum") or [None])[0])
    if "anyOf" in schema:
        return _instance(schema["anyOf"][0], root)
    kind = schema.get("type")
    kind = next((one for one in kind if one != "null"), "null") if isinstance(kind, list) else kind
    if kind == "object":
        return {name: _instance(part, root) for name, part in schema.get("properties", {}).items()}
    if kind == "array":
        return [_instance(schema["items"], root) for _ in range(schema.get("minItems", 0))]
    simple = {
        "integer": 0,
        "number": 0.0,
        "boolean": False,
        "string": "Svar"[: schema.get("maxLength", 4)],
        "null": None,
    }
    return simple.get(str(kind))


def _text_of(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""
