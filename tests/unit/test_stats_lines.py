"""Decoding of Caddy's lines: both versions' samples, and lines that somebody made to do harm."""

from pathlib import Path

import msgspec
import pytest

from services.stats.instants import Days, duration_of, seconds_of
from services.stats.lines import LONGEST_LINE, BadLine, Line, decode_lines, nth_line, shape_of

GOOD = (
    b'{"ts":1795958744.25,"logger":"http.log.access.x","request":{"method":"GET","uri":"/a"},"size":7,"status":200}\n'
)


def reasons(chunk: bytes) -> list[str]:
    return [line.reason if isinstance(line, BadLine) else "good" for line in decode_lines(chunk)]


@pytest.mark.parametrize("version", ["2.6.2", "2.11.7"])
def test_every_json_line_of_both_versions_is_read(samples: Path, version: str) -> None:
    for file in sorted((samples / "caddy" / version).glob("*.log")):
        chunk = file.read_bytes()
        expected = "json" if "console" in file.name else "good"

        assert reasons(chunk) == [expected] * chunk.count(b"\n"), file


HOSTILE = {
    "plain text": (b"hello\n", "json"),
    "NUL block": (b"\0" * 50 + b"\n", "json"),
    "cut short": (GOOD[:60] + b"\n", "json"),
    "two objects": (GOOD.strip() + GOOD, "json"),
    "invalid UTF-8 in the URI": (GOOD.replace(b"/a", b"/\xff\xfe"), "utf8"),
    "lone surrogate": (GOOD.replace(b"/a", rb"/\ud800"), "json"),
    "array": (b"[1]\n", "json"),
    "number": (b"1\n", "json"),
    "null": (b"null\n", "json"),
    "text as status": (GOOD.replace(b"200", b'"200"'), "schema"),
    "fraction as size": (GOOD.replace(b":7,", b":7.5,"), "schema"),
    "number as a header": (GOOD.replace(b'"uri"', b'"headers":{"Range":1},"uri"'), "schema"),
    "no method": (GOOD.replace(b"method", b"verb"), "schema"),
    "too deep": (b'{"z":' + b"[" * 200_000 + b"\n", "json"),
    "too long": (GOOD[:-2] + b" " * LONGEST_LINE + b"}\n", "too_long"),
    "infinite time": (GOOD.replace(b"1795958744.25", b"1e999"), "schema"),
    "NaN": (GOOD.replace(b"1795958744.25", b"NaN"), "json"),
}


@pytest.mark.parametrize("name", list(HOSTILE))
def test_a_bad_line_is_one_bad_line_with_its_reason_and_place(name: str) -> None:
    bad, reason = HOSTILE[name]

    decoded = decode_lines(GOOD + bad + GOOD)

    assert [type(line) for line in decoded] == [Line, BadLine, Line]
    assert isinstance(decoded[1], BadLine)
    assert (decoded[1].reason, decoded[1].offset) == (reason, len(GOOD))
    assert len(decoded[1].sample) <= 200


HARMLESS = {
    "unknown fields": GOOD.replace(b'"size"', b'"x":{"y":[1,{"z":null}]},"size"'),
    "duplicate key, the last wins": GOOD.replace(b'"size":7', b'"size":1,"size":7'),
    "null in place of a header": GOOD.replace(b'"uri"', b'"headers":{"Range":null,"User-Agent":[]},"uri"'),
    "other logger": b'{"level":"error","ts":1.5,"logger":"tls","msg":"x"}\n',
    "blank lines around": b"\n\r\n" + GOOD + b"\n",
    "carriage return": GOOD.replace(b"\n", b"\r\n"),
    "a newline's escape": GOOD.replace(b"/a", rb"/a}\n{"),
}


@pytest.mark.parametrize("name", list(HARMLESS))
def test_a_line_that_only_looks_odd_is_read(name: str) -> None:
    decoded = decode_lines(HARMLESS[name])

    assert [type(line) for line in decoded] == [Line]


def test_an_object_over_two_lines_is_two_bad_lines_even_beside_two_objects_on_one() -> None:
    """The decoder would take either, and the number of lines would be right again."""
    chunk = b'{"status":\n200}\n' + GOOD.strip() + GOOD + GOOD

    assert reasons(chunk) == ["json", "json", "json", "good"]


def test_one_call_and_line_by_line_read_the_same(samples: Path) -> None:
    chunk = (samples / "caddy" / "2.11.7" / "access.log").read_bytes()

    apart = [line for text in chunk.splitlines(keepends=True) for line in decode_lines(text)]

    assert msgspec.to_builtins(decode_lines(chunk)) == msgspec.to_builtins(apart)
    assert msgspec.to_builtins(decode_lines(b"\n" + chunk)) == msgspec.to_builtins(apart)


def test_the_nth_line_is_found_past_blank_ones() -> None:
    assert nth_line(b"\na\n\r\nb\n", 1) == (5, b"b")


def test_a_sample_keeps_the_shape_of_a_line_and_nobodys_address_or_agent() -> None:
    line = rb'2026/11/29 {"request": {"remote_ip": "203.0.113.77", "headers": {"User-Agent": ["Kari\'s iPhone/1.0"]}}}'

    sample = shape_of(line)

    assert '"remote_ip": "999.9.999.99"' in sample
    assert "Kari" not in sample
    assert "iPhone" not in sample


MOMENTS = {
    1795958744.25: 1795958744.25,
    1795958744250: 1795958744.25,
    1795958744250.5: 1795958744.2505,
    1795958744250000000: 1795958744.25,
    "2026-11-29T13:25:44.25Z": 1795958744.25,
    "2026-11-29T13:25:44.250000000Z": 1795958744.25,
    "2026-11-29T14:25:44.250+0100": 1795958744.25,
    "2026-11-29T14:25:44+01:00": 1795958744.0,
    "2026/11/29 13:25:44.250": 1795958744.25,
    "29/Nov/2026:14:25:44 +0100": 1795958744.0,
    0: None, -5.0: None, 1e300: None, "yesterday": None, "": None, "9" * 1000: None, None: None, 10**30: None,
    "0001-01-01T00:00:00+14:00": None, "9999-12-31T23:59:59-14:00": None,
}  # fmt: skip


@pytest.mark.parametrize("written", list(MOMENTS))
def test_a_time_is_read_in_each_of_caddys_formats(written: float | str | None) -> None:
    expected = MOMENTS[written]

    assert seconds_of(written) == (expected and pytest.approx(expected, abs=1e-6))


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        (0.25, 0.25), (0, 0.0), (250_000_000, 0.25), (None, 0.0), ("372.504µs", 0.000372504), ("1m2.5s", 62.5),
        ("1h0m0s", 3600.0), ("0", 0.0), ("6.088533167s", 6.088533167), (-1.0, None), (1e9, None), ("soon", None),
        ("1" * 100 + "s", None),
    ],
)  # fmt: skip
def test_a_duration_is_read_in_each_of_caddys_formats(written: float | str | None, seconds: float | None) -> None:
    assert duration_of(written) == (seconds if seconds is None else pytest.approx(seconds))


def test_whole_durations_are_of_the_unit_that_the_source_says() -> None:
    """Caddy's `nano` and `ms` are whole numbers both; a fraction is in seconds, a text says its unit."""
    assert [duration_of(length, 1e-3) for length in (4, 7_200_000, 0.25, "4ms", -1)] == [0.004, 7200, 0.25, 0.004, None]


def test_a_day_of_the_clock_change_has_its_true_bounds() -> None:
    days = Days("Europe/Oslo")
    for noon, hours in (
        (1774782000.0, 23),
        (1792926000.0, 25),
        (1795953600.0, 24),
    ):  # 29 March, 25 October, 29 November
        start, end, day = days.bounds_of(noon)

        assert (end - start) / 3600 == hours
        assert days.bounds_of(start)[2] == days.bounds_of(end - 0.001)[2] == day
        assert days.bounds_of(start - 0.001)[2] < day < days.bounds_of(end)[2]
