"""What a show adds to a payload: the payload's own word always counts first."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from services.whisper.payload import WhisperPayload
from services.whisper.shows import Speech, speech_of
from sidelinja_jobs import PermanentError

SHOW = {"name": "Lyd", "language": "nn", "hotwords": ["Kari", "Ola"], "prompt": "Ein samtale."}


class FakeContext:
    """A database with one answer."""

    def __init__(self, row: dict[str, Any] | None) -> None:
        self._row = row
        self.asked: dict[str, Any] = {}

    @contextlib.contextmanager
    def transaction(self) -> Iterator["FakeContext"]:
        yield self

    def execute(self, _: str, parameters: dict[str, Any]) -> "FakeContext":
        self.asked = parameters
        return self

    def fetchone(self) -> dict[str, Any] | None:
        return self._row


def speech(row: dict[str, Any] | None, **payload: Any) -> Speech:
    return speech_of(WhisperPayload(path="./lyd//a.mp3", **payload), FakeContext(row))  # type: ignore[arg-type]


def test_without_a_show_the_payload_and_the_defaults_hold() -> None:
    assert speech(None) == Speech(None, "no", (), None)
    assert speech(None, language="auto", hotwords=("Kygo",)) == Speech(None, "auto", ("Kygo",), None)


def test_the_shows_settings_hold_where_the_payload_says_nothing() -> None:
    assert speech(SHOW) == Speech("Lyd", "nn", ("Kari", "Ola"), "Ein samtale.")


def test_the_payloads_word_counts_first_and_no_name_comes_twice() -> None:
    found = speech(SHOW, language="en", hotwords=("Per", "Ola"), prompt="Hi.")

    assert found == Speech("Lyd", "en", ("Per", "Ola", "Kari"), "Hi.")


def test_a_show_that_is_not_there_is_named() -> None:
    with pytest.raises(PermanentError, match="no show 'Lyd'") as caught:
        speech(None, show="Lyd")

    assert caught.value.error_class == "unknown_show"


def test_a_show_with_a_language_that_nobody_knows_is_refused() -> None:
    with pytest.raises(PermanentError, match="'xx', expected 'auto' or"):
        speech({**SHOW, "language": "xx"})


def test_it_is_asked_for_by_the_path_as_folders_are_written() -> None:
    ctx = FakeContext(None)

    speech_of(WhisperPayload(path="./lyd//a.mp3"), ctx)  # type: ignore[arg-type]

    assert ctx.asked == {"name": None, "path": "lyd/a.mp3"}
