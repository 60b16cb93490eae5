"""JSON output: numbers unharmed, times in UTC, secrets masked, nothing that a terminal obeys."""

import json
from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest

from sidelinja_jobs.cli.documents import pretty, print_document, print_line, raw


@pytest.mark.parametrize(
    "number", ["9223372036854775807", "0.1", "0.10000000000000000000001", "1e400", "18446744073709551616"]
)
def test_numbers_of_a_payload_leave_as_they_came(capfdbinary: pytest.CaptureFixture[bytes], number: str) -> None:
    print_document({"payload": raw(f'{{"n": {number}}}', reveal=False)})

    assert f'"n": {number}\n'.encode() in capfdbinary.readouterr().out
    assert f'"n": {number}' in pretty(f'{{"n":{number}}}')


def test_document_is_utf8_and_holds_escapes_for_what_a_terminal_obeys(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    text = "blåbær \x1b[2J \x9b31m \u202e \U000e0041 \u2028"
    print_line({"text": text})

    printed = capfdbinary.readouterr().out.decode()
    assert printed.count("\n") == 1
    assert "blåbær" in printed
    assert not set(printed) & set("\x1b\x9b\u202e\U000e0041\u2028")
    assert json.loads(printed) == {"text": text}


def test_times_are_iso_8601() -> None:
    moment = datetime(2026, 12, 24, 18, tzinfo=timezone(timedelta(hours=1))).astimezone(UTC)

    assert msgspec.json.encode(moment) == b'"2026-12-24T17:00:00Z"'


def test_a_document_too_deep_to_indent_is_shown_as_it_came() -> None:
    deep = '{"a":' * 3000 + "1" + "}" * 3000

    assert pretty(deep) == deep
