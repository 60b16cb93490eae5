"""Reads queries.sql files: blocks that begin with a line `-- name: NAME`, further comment lines say why."""

import re
from functools import cache
from pathlib import Path
from typing import LiteralString, cast

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_WHY = re.compile(r"\A(--.*\n)+")  # comments for the reader of the file, not for the server


@cache
def load_queries(path: Path) -> dict[str, LiteralString]:
    """The statements of a file by name.

    Raises:
        ValueError: a name stands twice.
    """
    parts = _NAME.split(path.read_text(encoding="utf-8"))[1:]
    names, bodies = parts[::2], parts[1::2]
    if len(set(names)) != len(names):
        raise ValueError(f"{path}: a name stands twice")
    # Text of a file that ships with the code, never of a user: what LiteralString asks for.
    return cast(
        dict[str, LiteralString], dict(zip(names, (_WHY.sub("", body.strip()) for body in bodies), strict=True))
    )
