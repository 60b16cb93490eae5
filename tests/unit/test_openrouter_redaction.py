"""The key is in no text that leaves the client, and other words stay as they are."""

import json
import time
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openrouter_client.profile import Secret
from openrouter_client.redaction import HIDDEN, redact, redact_value
from tests.unit.openrouter_clients import KEY


@pytest.mark.parametrize(
    "text",
    [
        f"Illegal header value b'Bearer {KEY}\\n'",
        f"Authorization: Bearer {KEY}",
        f'{{"Authorization": "Bearer {KEY}"}}',
        f"https://host/v1?key={KEY}&x=1",
        f"{KEY}{KEY}",
        f"No auth credentials found for {KEY}",
    ],
)
def test_the_key_is_hidden_wherever_it_stands(text: str) -> None:
    assert KEY not in redact(text, Secret(KEY))
    assert HIDDEN in redact(text, Secret(KEY))
    assert KEY not in redact(text), "a key that is not ours is hidden by its looks"


def test_a_key_with_a_line_break_is_hidden_with_and_without_it() -> None:
    secret = Secret(f"plain-key-without-form\n{'':3}")

    assert "plain-key" not in redact("b'Bearer plain-key-without-form\\n'", secret)
    assert "plain-key" not in redact("x plain-key-without-form y", secret)


@pytest.mark.parametrize("key", ['we"ird\\key/+=', "a/b+c=d&e?f%g"])
def test_a_key_is_hidden_as_it_is_written_in_json_and_in_addresses(key: str) -> None:
    for text in (json.dumps({"k": key}), f"https://h/?k={quote(key, safe='')}", key):
        assert HIDDEN in redact(text, Secret(key))


def test_a_short_key_garbles_no_other_words() -> None:
    assert redact("none of it: Bearer none", Secret("none")) == f"{HIDDEN} of it: Bearer {HIDDEN}"
    assert redact("nonetheless, anon-e", Secret("none")) == "nonetheless, anon-e"


@pytest.mark.parametrize(
    "text",
    [
        "Han heter Ask-Ludvigsen2 og er på sk-bane",
        "bearer certificates of 2021",
        "a bearer of news",
        "ask-the-expert-12345-episode",
        "Basic training for beginners123",
        "«Desk-top» og disk-rydding",
        "",
    ],
)
def test_ordinary_words_stay(text: str) -> None:
    assert redact(text, Secret(KEY)) == text


def test_a_value_is_redacted_in_all_its_texts() -> None:
    value = {KEY: [f"a {KEY}", {"b": (KEY, 1, None, 2.5, True)}]}

    assert redact_value(value, Secret(KEY)) == {HIDDEN: [f"a {HIDDEN}", {"b": [HIDDEN, 1, None, 2.5, True]}]}
    assert redact_value(None, Secret(KEY)) is None


@given(before=st.text(), after=st.text(), key=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8))
@settings(deadline=None)
def test_no_key_survives_any_surroundings(before: str, after: str, key: str) -> None:
    shown = redact(f"{before}{key}{after}", Secret(key))

    assert key not in shown.replace(HIDDEN, "\n")


@pytest.mark.parametrize("text", ["sk-" * 700_000, "bearer " * 300_000, "bearer" + " " * 2_000_000, "a" * 2_000_000])
def test_a_hostile_text_costs_no_more_than_its_length(text: str) -> None:
    started = time.process_time()
    redact(text, Secret(KEY))

    assert time.process_time() - started < 3
