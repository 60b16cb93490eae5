"""Writes one batch: windows, what was left out, and the position, in the caller's transaction.

The position is written last and names the place the batch began at, under the lock of the source's row. So whatever
runs beside this, crashes or is repeated, each line is counted once.
"""

import secrets
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import psycopg

from services.stats.agents import UNKNOWN, Agent, subscribers_of
from services.stats.columns import Hashes, app_of, window_columns
from services.stats.counting import LATE
from services.stats.log_files import LogFile
from services.stats.tally import DayTally, Tally
from sidelinja_jobs.json_text import clean_text
from sidelinja_jobs.queries import load_queries

SQL = load_queries(Path(__file__).with_name("queries.sql"))
_AGENT_CHARACTERS = 300  # of an unknown agent that is listed

Connection = psycopg.Connection[Any]


class PositionMovedError(Exception):
    """Another parser has read these lines meanwhile."""


class DayClosedError(Exception):
    """A day of the batch was closed meanwhile; its lines are late now."""


@dataclass(frozen=True)
class Batch:
    """Lines of one file from `start` to `end`, counted."""

    file: LogFile
    start: int
    end: int
    size_seen: int
    state: str
    tally: Tally


class Store:
    """Of one source. Remembers the days' keys for as long as it lives."""

    def __init__(self, source: str, list_version: str) -> None:
        self._source, self._list_version = source, list_version
        self._hashes: dict[tuple[date, int], Hashes] = {}

    def write(self, conn: Connection, batch: Batch) -> None:
        """Writes a batch.

        Raises:
            PositionMovedError, DayClosedError: nothing may be committed; read again from the position there is now.
        """
        tally = batch.tally
        place = {"source": self._source, "fingerprint": batch.file.fingerprint, "name": clean_text(batch.file.name)}
        conn.execute(SQL["lock_source"], place)
        conn.execute(SQL["add_file"], place)
        self._advance(conn, batch, place)
        generations = _open_days(conn, tally)
        self.stage(conn, tally, generations)
        if tally.bad_lines:
            columns = zip(*((bad.offset, bad.reason, bad.sample) for bad in tally.bad_lines), strict=True)
            conn.execute(
                SQL["add_bad_lines"],
                place | dict(zip(("offsets", "reasons", "samples"), map(list, columns), strict=True)),
            )

    def _advance(self, conn: Connection, batch: Batch, place: dict[str, Any]) -> None:
        days = batch.tally.days.keys()
        moved = conn.execute(
            SQL["advance"],
            place
            | {
                "start": batch.start, "end": batch.end, "size_seen": batch.size_seen, "state": batch.state,
                "lines": batch.tally.lines, "bad": batch.tally.bad.total(),
                "first_day": min(days, default=None), "last_day": max(days, default=None),
            },
        ).fetchone()  # fmt: skip
        if moved is None:
            raise PositionMovedError

    def stage(self, conn: Connection, tally: Tally, generations: Mapping[date, int]) -> None:
        """Writes what a batch has of these days into their generations, without moving a position."""
        self._learn_keys(conn, generations)
        for day, today in tally.days.items():
            generation = generations.get(day)
            if generation is not None:
                self._write_day(conn, today, tally.allowed, {"day": day, "generation": generation})
            if today.excluded:
                rows = sorted(today.excluded.items())
                place = {"day": day, "generation": generation}
                conn.execute(SQL["add_excluded"], place | _columns(("reasons", "requests"), rows))

    def _learn_keys(self, conn: Connection, generations: Mapping[date, int]) -> None:
        missing = [
            (day, generation) for day, generation in generations.items() if (day, generation) not in self._hashes
        ]
        if missing:
            rows = [(day, generation, secrets.token_bytes(32)) for day, generation in missing]
            conn.execute(SQL["add_salts"], _columns(("days", "generations", "keys"), rows))
            found = conn.execute(SQL["salts"], {"days": [day for day, _ in missing]}).fetchall()
            self._hashes |= {(row["day"], row["generation"]): Hashes(bytes(row["key"])) for row in found}

    def _write_day(self, conn: Connection, today: DayTally, allowed: Set[bytes], place: dict[str, Any]) -> None:
        if today.windows:
            hashes = self._hashes[place["day"], place["generation"]]
            columns = window_columns(today.windows, hashes, allowed)
            conn.execute(SQL["add_windows"], columns | place | {"list_version": self._list_version})
        if today.feeds:
            rows = [
                (feed.name, app_of(agent), count, subscribers_of(agent.text))
                for (feed, agent), count in today.feeds.items()
            ]
            conn.execute(SQL["add_feeds"], place | _columns(("feeds", "apps", "requests", "subscribers"), rows))
        unknown = _unknown_agents(today)
        if unknown:
            conn.execute(SQL["add_unknown_agents"], place | _columns(("agents", "requests"), unknown))


def _open_days(conn: Connection, tally: Tally) -> dict[date, int]:
    """The generation of each of the batch's days, whose rows are locked; late lines alone need no open day."""
    wanted = sorted(day for day, today in tally.days.items() if today.windows or set(today.excluded) - {LATE})
    opened = {row["day"]: row["generation"] for row in conn.execute(SQL["open_days"], {"days": wanted}).fetchall()}
    if len(opened) < len(wanted):
        raise DayClosedError
    return opened


def _unknown_agents(today: DayTally) -> list[tuple[str, int]]:
    requests: Counter[Agent] = Counter()
    for key, window in today.windows.items():
        if key[2].kind == UNKNOWN:
            requests[key[2]] += window.requests
    return [(clean_text(agent.text[:_AGENT_CHARACTERS]), count) for agent, count in requests.items()]


def _columns(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> dict[str, list[Any]]:
    return {name: [row[index] for row in rows] for index, name in enumerate(names)}
