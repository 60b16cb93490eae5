"""What nobody should read over a shoulder: values whose names say that they are secret, credentials in addresses, keys.

One rule for the command line, the admin view, its API and what is delivered. It hides from people who look, and is no
wall: who may read the table reads everything.
"""

import re
from functools import lru_cache
from typing import Any

MASK = "•••"
_NAME_CHARACTERS = 100  # of a name, its last ones: they say what the value is
_DEEPEST = 100  # Python's values nested further are hidden whole; JSON text may be nested as deep as it likes

# The last word of a name says what the value is: max_tokens is a number, access_token a secret.
_SECRET_ANYWHERE = frozenset(
    ["secret", "passwd", "password", "passphrase", "passord", "apikey", "credential", "credentials"]
)
_SECRET_ENDINGS = _SECRET_ANYWHERE | frozenset(
    ["token", "secrets", "passwords", "pwd", "authorization", "auth", "bearer", "cookie", "cookies"]
)
_HARMLESS_ENDINGS = frozenset(
    ["file", "files", "path", "name", "names", "id", "ids", "count", "length", "policy", "hint", "class"]
)
_KEYS_OF = frozenset(
    ["api", "private", "access", "secret", "signing", "encryption", "auth", "client", "master", "ssh", "webhook",
     "service"]
)  # fmt: skip
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_STRING_OR_NAME = re.compile(rf"({_STRING.pattern})(\s*:\s*)?", re.DOTALL)  # a name has a colon behind it
_STRING_OR_BRACKET = re.compile(rf"{_STRING.pattern}|[\[\]{{}}]", re.DOTALL)
_BARE = re.compile(r"[^,\]}\s]+")

# https://user:password@host
_URL_PASSWORD = re.compile(r"(\b[a-z][a-z0-9+.-]{0,20}://[^\s/:@\"\\]{0,200}:)[^\s/@\"\\]+@", re.IGNORECASE)
_URL_PARAMETER = re.compile(r"([?&;]([A-Za-z0-9_.-]{1,60})=)[^&;#\s\"'\\<>]+")
# With a digit in it, so that a word of a text is no key. The look ahead is bounded: a hostile text must not cost the
# square of its length.
_LOOKS_LIKE_A_KEY = re.compile(
    r"\b(?:(?i:(bearer|basic)\s+)|sk-|whsec_|eyJ)(?=[\w.~+/=-]{0,60}[0-9])[\w.~+/=-]{12,}", re.ASCII
)
# The name alone: behind `error:` another name may stand.
_ASSIGNED = re.compile(r"\b([A-Za-z][\w.-]{1,60})['\"]?\s{0,3}[=:]\s{0,3}['\"]?", re.ASCII)
_ASSIGNED_VALUE = re.compile(r"[^\s'\",;&)\]}]+")


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether the value of a field of that name is to be hidden. Whole words count, also in camelCase."""
    words = [word.lower() for word in _WORD.findall(name)]
    if not words or words[-1] in _HARMLESS_ENDINGS:
        return False
    if words[-1] in ("key", "keys"):
        return len(words) == 1 or words[-2] in _KEYS_OF
    return words[-1] in _SECRET_ENDINGS or not _SECRET_ANYWHERE.isdisjoint(words)


def redact_json(json_text: str) -> str:
    """JSON text with what is secret hidden: still JSON, every other character as it came, numbers included."""
    kept: list[str] = []
    place = 0
    while found := _STRING_OR_NAME.search(json_text, place):
        start = end = found.end()
        if found[2] and is_secret_name(found[1][-_NAME_CHARACTERS:]):
            end = _end_of_value(json_text, start)
        kept.append(json_text[place:start])
        if end > start:
            kept.append("null" if json_text[start:end] == "null" else f'"{MASK}"')
        place = end
    kept.append(json_text[place:])
    return _without_keys("".join(kept))


def redact_text(text: str) -> str:
    """A message, note or traceback with credentials hidden, `password=…` and the like included."""
    text, kept, place = _without_keys(text), [], 0
    for found in _ASSIGNED.finditer(text):
        if found.start() >= place and is_secret_name(found[1]) and (value := _ASSIGNED_VALUE.match(text, found.end())):
            kept += [text[place : value.start()], MASK]
            place = value.end()
    return "".join([*kept, text[place:]])


def redact_value(value: Any, depth: int = 0) -> Any:
    """A JSON value as Python holds it, with what is secret hidden."""
    if depth > _DEEPEST:
        return MASK
    if isinstance(value, str):
        return _without_keys(value)
    if isinstance(value, dict):
        return {
            name: MASK if item is not None and is_secret_name(str(name)) else redact_value(item, depth + 1)
            for name, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [redact_value(item, depth + 1) for item in value]
    return value


def _without_keys(text: str) -> str:
    text = _URL_PASSWORD.sub(rf"\1{MASK}@", text)
    text = _URL_PARAMETER.sub(lambda found: f"{found[1]}{MASK}" if is_secret_name(found[2]) else found[0], text)
    return _LOOKS_LIKE_A_KEY.sub(lambda found: f"{found[1]} {MASK}" if found[1] else MASK, text)


def _end_of_value(text: str, start: int) -> int:
    """Where the JSON value that begins at `start` ends. Not recursive: depth costs nothing."""
    first = text[start : start + 1]
    if first not in ("{", "["):
        found = (_STRING if first == '"' else _BARE).match(text, start)
        return found.end() if found else start
    depth = 0
    for token in _STRING_OR_BRACKET.finditer(text, start):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token[0], 0)
        if depth == 0:
            return token.end()
    return len(text)
