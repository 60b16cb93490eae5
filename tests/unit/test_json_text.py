"""Text and JSON at the edge of the database: what is refused with its place, what is cleaned, what passes."""

import json
import math
import time
from datetime import datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidelinja_jobs.errors import RefusedError
from sidelinja_jobs.json_text import (
    as_jsonb,
    check_payload,
    clean_text,
    clean_value,
    decode_payload,
    encode_payload,
    encode_result,
    is_blob,
)

NORWEGIAN = "Så ære være «Å gjøre» – på øya, 12 % av kvelden; Ærfuglen fløy på håp om brød. " * 1300  # 100 kB
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec=None)), inner, max_size=3),
    max_leaves=8,
)


def refusal(payload: Any) -> str:
    with pytest.raises(RefusedError) as caught:
        check_payload(payload)
    return str(caught.value)


# ---------------------------------------------------------------- cleaning


def test_text_cut_at_every_offset_stays_valid() -> None:
    text = "a\U0001f600é\U0001f468\u200d\U0001f469\u200d\U0001f467\x00b\ud83dc" * 3

    for limit in range(1, len(text) + 2):
        cut = clean_text(text, limit)
        cut.encode()
        assert len(cut) == min(limit, len(text))
        assert "\x00" not in cut
        assert (cut[-1] == "…") == (limit < len(text))


def test_only_what_cannot_be_stored_is_replaced() -> None:
    assert clean_text("a\x00b\ud800\udfffc") == "a\ufffdb\ufffd\ufffdc"
    assert clean_text("\x01\x1b[31m\t\n\u2028\ufffe\U0010ffff æ") == "\x01\x1b[31m\t\n\u2028\ufffe\U0010ffff æ"
    assert clean_text("", 10) == ""
    assert clean_text("abc", 3) == "abc"
    assert clean_text("abcd", 3) == "ab…"


def test_numbers_that_json_cannot_hold_become_null() -> None:
    value = {"a": [float("nan"), float("inf"), -float("inf"), 1.5, 0], "b\x00": ("\ud800", True, None)}

    assert clean_value(value) == {"a": [None, None, None, 1.5, 0], "b\ufffd": ["\ufffd", True, None]}


@settings(deadline=None, derandomize=True)
@given(ANY_JSON)
def test_whatever_is_cleaned_is_json_that_the_database_takes(value: Any) -> None:
    encoded = as_jsonb(clean_value(value)).dumps(clean_value(value))  # type: ignore[misc]

    assert b"\\u0000" not in encoded
    encoded.decode()
    json.loads(encoded)


@settings(deadline=None, derandomize=True)
@given(ANY_JSON)
def test_what_passes_the_check_needs_no_cleaning(value: Any) -> None:
    payload = {"a": value}
    try:
        check_payload(payload)
    except RefusedError:
        return
    assert msgspec.json.encode(clean_value(payload)) == msgspec.json.encode(payload)


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ([], "payload is a list, expected an object with named fields"),
        ("x", "payload is a str, expected an object"),
        ({"a": {"b": [0, "x\x00"]}}, "payload.a.b[1] holds a NUL character at character 1"),
        ({"a": "\udcff"}, "payload.a holds a lone surrogate at character 0"),
        ({"a": {"\x00": 1}}, "a key in payload.a holds a NUL character at character 0"),
        ({"\ud800": {"a": float("nan")}}, "a key in payload holds a lone surrogate"),
        ({"a": [float("nan")]}, "payload.a[0] is nan, which JSON cannot hold"),
        ({"a": -(10**300)}, "payload.a is a whole number of more than 300 digits"),
        ({"path": "a/" * 513}, "payload.path has 1026 characters, a path may have 1024"),
        ({"tracks": [{"audio_path": "a b/" * 300}]}, "payload.tracks[0].audio_path has 1200 characters"),
    ],
)
def test_a_refusal_names_the_place(payload: Any, message: str) -> None:
    assert message in refusal(payload)


def test_the_place_of_a_very_long_name_is_cut() -> None:
    assert len(refusal({"n" * 100_000: "\x00"})) < 400


@pytest.mark.parametrize(
    "url",
    [
        "data:audio/mpeg;base64,AAAA",
        "data:,hello",
        "DATA:text/plain;charset=utf-8;base64,QQ==",
        " \n\tdata:audio/mpeg;base64,AAAA",
        "data:application/vnd.api+json;x=y,{}",
        "data:;base64," + "QUJD" * 100_000,
    ],
)
def test_data_urls_are_refused(url: str) -> None:
    assert "is a data: URL; put the data into a file and give its path" in refusal({"a": [url]})


BASE64 = "TWFuIGlzIGRpc3Rpbmd1aXNoZWQsIG5vdCBvbmx5IGJ5IGhpcyByZWFzb24sIGJ1dCBi" * 20
BLOBS = {
    "one line": BASE64,
    "padded": BASE64 + "QQ==",
    "wrapped at 64": "\n".join(BASE64[n : n + 64] for n in range(0, len(BASE64), 64)),
    "wrapped at 76, CRLF, padded": "\r\n".join(BASE64[n : n + 76] for n in range(0, len(BASE64), 76)) + "Q==\r\n",
    "URL-safe": BASE64.replace("W", "-").replace("Z", "_"),
    "hexadecimal": "00ff" * 300,
    "just long enough": "A" * 1024,
}


@pytest.mark.parametrize("what", list(BLOBS))
def test_blobs_are_refused(what: str) -> None:
    assert is_blob(BLOBS[what])
    assert "characters of base64; put the data into a file and give its path" in refusal({"a": {"b": BLOBS[what]}})


TEXTS = {
    "100 kB of Norwegian": NORWEGIAN,
    "Norwegian without its letters and marks": "vi snakker om paa kvelden uten tegn og uten slutt " * 2000,
    "one very long sentence, one word a line": "\n".join(["episode"] * 5000),
    "a long path": "/media/" + "podkast/sesong_01/" * 50 + "episode.mp3",
    "many paths": "\n".join(f"podcast/2026/episode_{n}/lyd.mp3" for n in range(500)),
    "a long URL": "https://example.org/a?" + "&".join(f"key{n}=value{n}" for n in range(200)),
    "many URLs": "\n".join(f"https://example.org/{n}" for n in range(500)),
    "hex digests with file names": "\n".join(f"{n:064x}  file-{n}.mp3" for n in range(100)),
    "one digest": "d7a8fbb307d7809469ca9abcb0082e4f8d5651e46d3cdb762d02d0bf37c9e592",
    "MD5 digests, one a line": "\n".join(f"{n:032x}" for n in range(200)),
    "UUIDs": "\n".join(f"00000000-0000-4000-8000-{n:012x}" for n in range(200)),
    "just too short": "A" * 1023,
    "a ruler between paragraphs": "Tekst.\n" + "-" * 2000 + "\nMer tekst.",
    "numbers": " ".join(str(n) for n in range(2000)),
    "a word about data": "data: five of them, and more",
    "a name that begins like it": "database:postgresql,redis",
    "Markdown": "# Tittel\n\n- punkt\n- [lenke](https://example.org)\n" * 200,
    "JSON in a string": json.dumps({"a": list(range(1000))}),
    "spaces": " " * 5000,
    "nothing": "",
}


@pytest.mark.parametrize("what", list(TEXTS))
def test_ordinary_text_passes(what: str) -> None:
    assert not is_blob(TEXTS[what])
    check_payload({"text": TEXTS[what], "list": [{"deep": TEXTS[what]}]})


def test_a_path_of_1024_characters_passes_and_text_in_other_fields_may_be_longer() -> None:
    check_payload({"path": "å/" * 512, "text": "a. " * 10_000, "path_of_life": "a. " * 10_000})


def test_ordinary_values_pass() -> None:
    check_payload({"a": [1, -1.5, True, None, 2**63, "æ\U0001f600", [], {}], "b": {"": {"": ""}}, "n": 10**299})


@pytest.mark.parametrize("tail", ["é", "=é", "==" + " " * 1000 + "é", "\n."])
def test_looking_for_base64_takes_linear_time(tail: str) -> None:
    """A payload of 1 MB that is base64 but for its last character, with long runs of white space inside."""
    text = "a" * 1024 + " " * 1_000_000 + tail

    started = time.monotonic()
    assert not is_blob(text)

    assert time.monotonic() - started < 1  # quadratic: hours


@pytest.mark.parametrize(
    "text", [";" * 500_000, "data:" + ";" * 500_000, " " * 500_000 + "data:", "data:" + "a;b=" * 200_000]
)
def test_looking_for_data_urls_takes_linear_time(text: str) -> None:
    started = time.monotonic()
    check_payload({"a": text})

    assert time.monotonic() - started < 1


# ---------------------------------------------------------------- on their way into the database


@given(ANY_JSON)
def test_what_passes_quickly_is_what_passes_slowly(value: Any) -> None:
    """The short way for small payloads refuses and keeps exactly what the long way does."""
    try:
        check_payload(value)
    except RefusedError:
        with pytest.raises(RefusedError):
            encode_payload(value)
        return
    try:
        expected = msgspec.json.encode(value)
    except OverflowError:
        return
    assert bytes(encode_payload(value)) == expected
    assert decode_payload(expected.decode(), msgspec.json.Decoder(dict)) == msgspec.json.decode(expected)


@given(ANY_JSON)
def test_a_result_is_cleaned_whichever_way_it_takes(value: Any) -> None:
    try:
        expected = msgspec.json.encode(clean_value(value))
    except OverflowError:
        return
    assert msgspec.json.decode(bytes(encode_result(value))) == msgspec.json.decode(expected)


def test_small_payloads_are_refused_for_what_makes_them_unfit() -> None:
    for payload in (
        {"n": math.nan},
        {"t": "\0"},
        {"u": "DATA:audio/mp3;base64,AAAA"},
        {"s": "\ud800"},
        [1],
        {"x": {"y": math.inf}},
    ):
        with pytest.raises(RefusedError):
            encode_payload(payload)
    assert (
        bytes(encode_payload({"none": None, "when": datetime(2026, 1, 1)}))
        == b'{"none":null,"when":"2026-01-01T00:00:00"}'
    )
