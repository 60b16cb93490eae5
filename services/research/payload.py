"""The payload of a research_clip job. Unknown fields are refused."""

from datetime import datetime
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

Mode = Literal["auto", "clean_only", "full"]
Id = str | int | None
MOST_TEXT_BYTES = 1_000_000
MOST_HTML_BYTES = 5_000_000


class ClipPayload(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What the clipboard held, as text, as HTML or as both; every other field has a default."""

    text: Annotated[str, msgspec.Meta(description="the paste as text; HTML or Markdown is told by itself")] = ""
    html: Annotated[str | None, msgspec.Meta(description="the paste as HTML, where the clipboard had it")] = None
    source_url: Annotated[str, msgspec.Meta(max_length=2000)] | None = None
    pasted_at: Annotated[
        datetime | None, msgspec.Meta(description="when it was pasted: what «i går» in the text is counted from")
    ] = None
    user_tz: Annotated[str, msgspec.Meta(max_length=64, description="the person's time zone")] = "Europe/Oslo"
    note: Annotated[str, msgspec.Meta(max_length=10_000, description="passed on unchanged")] | None = None
    mode: Annotated[
        Mode, msgspec.Meta(description="auto: with a model where there is one; clean_only: without; full: with one")
    ] = "auto"
    output_language: Annotated[
        Literal["nb", "nn", "en"] | None, msgspec.Meta(description="of the model's words; else the text's")
    ] = None
    tema_id: Annotated[Id, msgspec.Meta(description="ids of the surrounding system are passed on unchanged")] = None
    clip_id: Id = None
    episode_id: Id = None
    enrich_job_id: (
        Annotated[str, msgspec.Meta(max_length=36, description="the job whose clip this one lets a model describe")]
        | None
    ) = None

    def __post_init__(self) -> None:
        if not self.text.strip() and not (self.html or "").strip():
            raise ValueError("expected text or html with something in it")
        try:
            ZoneInfo(self.user_tz)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ValueError(f"user_tz {self.user_tz!r} is no time zone, expected such as Europe/Oslo") from error

    @property
    def pasted_there(self) -> datetime | None:
        """The moment of pasting on the person's clock."""
        if self.pasted_at is None:
            return None
        zone = ZoneInfo(self.user_tz)
        return self.pasted_at.astimezone(zone) if self.pasted_at.tzinfo else self.pasted_at.replace(tzinfo=zone)

    @property
    def ids(self) -> dict[str, str | int]:
        """The ids that were given."""
        named: dict[str, Id] = {
            "tema_id": self.tema_id,
            "clip_id": self.clip_id,
            "episode_id": self.episode_id,
            "enrich_job_id": self.enrich_job_id,
        }
        return {name: value for name, value in named.items() if value is not None}
