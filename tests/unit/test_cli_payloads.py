"""Payloads from what was typed, and the first look at them with the worker's schema."""

import json
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidelinja_jobs.cli.exits import RefusedError
from sidelinja_jobs.cli.payloads import MOST_BYTES, check_content, from_bytes, from_json, from_pairs, parsed
from sidelinja_jobs.cli.schemas import problems


class Track(msgspec.Struct, forbid_unknown_fields=True):
    path: str
    speaker: str | None = None


class Transcribe(msgspec.Struct, forbid_unknown_fields=True):
    path: str
    language: str = "no"
    prompt: str | None = None
    beam_size: int = 5
    temperature: float = 0.0
    word_timestamps: bool = False
    tracks: list[Track] = []


SCHEMA: dict[str, Any] = msgspec.json.schema(Transcribe)


def refusal(call: Any, *arguments: Any) -> str:
    with pytest.raises(RefusedError) as refused:
        call(*arguments)
    return refused.value.line()


def test_values_that_are_json_are_json_and_all_others_text() -> None:
    payload = from_pairs(
        ["path=a b.mp3", "language=no", "n=5", "x=true", "y=null", 'z={"a": [1]}', 'q="5"', "e="], None
    )

    assert json.loads(payload) == {
        "path": "a b.mp3", "language": "no", "n": 5, "x": True, "y": None, "z": {"a": [1]}, "q": "5", "e": ""
    }  # fmt: skip


@pytest.mark.parametrize(
    "number", ["9223372036854775807", "0.1", "0.10000000000000000000001", "1e400", "-0", "1" * 5000]
)
def test_numbers_stay_as_they_were_written(number: str) -> None:
    assert from_pairs([f"n={number}"], None) == f'{{"n": {number}}}'
    assert from_json(f"[{number}]", "--payload") == f"[{number}]"


def test_value_may_hold_equal_signs() -> None:
    assert json.loads(from_pairs(["url=https://x/?a=1&b=2"], None)) == {"url": "https://x/?a=1&b=2"}


def test_text_fields_of_the_schema_take_what_looks_like_another_value() -> None:
    payload = from_pairs(["path=123", "prompt=12", 'language="nn"', "beam_size=3"], SCHEMA)

    assert json.loads(payload) == {"path": "123", "prompt": "12", "language": "nn", "beam_size": 3}
    assert json.loads(from_pairs(["prompt=null"], SCHEMA)) == {"prompt": None}


@given(st.dictionaries(st.text(min_size=1).filter(lambda key: "=" not in key), st.text()))
def test_any_text_given_as_json_comes_out_as_it_went_in(fields: dict[str, str]) -> None:
    pairs = [f"{key}={json.dumps(value)}" for key, value in fields.items()]

    assert json.loads(from_pairs(pairs, None)) == fields


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        (["path"], "'path' is not key=value"),
        (["=x"], "'=x' is not key=value"),
        (["a=1", "a=2"], "the key 'a' is given twice"),
        (['a={"b": }'], "the value of a begins like JSON and is not"),
        (["a=[1,"], "the value of a begins like JSON and is not"),
    ],
)
def test_doubtful_pairs_are_refused(pairs: list[str], words: str) -> None:
    assert words in refusal(from_pairs, pairs, None)


def test_bad_json_is_told_with_line_and_column() -> None:
    assert refusal(from_json, '{"a": 1,\n "b" 2}', "--payload") == (
        "--payload is not JSON: expecting ':' delimiter at line 2, column 6, "
        r"""near '{"a": 1,\n "b" 2}'. Next: correct it and try again"""
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": NaN}', "NaN is not a JSON number"),
        ('{"a": -Infinity}', "-Infinity is not a JSON number"),
        ('{"a": 1, "a": 2}', "the key 'a' stands twice"),
        ("[" * 100_000, "nested too deeply"),
        ("", "is not JSON"),
    ],
)
def test_json_that_would_not_arrive_as_meant_is_refused(text: str, words: str) -> None:
    assert words in refusal(from_json, text, "--payload")


def test_file_must_be_utf8_and_of_a_size() -> None:
    assert from_bytes(b'\xef\xbb\xbf{"a": "\xc3\xa6"}', "f") == '{"a": "æ"}'
    assert "byte 7 is 0xe6" in refusal(from_bytes, b'{"a": "\xe6"}', "f")
    assert "larger than" in refusal(from_bytes, bytes(MOST_BYTES + 1), "f")


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        (r'{"a": {"b": ["x", "\u0000"]}}', "payload.a.b[1] holds a NUL"),
        (r'{"a": "\ud800"}', "payload.a holds a lone surrogate"),
        (r'{"\ud800": 1}', "a key in payload holds a lone surrogate"),
        ('{"a": "data:audio/mpeg;base64,SUQz"}', "payload.a is a data: URL"),
        (json.dumps({"a": "QUJD" * 2000}), "payload.a looks like 8000 characters of base64"),
        (json.dumps({"path": "x/" * 600}), "payload.path has 1200 characters"),
        ("[1]", "expected an object"),
    ],
)
def test_what_must_not_enter_the_queue_is_refused_with_its_place(payload: str, words: str) -> None:
    assert words in refusal(check_content, payload)


def test_ordinary_payloads_pass() -> None:
    check_content(json.dumps({"path": "Sesong 2/æøå – 日本.mp3", "n": 9223372036854775807, "text": "Hei! " * 50_000}))


@pytest.mark.parametrize(
    ("payload", "told"),
    [
        ({"path": "a.mp3"}, []),
        ({"path": "a.mp3", "prompt": None, "temperature": 1, "tracks": [{"path": "b"}]}, []),
        ({}, ["payload.path is missing"]),
        ({"path": "a", "languge": "no"}, ["payload.languge is not a known field (did you mean language?)"]),
        ({"path": 5, "word_timestamps": "yes"}, ["payload.path is number, expected string",
                                               "payload.word_timestamps is string, expected boolean"]),
        ({"path": "a", "beam_size": 1.5}, ["payload.beam_size is number, expected integer"]),
        ({"path": "a", "tracks": [{"path": "b"}, {"pth": "c"}]},
         ["payload.tracks[1].path is missing", "payload.tracks[1].pth is not a known field (did you mean path?)"]),
        ([], ["payload is array, expected object"]),
    ],
)  # fmt: skip
def test_slips_are_told_before_the_worker_sees_them(payload: Any, told: list[str]) -> None:
    assert problems(parsed(json.dumps(payload)), SCHEMA) == told


@pytest.mark.parametrize(
    "schema", [{}, {"$ref": "#/$defs/None"}, {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}]
)
def test_schema_that_says_nothing_refuses_nothing(schema: dict[str, Any]) -> None:
    assert problems(parsed('{"a": [1, {"b": null}]}'), schema) == []


class Bounded(msgspec.Struct, forbid_unknown_fields=True):
    kind: Literal["a", "b"] = "a"
    version: Literal[1] = 1
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=3)] | None = None
    share: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.0
    tracks: Annotated[list[Track], msgspec.Meta(max_length=2)] | None = None


@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        ('{"kind": "c"}', 'payload.kind is none of "a", "b"'),
        ('{"version": 2}', "payload.version is none of 1"),
        ('{"version": "1"}', "payload.version is none of 1"),
        ('{"name": "abcd"}', "payload.name has 4 characters, expected at most 3"),
        ('{"name": ""}', "payload.name has 0 characters, expected at least 1"),
        ('{"share": -0.1}', "payload.share is -0.1, expected 0 or more"),
        ('{"share": 1e400}', "payload.share is 1e400, expected less than 1"),
        ('{"tracks": [{"path": ""}, {"path": ""}, {}]}', "payload.tracks has 3 members, expected at most 2"),
        ('{"tracks": [{"pth": ""}]}', "payload.tracks[0].path is missing"),
    ],
)
def test_a_value_out_of_bounds_is_named_with_its_bound(payload: str, problem: str) -> None:
    assert problem in problems(parsed(payload), msgspec.json.schema(Bounded))


@pytest.mark.parametrize(
    "payload", ['{"kind": "b", "version": 1.0, "name": "æøå", "share": 0.999}', '{"name": null, "tracks": null}', "{}"]
)
def test_a_value_within_its_bounds_is_let_pass(payload: str) -> None:
    assert problems(parsed(payload), msgspec.json.schema(Bounded)) == []


@pytest.mark.parametrize(
    ("number", "fits"),
    [("9223372036854775807", True), ("9223372036854775808", False), ("1e99999999999999999999", False)],
)
def test_bounds_are_compared_exactly(number: str, fits: bool) -> None:
    schema = {"properties": {"n": {"type": "integer", "maximum": 2**63 - 1}}}

    assert (problems(parsed(f'{{"n": {number}}}'), schema) == []) is fits
