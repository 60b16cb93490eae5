"""Collects a streamed answer (server-sent events) into the object that the same answer would be without a stream.

An answer is whole when a finish_reason came, whether or not `[DONE]` follows; an event before it that cannot be read
makes the answer a failure, since it may have been a piece of the text.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from openrouter_client.content import text_of
from openrouter_client.error_body import UNREADABLE, as_mapping
from openrouter_client.unicode_text import parse_json, sound_value

DONE = "[DONE]"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LAST_COUNTS = ("model", "provider", "system_fingerprint", "service_tier", "usage", "openrouter_metadata")
_PIECES = ("refusal", "reasoning", "reasoning_content")


class EventReader:
    """Splits bytes into the data of events, across any packet bounds."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []  # of the line that is not at its end yet
        self._data: list[str] = []
        self._is_first = True

    def feed(self, received: bytes) -> Iterator[str]:
        self._pieces.append(received)
        if b"\n" not in received and b"\r" not in received:
            return  # joined only where a line ends, or a line of many packets would be copied for each of them
        held = b"".join(self._pieces)
        # A carriage return at the very end may be the first half of a line end.
        cut = len(held) - held.endswith(b"\r")
        lines = held[:cut].replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._pieces = [lines.pop() + held[cut:]]
        for line in lines:
            yield from self._line(line)

    def end(self) -> Iterator[str]:
        """What stands in the last event, which a server may leave without its blank line."""
        rest, self._pieces = b"".join(self._pieces).rstrip(b"\r"), []
        if rest:
            yield from self._line(rest)
        yield from self._dispatch()

    def _line(self, raw: bytes) -> Iterator[str]:
        if self._is_first:
            raw, self._is_first = raw.removeprefix(_BYTE_ORDER_MARK), False
        line = raw.decode("utf-8", "replace")
        if not line:
            yield from self._dispatch()
        elif line.startswith("data:"):
            self._data.append(line[5:].removeprefix(" "))

    def _dispatch(self) -> Iterator[str]:
        data, self._data = self._data, []
        if data:
            yield "\n".join(data)


class Collector:
    """Takes the bytes of a stream, gives the whole answer."""

    def __init__(self) -> None:
        self.is_done = False  # [DONE] came: nothing follows
        self._problem: str | None = None  # a piece of the answer could not be read
        self._reader = EventReader()
        self._fields: dict[str, Any] = {}
        self._choice: dict[str, Any] = {}
        self._texts: dict[str, list[str]] = {}
        self._lists: dict[str, list[Any]] = {}

    @property
    def generation_id(self) -> str | None:
        value = self._fields.get("id")
        return value if isinstance(value, str) and value else None

    @property
    def is_whole(self) -> bool:
        """Whether the answer came to its end: by the stream's word, a finish_reason, or an error."""
        return self.is_done or "error" in self._fields or not self._choice.keys().isdisjoint(("finish_reason", "error"))

    def feed(self, received: bytes) -> None:
        for data in self._reader.feed(received):
            self._take(data)

    def end(self) -> dict[str, Any]:
        """The answer as an ordinary chat.completion. Its error, if it has one, stands at its top."""
        for data in self._reader.end():
            self._take(data)
        message: dict[str, Any] = {"role": "assistant", "content": None}
        message |= {name: "".join(pieces) for name, pieces in self._texts.items()}
        message |= self._lists
        choice = {"index": 0, "finish_reason": None, **self._choice, "message": message}
        error = {"error": _unreadable(self._problem)} if self._problem is not None else {}
        body = {**error, **self._fields, "object": "chat.completion", "choices": [choice]}
        try:
            sound = sound_value(body)
        except ValueError as error:
            return {"error": _unreadable(f"the stream holds an unreadable event: {error}")}
        return sound if isinstance(sound, dict) else {}

    def _take(self, data: str) -> None:
        if self.is_done or not data.strip():
            return
        self.is_done = data.rstrip().endswith(DONE)
        if data.strip() == DONE:
            return
        chunks = _chunks(data)
        if not chunks and "finish_reason" not in self._choice:  # what follows the end is no piece of the answer
            self._problem = self._problem or f"the stream holds an event that is not JSON: {data[:200]}"
        for chunk in chunks:
            self._merge(chunk)

    def _merge(self, chunk: Mapping[str, Any]) -> None:
        for name in ("id", "created", "error"):
            if chunk.get(name):
                self._fields.setdefault(name, chunk[name])
        self._fields |= {name: chunk[name] for name in _LAST_COUNTS if chunk.get(name) is not None}
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else []:
            if as_mapping(choice).get("index") in (0, None):
                self._merge_choice(as_mapping(choice))

    def _merge_choice(self, choice: Mapping[str, Any]) -> None:
        kept = ("finish_reason", "native_finish_reason", "error")
        self._choice |= {name: choice[name] for name in kept if choice.get(name) is not None}
        delta = as_mapping(choice.get("delta")) or as_mapping(choice.get("message"))
        if delta.get("content") is not None:
            self._texts.setdefault("content", []).append(text_of({"message": delta}))
        for name in _PIECES:
            if isinstance(delta.get(name), str):
                self._texts.setdefault(name, []).append(delta[name])
        for name in ("tool_calls", "reasoning_details"):
            if isinstance(delta.get(name), list):
                self._lists.setdefault(name, []).extend(delta[name])


def _unreadable(problem: str) -> dict[str, Any]:
    return {"code": 502, "type": UNREADABLE, "message": problem}


def _chunks(data: str) -> list[Mapping[str, Any]]:
    """The objects in an event: one, or one in each line where a server left out the blank lines between events."""
    for texts in ([data], data.split("\n")):
        try:
            values = [parse_json(text) for text in texts if text.strip() not in ("", DONE)]
        except ValueError:
            continue
        if all(isinstance(value, Mapping) for value in values):
            return values
    return []
