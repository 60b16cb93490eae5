"""A first look at a payload with the schema that the worker has published: unknown, missing and mistyped fields, and
values that are out of bounds.

The worker checks everything again when it takes the job, with rules that no schema can say. This catches the slip of
the hand while the person still sits before the keyboard.
"""

import difflib
import json
import operator
from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

_KINDS: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: type(value) is str,
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    # Numbers are kept as they were written: a str of a class of its own.
    "number": lambda value: isinstance(value, str) and type(value) is not str,
    "integer": lambda value: isinstance(value, str) and type(value) is not str and "." not in value,
}
_DEEPEST = 20
_SHOWN = 12  # values of a list of choices that a message names
# Kind of the value -> bound of the schema -> whether what is found keeps to it, and the words for it.
_BOUNDS: dict[str, dict[str, tuple[Callable[[Any, Any], bool], str]]] = {
    "string": {
        "minLength": (operator.ge, "has {} characters, expected at least {}"),
        "maxLength": (operator.le, "has {} characters, expected at most {}"),
    },
    "array": {
        "minItems": (operator.ge, "has {} members, expected at least {}"),
        "maxItems": (operator.le, "has {} members, expected at most {}"),
    },
    "number": {
        "minimum": (operator.ge, "is {}, expected {} or more"),
        "maximum": (operator.le, "is {}, expected {} or less"),
        "exclusiveMinimum": (operator.gt, "is {}, expected more than {}"),
        "exclusiveMaximum": (operator.lt, "is {}, expected less than {}"),
    },
}


def problems(value: Any, schema: dict[str, Any]) -> list[str]:
    """What a worker would refuse at first sight, each with its place."""
    return list(_problems("payload", value, schema, schema, 0))


def wants_text(schema: dict[str, Any] | None, key: str, value: str) -> bool:
    """Whether what was typed for this field is text even if it looks like another JSON value: prompt=12."""
    if schema is None:
        return False
    field = _resolved(schema, schema).get("properties", {}).get(key, {})
    types = _types(_resolved(field, schema))
    return types == {"string"} or (types == {"string", "null"} and value != "null")


def _problems(place: str, value: Any, schema: dict[str, Any], root: dict[str, Any], depth: int) -> Iterator[str]:
    schema = _resolved(schema, root)
    expected = _types(schema)
    if expected and not any(_KINDS[name](value) for name in expected if name in _KINDS):
        yield f"{place} is {_kind(value)}, expected {' or '.join(sorted(expected))}"
        return
    yield from (f"{place} {problem}" for problem in _value_problems(value, schema))
    if depth < _DEEPEST and (chosen := _choice(value, schema, root)) is not None:
        yield from _problems(place, value, chosen, root, depth + 1)
    elif depth < _DEEPEST and isinstance(value, dict):
        yield from _field_problems(place, value, schema, root, depth)
    elif depth < _DEEPEST and isinstance(value, list) and isinstance(schema.get("items"), dict):
        for index, member in enumerate(value):
            yield from _problems(f"{place}[{index}]", member, schema["items"], root, depth + 1)


def _field_problems(
    place: str, value: dict[str, Any], schema: dict[str, Any], root: dict[str, Any], depth: int
) -> Iterator[str]:
    fields = schema.get("properties", {})
    for name in schema.get("required", []):
        if name not in value:
            yield f"{place}.{name} is missing"
    for name, member in value.items():
        if name in fields:
            yield from _problems(f"{place}.{name}", member, fields[name], root, depth + 1)
        elif schema.get("additionalProperties") is False:
            close = difflib.get_close_matches(name, fields, n=1)
            hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(sorted(fields))}"
            yield f"{place}.{name} is not a known field ({hint})"


def _value_problems(value: Any, schema: dict[str, Any]) -> Iterator[str]:
    """What the schema says of a single value: its choices, its size."""
    choices = schema.get("enum")
    if isinstance(choices, list) and not any(_is_same(value, choice) for choice in choices):
        named = ", ".join(json.dumps(choice, ensure_ascii=False) for choice in choices[:_SHOWN])
        yield f"is none of {named}{', …' if len(choices) > _SHOWN else ''}"
    for kind, bounds in _BOUNDS.items():
        if _KINDS[kind](value):
            found = _number(value) if kind == "number" else Decimal(len(value))
            for name, (keeps_to, words) in bounds.items():
                bound = schema.get(name)
                if isinstance(bound, int | float) and not keeps_to(found, bound):
                    yield words.format(value if kind == "number" else found, bound)


def _choice(value: Any, schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any] | None:
    """Of several schemas the only one that a value of this kind can mean."""
    choices = schema.get("anyOf")
    if not isinstance(choices, list):
        return None
    fitting = [
        choice
        for choice in (_resolved(choice, root) for choice in choices)
        if not (types := _types(choice)) or any(_KINDS[name](value) for name in types if name in _KINDS)
    ]
    return fitting[0] if len(fitting) == 1 else None


def _is_same(value: Any, choice: Any) -> bool:
    """Whether a value, with numbers as they were written, is one of JSON."""
    if _KINDS["number"](value):
        is_number = isinstance(choice, int | float) and not isinstance(choice, bool)
        return is_number and _number(value) == choice
    return type(value) is type(choice) and bool(value == choice)


def _number(text: str) -> Decimal:
    """Exactly: a float would take 2^63-1 for 2^63."""
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent beyond all sense
        return Decimal(float(text))


def _resolved(schema: Any, root: dict[str, Any]) -> dict[str, Any]:
    """The schema that a reference within the document points to."""
    for _ in range(_DEEPEST):
        if not isinstance(schema, dict):
            return {}
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return schema
        target: Any = root
        for part in reference[2:].split("/"):
            target = target.get(part, {}) if isinstance(target, dict) else {}
        schema = target
    return {}


def _types(schema: dict[str, Any]) -> set[str]:
    """The types a schema names; empty where it leaves more open than this can tell."""
    named = schema.get("type")
    if isinstance(named, str):
        return {named}
    if isinstance(named, list):
        return set(named)
    if isinstance(choices := schema.get("anyOf"), list) and all("type" in choice for choice in choices):
        return set().union(*(_types(choice) for choice in choices))
    return set()


def _kind(value: Any) -> str:
    return next((name for name, fits in _KINDS.items() if fits(value)), "something else")
