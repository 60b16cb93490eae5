"""The page at /api/v1/docs: the same table of operations, for people. Made on the server, readable without scripts."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import msgspec

from services.admin.api.documentation import parameters_of
from services.admin.api.operations import PREFIX, Operation
from services.admin.api.problems import KINDS

Document = dict[str, Any]

_templates = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
)


def page(operations: Sequence[Operation], root_path: str) -> str:
    """The page; `root_path` is the prefix that a proxy serves us below."""
    kinds = {kind for operation in operations for kind in (operation.takes, operation.gives) if kind}
    _, components = msgspec.json.schema_components(
        sorted(kinds, key=lambda kind: kind.__name__), ref_template="#{name}"
    )
    return _templates.get_template("manual.html").render(
        operations=operations,
        parameters={operation.name: parameters_of(operation) for operation in operations},
        structs={name: schema for name, schema in sorted(components.items()) if "properties" in schema},
        problems=KINDS,
        prefix=PREFIX,
        root_path=root_path,
        shape=shape,
    )


def shape(schema: Mapping[str, Any]) -> str:
    """A schema in a few words: integer from 1 to 200, array of string, string or null."""
    if reference := schema.get("$ref"):
        return str(reference).removeprefix("#").rpartition("/")[2]
    if choices := schema.get("anyOf"):
        return " or ".join(shape(choice) for choice in choices)
    if values := schema.get("enum"):
        return " | ".join(map(str, values))
    if schema.get("type") == "array":
        return f"list of {shape(schema['items'])}"
    name = str(schema.get("format") or schema.get("type") or "any JSON")
    if "minimum" in schema or "maximum" in schema:
        return f"{name} from {schema.get('minimum', '…')} to {schema.get('maximum', '…')}"
    if "maxLength" in schema:
        return f"{name}, at most {schema['maxLength']} characters"
    return name
