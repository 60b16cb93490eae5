"""The payload of a stats_parse job. Unknown fields are refused."""

from typing import Annotated

import msgspec


class StatsPayload(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Everything has a default: all sources, from where they were left."""

    source: Annotated[
        Annotated[str, msgspec.Meta(min_length=1, max_length=100)] | None,
        msgspec.Meta(description="a log source; all that are enabled where none is named"),
    ] = None
