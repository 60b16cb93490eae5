"""Lines of an access log, made for tests, and the rules set up to read them."""

import json
from collections.abc import Iterable
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from services.stats.addresses import AddressBook, Networks
from services.stats.agents import AgentBook, OwnList
from services.stats.counting import Counting, Facts
from services.stats.coverage import Span, union_of
from services.stats.paths import Layout
from services.stats.tally import Tally, Window

OSLO = ZoneInfo("Europe/Oslo")
NOON = datetime.now(OSLO).replace(hour=12, minute=0, second=0, microsecond=0)  # of a day that is still open
SHOW = "Lyd"
FILE_BYTES = 1_440_561
CLIENT = "203.0.113.9"
APP = "AntennaPod/3.4.0"
_OWN_LIST = OwnList()


def line(
    uri: str = "/ep1.mp3",
    *,
    at: datetime | float = NOON,
    duration: Any = 0.5,
    method: str = "GET",
    status: int = 200,
    size: int | None = None,
    total: int = FILE_BYTES,
    part: tuple[int, int] | None = None,
    asked: str | None = None,
    agent: str | list[str] | None = APP,
    ip: str = CLIENT,
    host: str = "media.example.no",
    **fields: Any,
) -> bytes:
    """A line as Caddy 2.11 writes it; `at` is when the request began, `part` the first and last byte of a 206."""
    start = at.timestamp() if isinstance(at, datetime) else at
    headers: dict[str, list[str]] = {}
    if agent is not None:
        headers["User-Agent"] = [agent] if isinstance(agent, str) else agent
    if "referer" in fields:
        headers["Referer"] = [fields.pop("referer")]
    answered: dict[str, list[str]] = {"Content-Length": [str(total)]}
    if part is not None:
        status, length = 206, part[1] - part[0] + 1
        headers["Range"] = [f"bytes={part[0]}-{part[1]}"]
        answered = {"Content-Range": [f"bytes {part[0]}-{part[1]}/{total}"], "Content-Length": [str(length)]}
        size = length if size is None else size
    if asked is not None:
        headers["Range"] = [asked]
    request = {"remote_ip": ip, "client_ip": ip, "proto": "HTTP/1.1", "method": method, "host": host, "uri": uri}
    document = {
        "level": "info",
        "ts": start + duration if isinstance(duration, float) else start,
        "logger": "http.log.access.media",
        "msg": "handled request",
        "request": request | {"headers": headers} | fields.pop("request", {}),
        "duration": duration,
        "size": total if size is None else size,
        "status": status,
        "resp_headers": answered,
    } | fields
    return json.dumps(document, ensure_ascii=False).encode() + b"\n"


def layout(**fields: Any) -> Layout:
    return Layout(**({"show": SHOW} | fields))


def counting(
    *,
    deny: Iterable[str] = (),
    allow: Iterable[str] = (),
    published: dict[str, datetime] | None = None,
    totals: dict[str, int] | None = None,
    closed: Any = frozenset(),
    **fields: Any,
) -> Counting:
    """The rules of a source with the show `SHOW`; `fields` are the layout's."""
    facts = Facts(
        {(SHOW, name): at.timestamp() for name, at in (published or {}).items()},
        {(SHOW, name): total for name, total in (totals or {}).items()},
    )
    addresses = AddressBook(Networks(deny), Networks(allow))
    return Counting(layout(**fields), "Europe/Oslo", AgentBook(_OWN_LIST), addresses, facts=facts, closed=closed)


def tally_of(*lines: bytes, rules: Counting | None = None, **fields: Any) -> Tally:
    """What the rules make of lines."""
    rules = rules or counting(**fields)
    rules.read(b"".join(lines))
    return rules.take()


def verdicts(*lines: bytes, **fields: Any) -> dict[str, int]:
    """How many lines were counted or left out, by reason."""
    tally = tally_of(*lines, **fields)
    assert tally.lines == tally.counted + sum(tally.by_reason().values()) + tally.bad.total()  # always
    found = dict(tally.by_reason()) | dict(tally.bad)
    return found | ({"counted": tally.counted} if tally.counted else {})


def windows(*lines: bytes, **fields: Any) -> list[tuple[tuple[Any, ...], Window]]:
    """All windows with their keys: day, episode, file size, agent, address."""
    found = tally_of(*lines, **fields).days.items()
    return [((day, *key), window) for day, today in found for key, window in today.windows.items()]


def spans(*lines: bytes, **fields: Any) -> list[Span]:
    """The bytes that the one window has."""
    ((_, window),) = windows(*lines, **fields)
    return spans_of(window)


def spans_of(window: Window) -> list[Span]:
    """All bytes of a window, as disjoint spans in order; the database unites them so."""
    return union_of([(window.first, window.end), *(window.apart or ())])


def days(*lines: bytes) -> list[date]:
    return sorted(key[0] for key, _ in windows(*lines))


def listeners(*lines: bytes) -> int:
    """How many different keys of agent and address have a window."""
    return len({key[3:] for key, _ in windows(*lines)})


def names(*lines: bytes, **fields: Any) -> set[str]:
    return {key[1].name for key, _ in windows(*lines, **fields)}
