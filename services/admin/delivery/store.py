"""What the forwarder asks of the database, and how it records what came of events."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
from psycopg.types.json import Jsonb

from services.admin.delivery.events import Event
from services.admin.delivery.settings import DeliverySettings, origin
from services.admin.delivery.sinks import Sink
from services.admin.settings import listed
from sidelinja_jobs.database import QueueConnection
from sidelinja_jobs.errors import NotFoundError
from sidelinja_jobs.queries import load_queries

_SQL = load_queries(Path(__file__).with_name("queries.sql"))


@dataclass(frozen=True)
class SinkRow:
    """How far a sink is. `disabled_reason` is None while it is enabled."""

    epoch: UUID
    cursor_xid: str
    cursor_id: int
    disabled_reason: str | None
    wait_seconds: float


@dataclass(frozen=True)
class SinkState:
    """Age in seconds of the oldest event that is not delivered, and how many wait and are parked."""

    lag_seconds: float
    waiting: int
    parked: int


@dataclass(frozen=True)
class Result:
    """What became of an event: delivered, skipped, failed, parked or waiting."""

    event: Event
    outcome: str
    wait_seconds: float = 0.0
    error: str = ""


@dataclass(frozen=True)
class Record:
    """All that one batch comes to, to be recorded whole or not at all."""

    row: SinkRow
    results: list[Result]
    wait_seconds: float | None = None
    wait_reason: str | None = None
    has_recovered: bool = False
    disable_reason: str | None = None


def open_sink(conn: QueueConnection, sink: Sink, settings: DeliverySettings) -> bool:
    """Takes a sink for this connection; false when another one has it."""
    parameters = {
        "name": sink.name,
        "kind": sink.kind,
        "address": origin(sink.url),
        "job_types": listed(settings.job_types),
        "statuses": listed(settings.statuses),
        "includes": listed(settings.include),
    }
    row = conn.execute(_SQL["open_sink"], parameters).fetchone()
    return row is not None and bool(row["is_ours"])


def read_sink(conn: QueueConnection, name: str) -> SinkRow:
    """
    Raises:
        NotFoundError: an operator has removed the sink.
    """
    row = conn.execute(_SQL["read_sink"], {"name": name}).fetchone()
    if row is None:
        raise NotFoundError(f"sink {name} was removed")
    return SinkRow(**row)


def next_events(conn: QueueConnection, name: str, limit: int) -> list[Event]:
    """Events that are due again and those after the cursor, at most `limit` of each, in the cursor's order."""
    rows = conn.execute(_SQL["next_events"], {"name": name, "limit": limit}).fetchall()
    return msgspec.convert(rows, list[Event])


def record(conn: QueueConnection, name: str, entry: Record) -> None:
    """
    Raises:
        psycopg.Error: JQ001 where the cursor is not where this batch began.
    """
    with conn.transaction():
        conn.execute(_SQL["record_deliveries"], _parameters(name, entry))
        if entry.disable_reason is not None:
            conn.execute(_SQL["disable_sink"], {"name": name, "reason": entry.disable_reason})


def read_state(conn: QueueConnection, name: str) -> SinkState | None:
    row = conn.execute(_SQL["sink_state"], {"name": name}).fetchone()
    return None if row is None else SinkState(**row)


def prove_alive(conn: QueueConnection) -> None:
    """
    Raises:
        psycopg.Error: the connection is gone, and with it the hold on the sink.
    """
    conn.execute(_SQL["prove_alive"])


def _parameters(name: str, entry: Record) -> dict[str, Any]:
    row = entry.row
    to_xid, to_id = _end(entry.results, row)
    results = [
        {
            "event_id": result.event.event_id,
            "job_id": str(result.event.job_id),
            "is_new": result.event.is_new,
            "outcome": result.outcome,
            "wait_seconds": result.wait_seconds,
            "error": result.error,
        }
        for result in entry.results
    ]
    return {
        "name": name,
        "from_xid": row.cursor_xid,
        "from_id": row.cursor_id,
        "to_xid": to_xid,
        "to_id": to_id,
        "results": Jsonb(results),
        "has_recovered": entry.has_recovered,
        "wait_seconds": entry.wait_seconds,
        "wait_reason": entry.wait_reason,
    }


def _end(results: Iterable[Result], row: SinkRow) -> tuple[str, int]:
    """Where the cursor goes: past all that are new, whatever came of them."""
    ends = [(int(result.event.xid), result.event.event_id) for result in results if result.event.is_new]
    xid, event_id = max(ends, default=(int(row.cursor_xid), row.cursor_id))
    return str(xid), event_id
