"""The JSON Schema of a payload, as a worker publishes it when it registers."""

from typing import Any

import msgspec

ORDER = "x-order"  # jsonb sorts the names of an object; forms show the fields as the worker's code has them


def payload_schema(payload_type: Any) -> dict[str, Any]:
    """The schema of a type that msgspec reads; each object with named fields lists them in their order, too."""
    schema = msgspec.json.schema(payload_type)
    for part in (schema, *schema.get("$defs", {}).values()):
        if "properties" in part:
            part[ORDER] = list(part["properties"])
    return schema
