"""What is hidden, what stays, and that JSON stays JSON."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidelinja_jobs.redaction import MASK, is_secret_name, redact_json, redact_text, redact_value

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"api_key": "hunter2"}', f'{{"api_key": "{MASK}"}}'),
        (r'{"a": [{"Authorization": "Bearer \"x\""}]}', f'{{"a": [{{"Authorization": "{MASK}"}}]}}'),
        ('{"db_password": "", "n": 0.1}', f'{{"db_password": "{MASK}", "n": 0.1}}'),
        ('{"accessToken": 12345, "n": 9223372036854775807}', f'{{"accessToken": "{MASK}", "n": 9223372036854775807}}'),
        ('{"credentials": {"user": "a", "s": ["}"]}, "b": 1}', f'{{"credentials": "{MASK}", "b": 1}}'),
        ('{"password": null, "secret": [1, [2]]}', f'{{"password": null, "secret": "{MASK}"}}'),
        (
            '{"access token": "x", "nøkkel passord": ["y"], "api/key": {"a": 1}}',
            f'{{"access token": "{MASK}", "nøkkel passord": "{MASK}", "api/key": "{MASK}"}}',
        ),
        (
            r'{"a \"quoted\" password": "x", "b": ["y", ": token", "z"]}',
            rf'{{"a \"quoted\" password": "{MASK}", "b": ["y", ": token", "z"]}}',
        ),
        ('{"url": "https://ola:pass@host/x"}', f'{{"url": "https://ola:{MASK}@host/x"}}'),
        ('{"url": "https://host/feed?token=abc123&page=2"}', f'{{"url": "https://host/feed?token={MASK}&page=2"}}'),
        ('{"note": "sent Bearer abcdef0123456789"}', f'{{"note": "sent Bearer {MASK}"}}'),
        ('{"note": "key sk-or-v1-0123456789abcdef"}', f'{{"note": "key {MASK}"}}'),
        ('{"max_tokens": 5, "tokens": "mange", "secretary": "Kari", "url": "https://host:80/@x"}',) * 2,
        (r'{"text": "the \"password\": \"x\" of the day"}',) * 2,
        ('{"unique_key": "a", "password_file": "/run/x", "keywords": ["b"], "monkey": 1}',) * 2,
    ],
)
def test_what_looks_like_a_secret_is_hidden_and_nothing_else(text: str, shown: str) -> None:
    assert redact_json(text) == shown
    json.loads(shown)


@pytest.mark.parametrize("name", ["token", "KEY", "x-api-key", "clientSecret", "AWS_SECRET_ACCESS_KEY", "passord"])
def test_names_of_secrets_in_every_spelling(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["", "max_tokens", "secretary", "sort_key", "authors", "secret_name", "42"])
def test_names_that_only_sound_like_it(name: str) -> None:
    assert not is_secret_name(name)


@given(JSON_VALUES)
def test_any_json_stays_json_and_numbers_stay_as_written(value: object) -> None:
    text = json.dumps({"a": value, "token": value, "n": 0.10}, ensure_ascii=False)

    shown = redact_json(text)

    told = json.loads(shown)
    assert told["token"] in (MASK, None)
    assert shown.endswith('"n": 0.1}')


NAMES = st.sampled_from(["n", "token", "my key", "api key", "passord", 'secret/"x"', "ære: token", "class"])
PLAIN_JSON = st.recursive(
    st.none() | st.integers() | st.text(st.sampled_from('ab ":,[]{}\\æ')),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


@given(PLAIN_JSON)
def test_text_and_value_lose_the_same(value: object) -> None:
    assert json.loads(redact_json(json.dumps(value, ensure_ascii=False))) == redact_value(value)


def test_depth_and_size_cost_little() -> None:
    deep = '{"a":' * 50_000 + "1" + "}" * 50_000
    large = json.dumps({"token": ["x" * 10] * 200_000, "text": "sk-" * 500_000 + "a=" * 500_000})
    began = time.process_time()

    assert redact_json(deep) == deep
    assert len(redact_json(large)) < 3_000_000
    redact_text(large[:200_000])

    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("connection failed: host=db password=hunter2 user=a", f"connection failed: host=db password={MASK} user=a"),
        ("OSError: refused: password=hunter2; token: a=b", f"OSError: refused: password={MASK}; token: {MASK}"),
        ("headers {'Authorization': 'Basic dXNlcjpwYXNzd29yZA=='}", f"headers {{'Authorization': '{MASK} {MASK}'}}"),
        ("postgresql://jobs:hunter2@db:5432/x refused", f"postgresql://jobs:{MASK}@db:5432/x refused"),
        ("expected max_tokens=5, found page: 3",) * 2,
    ],
)
def test_messages_lose_what_is_assigned_to_a_secret_name(text: str, shown: str) -> None:
    assert redact_text(text) == shown


def test_values_of_python_are_hidden_alike() -> None:
    value = {"token": 5, "list": [{"password": None, "url": "http://a:b@c/"}], "n": 2**63 - 1}

    assert redact_value(value) == {
        "token": MASK,
        "list": [{"password": None, "url": f"http://a:{MASK}@c/"}],
        "n": 2**63 - 1,
    }
