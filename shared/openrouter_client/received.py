"""What has come of one answer so far, streamed or not, and without the key.

A server may repeat the key anywhere. It is taken out here, before anybody reads or shortens a text: of a key that was
cut in two, no search finds the halves.
"""

from collections.abc import Callable, Mapping
from typing import Any

from openrouter_client.content import first_choice, text_of
from openrouter_client.error_body import find_error
from openrouter_client.profile import Secret
from openrouter_client.redaction import is_long, redact, redact_value
from openrouter_client.stream import Collector
from openrouter_client.unicode_text import parse_json, sound_text, sound_value

LONGEST_TEXT = 20_000  # characters kept of an answer that is no completion
_LONGEST_ID = 200

OnGenerationId = Callable[[str], None]


class Received:
    """Takes the head, then the pieces, then the end."""

    def __init__(
        self,
        on_generation_id: OnGenerationId | None,
        key: Secret | None = None,
        on_piece: Callable[[], None] | None = None,
    ) -> None:
        self._key, self._on_piece = key, on_piece
        self.status: int | None = None
        self.headers: Mapping[str, str] = {}
        self.body: dict[str, Any] | None = None
        self.text = ""
        self.generation_id: str | None = None
        self._on_generation_id = on_generation_id
        self._collector: Collector | None = None
        self._pieces: list[bytes] = []

    @property
    def is_done(self) -> bool:
        """Whether the stream said so: what follows is waited for by nobody."""
        return self._collector is not None and self._collector.is_done

    @property
    def survives_a_cut(self) -> bool:
        """Whether what came is enough: the status alone says no, or the model had ended before the line broke."""
        has_ended = self._collector is not None and self._collector.is_whole
        return has_ended or (self.status is not None and self.status >= 400)

    @property
    def is_whole(self) -> bool:
        """False for a stream that came to no end."""
        return self._collector is None or self._collector.is_whole

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        self.status = status
        self.headers = {name: redact(sound_text(value), self._key) for name, value in headers.items()}
        if status < 400 and "event-stream" in headers.get("content-type", "").lower():
            self._collector = Collector()
        self._note_id(headers.get("x-generation-id"))

    def take(self, piece: bytes) -> None:
        if self._on_piece is not None:
            self._on_piece()
        if self._collector is None:
            self._pieces.append(piece)
            return
        self._collector.feed(piece)
        self._note_id(self._collector.generation_id)

    def end(self, *, is_cut: bool) -> None:
        """Makes body and text of what came; of an answer that was cut nothing, since half of one may look whole."""
        if is_cut and not self.survives_a_cut:
            return
        raw = b"".join(self._pieces)
        self._pieces = []
        if self._collector is None and raw.lstrip().startswith(b"data:"):  # a stream under another name
            self._collector = Collector()
            self._collector.feed(raw)
        body = self._collector.end() if self._collector is not None else _document(raw)
        if body is None:
            self.text = redact(sound_text(raw.decode("utf-8", "replace")), self._key)[:LONGEST_TEXT]
            return
        is_said = (self.status or 0) < 400 and find_error(body) is None
        is_secret = self._key is not None and (is_long(self._key.reveal()) or not is_said)
        self.body = redact_value(body, self._key if is_secret else None)
        self.text = text_of(first_choice(self.body))
        if "choices" in self.body:
            self._note_id(self.body.get("id"))

    def forget(self) -> None:
        """Drops what came: it is no answer."""
        self.body, self.text = None, ""

    def _note_id(self, value: object) -> None:
        if self.generation_id is not None or not isinstance(value, str) or not value.isprintable():
            return
        if not 0 < len(value) <= _LONGEST_ID:
            return
        self.generation_id = redact(value, self._key)
        if self._on_generation_id is not None:
            self._on_generation_id(self.generation_id)


def _document(raw: bytes) -> dict[str, Any] | None:
    try:
        value = sound_value(parse_json(raw))
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
