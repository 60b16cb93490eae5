"""The fault matrix: what the server does, and what has to become of the job.

A row names the faults that the job's calls meet, one each, in order; `…` repeats the one before it for ever. Then what
is to be seen after the first run, and, for a job that has a second one, after that.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from types import EllipsisType
from typing import Any

from tests.openrouter_standin import Fault, faults
from tests.services.openrouter_service import Seen

BACKOFF = (29.0, 31.0)  # the specification's 30 s after a first failure
DAY = 86_400.0
POEM = "Beklager, jeg skriver heller et dikt om fergene i nord og om alle som venter på dem, til de kommer i havn."


def hinted(seconds: float, *, set_before: float = 0) -> tuple[float, float]:
    """A wait that the server named is a floor; jitter on top of it, a fifth or five seconds, is allowed.

    `set_before`: a time of day is set when the table is made, so many seconds before its answer at most.
    """
    return (seconds - 1 - set_before, seconds + max(0.2 * seconds, 5) + 1)


@dataclass(frozen=True)
class Row:
    """`charged`: the first run cost an attempt. `calls` and `billed` count up to the end of the first run."""

    name: str
    faults: Callable[[], tuple[Fault | EllipsisType, ...]]
    status: str = "completed"
    error_class: str = ""
    charged: bool = False
    wait: tuple[float, float] | None = None
    calls: int = 1
    billed: int = 1
    second: str = "completed"  # the status after the second run
    billed_in_all: int = 1  # after it
    look: Callable[[Seen], None] | None = None


def completes(
    name: str, *meets: Fault | EllipsisType, calls: int = 1, billed: int = 1, look: Callable[[Seen], None] | None = None
) -> Row:
    return Row(name, lambda: meets, calls=calls, billed=billed, billed_in_all=billed, look=look)


def ends(
    name: str,
    error_class: str,
    *meets: Fault | EllipsisType,
    calls: int = 1,
    billed: int = 0,
    look: Callable[[Seen], None] | None = None,
) -> Row:
    """A permanent error, at once."""
    return Row(name, lambda: meets, "error", error_class, charged=True, calls=calls, billed=billed, look=look)


def fails(
    name: str,
    error_class: str,
    *meets: Fault | EllipsisType,
    wait: tuple[float, float] = BACKOFF,
    billed: int = 0,
    second: str = "completed",
    look: Callable[[Seen], None] | None = None,
) -> Row:
    """An ordinary failure: an attempt, then its backoff, then a second run."""
    return Row(
        name, lambda: meets, "retry", error_class, charged=True, wait=wait, billed=billed, second=second,
        billed_in_all=billed + (second == "completed"), look=look,
    )  # fmt: skip


def waits(name: str, wait: tuple[float, float], meets: Callable[[], Fault]) -> Row:
    """Come back later: no attempt, and not before the time that the server named."""
    return Row(name, lambda: (meets(),), "pending", wait=wait, billed=0)


def outage(name: str, *meets: Fault, look: Callable[[Seen], None] | None = None) -> Row:
    """Nobody can have paid for it, and no time was named: come back later all the same."""
    return Row(name, lambda: meets, "pending", wait=hinted(30), billed=0, look=look)


def repeated(fault: Fault) -> tuple[Fault | EllipsisType, ...]:
    return (fault, ...)


# What some rows look at.


def has_doubled_its_budget(seen: Seen) -> None:
    first, second = (call.max_tokens for call in seen.chats)
    assert first is not None
    assert second is not None
    assert second >= 2 * first * 0.99


def asked_for_another_format(seen: Seen) -> None:
    formats = [call.body["response_format"]["type"] for call in seen.chats]
    assert formats == ["json_schema", "json_object"]
    assert "JSON Schema" in seen.chats[1].text or '"summary_short"' in seen.chats[1].text


def lowered_its_budget(seen: Seen) -> None:
    assert seen.chats[0].max_tokens is not None
    assert seen.chats[1].max_tokens is not None
    assert seen.chats[1].max_tokens <= 3000 < seen.chats[0].max_tokens


def split_the_transcript(seen: Seen) -> None:
    assert seen.job["result"]["provenance"]["plan"] == "map_reduce"


def asked_about_what_was_wrong(seen: Seen) -> None:
    """The re-ask has the problems, and not the broken answer."""
    assert "JSON" in seen.chats[1].text
    assert POEM not in seen.chats[1].text


def cost_came_from(source: str, cost: str | None = None) -> Callable[[Seen], None]:
    def look(seen: Seen) -> None:
        told = seen.job["result"]["provenance"]
        assert told["cost_source"] == source, told
        expected = Decimal(cost) if cost else sum((one.cost for one in seen.billed), Decimal(0))
        assert Decimal(str(told["cost_usd"])) == expected
        assert seen.calls[-1]["cost_usd"] == expected

    return look


def says(words: str) -> Callable[[Seen], None]:
    def look(seen: Seen) -> None:
        told = seen.job["error_msg"] or seen.attempts[-1]["error_msg"]
        assert words in told, told

    return look


def kept_nothing_of_it(seen: Seen) -> None:
    """Half an answer is no answer."""
    assert seen.job["result"] is None
    assert [call["state"] for call in seen.calls] in (["failed"], ["unknown"])


def is_flagged_as_unknown(seen: Seen) -> None:
    assert [call["state"] for call in seen.calls] == ["unknown"]


def dropped(what: str, *reasons: str) -> Callable[[Seen], None]:
    def look(seen: Seen) -> None:
        counted = seen.job["result"]["quality"]["dropped"][what]
        assert counted
        assert all(counted[reason] == 1 for reason in reasons), counted

    return look


def has_clean_text(seen: Seen) -> None:
    result = seen.job["result"]
    assert result["title"].startswith("Fergene")
    assert not set("\0\u202e\u2066\ud83d") & set(json.dumps(result, ensure_ascii=False))


def names_the_model_that_answered(seen: Seen) -> None:
    told = seen.job["result"]["provenance"]
    assert told["model_used"] == "openai/gpt-small"
    assert told["model_requested"] == "google/gemini-2.5-flash"
    assert any("openai/gpt-small" in str(warning) for warning in seen.job["result"]["quality"]["warnings"])


# Edits of the answer.


def with_fields(name: str, **fields: Any) -> Fault:
    return faults.with_document(name, lambda document: document | fields)


def spoiled_title(document: dict[str, Any]) -> dict[str, Any]:
    return document | {"title": "Fergene\0 som \u202eikke\u2066 kommer \ud83d"}


def invented_quote(document: dict[str, Any]) -> dict[str, Any]:
    invented = {"block": "B1", "text": "Dette har ingen noen gang sagt i denne episoden, verken nå eller før."}
    return document | {"quotes": [*document["quotes"], invented]}


def strange_chapters(document: dict[str, Any]) -> dict[str, Any]:
    strange = [{"start_block": "B900", "title": "Finnes ikke"}]
    return document | {"chapters": [*reversed(document["chapters"]), *strange]}
