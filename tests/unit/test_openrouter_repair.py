"""From an answer's text to an object, and above all: which texts are refused."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openrouter_client.repair import LONGEST_TEXT, NoObjectError, read_object

OBJECT = {"title": "Blåbærsyltetøy – «hei»", "chapters": [{"block": "B1", "title": "Å"}], "n": 1}
TEXT = json.dumps(OBJECT, ensure_ascii=False)


def read(text: str) -> tuple[dict[str, Any], bool]:
    found = read_object(text, is_whole=True)
    return found.data, found.is_repaired


def test_an_object_as_it_should_be_is_not_called_repaired() -> None:
    assert read(TEXT) == (OBJECT, False)
    assert read(f"\n  {TEXT}\n") == (OBJECT, False)


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + TEXT,
        f"```json\n{TEXT}\n```",
        f"```\n{TEXT}\n```",
        f"Her er svaret:\n\n```json\n{TEXT}\n```\nHåper det hjelper!",
        f"Her er svaret: {TEXT} Håper det hjelper!",
        TEXT[:-1] + ",}",
        TEXT.replace('"n"', "n"),
        TEXT.replace('"', "'"),
        f"```json\n{TEXT[:-1]},}}\n```",
    ],
)
def test_wrapping_and_small_faults_are_mended(text: str) -> None:
    assert read(text) == (OBJECT, True)


@pytest.mark.parametrize("cut", range(1, len(TEXT)))
def test_half_a_document_is_never_closed_into_a_whole_one(cut: int) -> None:
    """Neither where the server says that the answer was cut off, nor where it does not."""
    with pytest.raises(NoObjectError):
        read_object(TEXT[:cut], is_whole=False)
    with pytest.raises(NoObjectError):
        read(TEXT[:cut])
    with pytest.raises(NoObjectError):
        read("```json\n" + TEXT[:cut])


def test_whole_text_of_a_cut_answer_is_refused_too() -> None:
    with pytest.raises(NoObjectError, match="cut off"):
        read_object(TEXT, is_whole=False)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no JSON object"),
        ("Jeg kan dessverre ikke svare på det.", "it begins 'Jeg kan dessverre"),
        ("[1, 2]", "JSON array, expected an object"),
        ('"bare tekst"', "JSON string"),
        ("null", "JSON null"),
        ("42", "JSON number"),
        ("true", "JSON boolean"),
        ("{}}}{", "no JSON object"),
        ("[" * 100_000, "no JSON object"),
        ('{"a":' * 100_000, "no JSON object"),
        ("x" * (LONGEST_TEXT + 1), "at most"),
    ],
)
def test_what_is_no_object_is_refused_with_what_it_is(text: str, says: str) -> None:
    with pytest.raises(NoObjectError, match=says):
        read(text)


def test_what_no_database_can_hold_is_replaced() -> None:
    found, _ = read('{"a": "NUL \\u0000, half \\ud83d, pair \\ud83d\\ude00", "b": NaN, "c": Infinity}')

    assert found == {"a": "NUL \ufffd, half \ufffd, pair 😀", "b": None, "c": None}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=4), JSON, max_size=4), st.booleans())
def test_every_object_comes_through(value: dict[str, Any], is_ascii: bool) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii)
    clean = json.loads(json.dumps(value).replace("\\u0000", "\\ufffd"))

    data, is_repaired = read(text)

    assert not is_repaired
    if "\\\\u0000" not in json.dumps(value):
        assert data == clean


@given(st.text(max_size=200))
def test_no_text_breaks_the_reading(text: str) -> None:
    try:
        data, _ = read(text)
    except NoObjectError:
        return
    assert isinstance(data, dict)


@pytest.mark.parametrize("depth", [64, 70, 900, 5000])
@pytest.mark.parametrize("tail", ["}", ",}", "} og takk"])
def test_an_answer_that_is_nested_too_deeply_is_no_object(depth: int, tail: str) -> None:
    with pytest.raises(NoObjectError):
        read('{"title": ' + "[" * depth + "]" * depth + tail)


@pytest.mark.parametrize(
    "text",
    [
        "{" * 150_000 + "}" * 150_000,
        '{"a":1}' * 60_000 + ",}",
        "{'a': " * 60_000 + "}" * 60_000,
        "```json" + " " * 1_000_000 + "x",
        "```json\n{" + "\t" * 1_000_000 + "x",
        "```\n{" * 200_000,
    ],
)
def test_an_answer_of_nothing_but_brackets_or_blanks_is_given_up_soon(text: str) -> None:
    started = time.process_time()
    with pytest.raises(NoObjectError):
        read(text)
    assert time.process_time() - started < 5
