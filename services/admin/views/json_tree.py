"""Any JSON as a tree to fold out, cut at a size that a browser bears. Numbers stand as they were written."""

import json
from dataclasses import dataclass, field
from typing import Any

import msgspec

from sidelinja_jobs.cli.exits import RefusedError
from sidelinja_jobs.cli.payloads import Number, parsed

MOST_NODES = 400
DEEPEST = 8
LONGEST_TEXT = 500
LONGEST_NAME = 100


@dataclass(frozen=True)
class Node:
    """A value: a leaf with its text, or a branch. `left_out` counts members that are not shown."""

    name: str
    kind: str
    text: str = ""
    children: list["Node"] = field(default_factory=list)
    left_out: int = 0
    is_cut: bool = False


def tree(json_text: str) -> Node:
    """The tree of a JSON text; of one that is nested too deep, its beginning as text."""
    try:
        value = parsed(json_text)
    except RefusedError:
        return Node("", "text", json_text[:LONGEST_TEXT], is_cut=True)
    budget = [MOST_NODES]
    return _node("", value, 0, budget)


def pretty(json_text: str) -> str:
    """JSON text with indentation, numbers untouched; as it came where it is nested too deep."""
    try:
        return msgspec.json.format(json_text.encode(), indent=2).decode()
    except (RecursionError, msgspec.DecodeError):
        return json_text


def _node(name: str, value: Any, depth: int, budget: list[int]) -> Node:
    budget[0] -= 1
    name = name[:LONGEST_NAME]
    if isinstance(value, dict | list):
        kind = "object" if isinstance(value, dict) else "array"
        members = list(value.items()) if isinstance(value, dict) else [(str(i), item) for i, item in enumerate(value)]
        children: list[Node] = []
        for key, member in members:
            if budget[0] <= 0 or depth >= DEEPEST:
                break
            children.append(_node(str(key), member, depth + 1, budget))
        return Node(name, kind, str(len(members)), children, left_out=len(members) - len(children))
    if isinstance(value, Number):
        return Node(name, "number", value[:LONGEST_TEXT], is_cut=len(value) > LONGEST_TEXT)
    if isinstance(value, str):
        return Node(name, "text", value[:LONGEST_TEXT], is_cut=len(value) > LONGEST_TEXT)
    return Node(name, "word", json.dumps(value))
