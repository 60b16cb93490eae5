"""What a model said of an episode: titles, summaries, chapters, quotes, people, and what it cost."""

from typing import Any
from uuid import UUID

import msgspec

from services.admin.views.transcript import clock


class Chapter(msgspec.Struct, frozen=True, kw_only=True):
    title: str
    start_s: float
    end_s: float | None = None

    @property
    def clock(self) -> str:
        return clock(self.start_s)


class Quote(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    speaker: str | None = None
    start_s: float | None = None

    @property
    def clock(self) -> str:
        return clock(self.start_s) if self.start_s is not None else ""


class Person(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    role: str | None = None
    known: bool = False


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """The transcript that was analysed."""

    job_id: UUID | None = None
    language: str | None = None
    duration_s: float | None = None


class Quality(msgspec.Struct, frozen=True, kw_only=True):
    warnings: list[str] = []
    unverified_names: list[str] = []
    dropped_quotes: int = 0
    dropped_chapters: int = 0
    dropped_names: int = 0


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """Cost is a decimal number as text, so that no digit is lost."""

    model_requested: str | None = None
    model_used: str | None = None
    provider: str | None = None
    prompt_version: str | None = None
    calls: int | None = None
    tokens: dict[str, Any] = {}
    cost_usd: str | float | None = None
    cost_source: str | None = None


class Analysis(msgspec.Struct, frozen=True, kw_only=True):
    """What the view shows of a result of openrouter_analyze."""

    schema_version: int
    title: str | None = None
    title_alternatives: list[str] = []
    summary_short: str | None = None
    summary_long: str | None = None
    keywords: list[str] = []
    topics: list[str] = []
    chapters: list[Chapter] = []
    quotes: list[Quote] = []
    hosts: list[Person] = []
    guests: list[Person] = []
    shownotes_md: str | None = None
    language: str | None = None
    transcript: Told = Told()
    quality: Quality = Quality()
    provenance: Provenance | None = None

    @property
    def paragraphs(self) -> list[str]:
        return [part for part in (self.summary_long or "").split("\n\n") if part.strip()]


def read_analysis(result: str) -> Analysis:
    """The analysis in a result.

    Raises:
        msgspec.ValidationError: it is none.
    """
    return msgspec.json.decode(result, type=Analysis)
