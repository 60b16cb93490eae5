"""Jobs for the admin view's tests, and what a page says, read as a person would."""

import html
import re
from typing import Any
from uuid import UUID, uuid4

from psycopg.types.json import Jsonb

from tests.databases import Database

TRANSCRIPT: dict[str, Any] = {
    "schema": 1,
    "text": "God dag. Vi snakker om tidevann. Takk for nå.",
    "language": "no",
    "language_source": "forced",
    "duration": 9.0,
    "segments": [
        {"id": 0, "start": 0.0, "end": 2.5, "text": "God dag.", "avg_logprob": -0.2},
        {"id": 1, "start": 2.5, "end": 6.0, "text": "Vi snakker om tidevann.", "avg_logprob": -0.95},
        {"id": 2, "start": 6.0, "end": 9.0, "text": "Takk for nå.", "avg_logprob": -0.1},
    ],
    "dropped": [{"start": 9.0, "end": 9.5, "text": "Teksting av NRK", "reason": "credit"}],
    "flags": ["low_density"],
    "notes": ["In some part people speak for long and little text was found."],
    "model": {"name": "base", "device": "cpu", "compute_type": "int8"},
    "source": {"path": "sample.mp3", "sha256": "0" * 64, "bytes": 1},
}
ANALYSIS: dict[str, Any] = {
    "schema_version": 1,
    "title": "Tidevann",
    "title_alternatives": ["Flo og fjære"],
    "summary_short": "Om tidevann.",
    "summary_long": "Første avsnitt.\n\nAndre avsnitt.",
    "keywords": ["hav"],
    "topics": [],
    "chapters": [{"title": "Begynnelsen", "start_s": 2.5, "end_s": 9.0}],
    "quotes": [{"text": "Vi snakker om tidevann.", "speaker": "Kari", "start_s": 2.5}],
    "hosts": [{"name": "Kari", "role": None}],
    "guests": [],
    "shownotes_md": "# Tidevann\n",
    "transcript": {"job_id": None, "language": "no"},
    "quality": {"warnings": ["few_chapters"]},
    "provenance": {"model_used": "x/y", "cost_usd": "0.00123", "tokens": {"prompt": 12}},
}
CLIP: dict[str, Any] = {
    "schema_version": 1,
    "clean_text": "Vannet steg 3 meter. Kari så på.",
    "markdown": "# Tittel\n\nVannet steg **3 meter**. [Kilde](https://example.no/a)\n\n- ett\n- to\n",
    "title": "Tittel",
    "source": {"url": "https://example.no/a", "author": "Ola"},
    "removed": [{"line": 4, "text": "Les også: mer", "reason": "teaser"}],
    "claims": [{"text": "Vannet steg.", "quote": "Vannet steg 3 meter.", "start": 0, "end": 20}],
    "facts": [{"subject": "vannet", "predicate": "steg", "value": "3", "unit": "meter", "start": 7, "end": 19}],
    "entities": [{"name": "Kari", "type": "person", "spans": [{"start": 21, "end": 25}]}],
    "quality": {"characters": 32, "characters_removed": 13, "warnings": []},
}
STATS: dict[str, Any] = {
    "v": 1,
    "lines": 1000,
    "counted_requests": 400,
    "excluded": {"bot": 600},
    "bad": {},
    "days": {"2026-11-28": {"counted_requests": 400, "listeners": 100}},
    "files": [{"name": "access.log", "lines": 1000, "state": "live"}],
    "lag_s": 12.5,
    "warnings": ["reprocessed"],
}
RESULTS = {
    "whisper_transcribe": TRANSCRIPT,
    "openrouter_analyze": ANALYSIS,
    "research_clip": CLIP,
    "stats_parse": STATS,
}


def completed(database: Database, job_type: str, result: object, payload: object = None) -> UUID:
    """A job that ended well."""
    return database.enqueue(
        job_type, payload=payload or {}, status="completed", result=Jsonb(result), started_at="2026-11-29 10:00+00",
        completed_at="2026-11-29 10:01+00",
    )  # fmt: skip


def failed(database: Database, message: str, error_class: str = "bad", job_type: str = "test_job") -> UUID:
    """A job in error."""
    return database.enqueue(
        job_type, status="error", error_msg=message, error_class=error_class, attempts=3,
        completed_at="2026-11-29 10:01+00",
    )  # fmt: skip


def said(page: str) -> str:
    """The words of a page, without its tags."""
    main = page.split("<main", 1)[-1].split("</main>")[0]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", main)).split())


def shown_ids(page: str) -> list[UUID]:
    """The jobs of a list, in its order."""
    return [UUID(found) for found in re.findall(r'<tr id="j([0-9a-f-]{36})"', page)]


def links(page: str) -> list[str]:
    """Where a page leads to on this site, to be read, sent or listened to."""
    return [html.unescape(link) for link in re.findall(r'(?:href|src|action|data-live-url)="([^"#]+)', page)]


def next_path(page: str) -> str | None:
    """Where the next page of a list is, None on the last one."""
    found = re.search(r'rel="next" href="([^"]+)"', page)
    return html.unescape(found[1]) if found else None


def as_of(page: str) -> str:
    """The moment of which a question asks, to be sent with the answer."""
    return page.partition('name="as_of" value="')[2].partition('"')[0]


def form(**values: object) -> dict[str, str]:
    """What a page's form sends."""
    return {"request_id": str(uuid4())} | {name: str(value) for name, value in values.items()}
