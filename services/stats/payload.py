"""The payload of a stats_parse job. Unknown fields are refused."""

from datetime import date
from typing import Annotated

import msgspec

_MOST_DAYS = 400


class Reprocess(msgspec.Struct, forbid_unknown_fields=True, frozen=True, rename={"first": "from", "last": "to"}):
    """Days to count again from the raw files, which must all be there."""

    first: Annotated[date, msgspec.Meta(description="the first day")]
    last: Annotated[date, msgspec.Meta(description="the last day")]
    note: Annotated[str, msgspec.Meta(max_length=500, description="why; kept with the days")] = "counted again"

    def __post_init__(self) -> None:
        if not 0 <= (self.last - self.first).days < _MOST_DAYS:
            raise ValueError(
                f"reprocess goes from {self.first} to {self.last}, expected 1 to {_MOST_DAYS} days in order"
            )


class StatsPayload(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Everything has a default: all sources, from where they were left."""

    source: Annotated[
        Annotated[str, msgspec.Meta(min_length=1, max_length=100)] | None,
        msgspec.Meta(description="a log source; all that are enabled where none is named"),
    ] = None
    reprocess: Annotated[Reprocess | None, msgspec.Meta(description="count days again, of all sources")] = None

    def __post_init__(self) -> None:
        if self.reprocess is not None and self.source is not None:
            raise ValueError("reprocess counts the days of all sources again; leave source out")
