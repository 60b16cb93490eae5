"""Enqueue: inside the caller's own transaction, on the caller's own connection.

A plain `INSERT INTO job_queue (job_type, payload)` does the same; these add the unique key and clear refusals.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import psycopg
from psycopg.rows import tuple_row

from sidelinja_jobs.errors import RefusedError, translate
from sidelinja_jobs.json_text import as_jsonb, clean_text, encode_payload
from sidelinja_jobs.queries import load_queries

_SQL = load_queries(Path(__file__).with_name("queries.sql"))
_SMALLINT = range(-32768, 32768)


@dataclass(frozen=True)
class Enqueued:
    """`outcome`: created; exists (a job with the key waits, nothing changed); rerun (one runs, another follows)."""

    id: UUID
    outcome: str


def enqueue(
    conn: psycopg.Connection[Any],
    job_type: str,
    payload: Any,
    *,
    priority: int = 0,
    scheduled_for: datetime | None = None,
    max_attempts: int = 3,
    unique_key: str | None = None,
    parent_id: UUID | None = None,
) -> Enqueued:
    """Enqueues one job. It exists when the caller's transaction commits.

    Commit soon when the key may be running: its row is locked until then, and its heartbeat waits.

    Args:
        payload: a dict, or a msgspec struct.
        priority: higher is sooner, -32768 to 32767.
        scheduled_for: with a time zone; None = now.
        unique_key: at most one waiting or running job per type and key.

    Raises:
        RefusedError: something in it cannot be queued; the message says what and where.
        NotAllowedError: the login may not enqueue this type.
    """
    arguments = _arguments(job_type, priority, scheduled_for, max_attempts, parent_id)
    row = _fetch(
        conn,
        "enqueue_job",
        {**arguments, "payload": as_jsonb(_encoded(payload)), "unique_key": _text(unique_key)},
    )[0]
    return Enqueued(id=row[0], outcome=row[1])


def enqueue_many(
    conn: psycopg.Connection[Any],
    job_type: str,
    payloads: Sequence[Any],
    *,
    priority: int = 0,
    scheduled_for: datetime | None = None,
    max_attempts: int = 3,
    parent_id: UUID | None = None,
) -> list[UUID]:
    """Enqueues many jobs of one type in one statement; ids and, later, claims come in the order of the payloads.

    Raises:
        RefusedError, NotAllowedError: as `enqueue`; then none of them is queued.
    """
    arguments = _arguments(job_type, priority, scheduled_for, max_attempts, parent_id)
    checked = []
    for index, payload in enumerate(payloads):
        try:
            checked.append(_encoded(payload))
        except RefusedError as error:
            raise RefusedError(f"payload {index} of {len(payloads)}: {error}") from error
    rows = _fetch(conn, "enqueue_jobs", {**arguments, "payloads": as_jsonb(checked)}) if checked else []
    return [row[0] for row in rows]


def _encoded(payload: Any) -> msgspec.Raw:
    try:
        return encode_payload(payload)
    except (TypeError, RecursionError, OverflowError) as error:
        raise RefusedError(f"payload cannot become JSON: {error}") from error


def _text(text: str | None) -> str | None:
    if text is not None and not _is_name(text, 500):
        raise RefusedError("unique_key must have 1 to 500 characters, without NUL and lone surrogates")
    return text


def _is_name(text: str, limit: int) -> bool:
    return 0 < len(text) <= limit and clean_text(text) == text


def _arguments(
    job_type: str, priority: int, scheduled_for: datetime | None, max_attempts: int, parent_id: UUID | None
) -> dict[str, Any]:
    if not _is_name(job_type, 200):
        raise RefusedError("job_type must have 1 to 200 characters, without NUL and lone surrogates")
    if type(priority) is not int or priority not in _SMALLINT:  # True is an int to Python
        raise RefusedError(f"priority is {priority}, expected a whole number from -32768 to 32767")
    if type(max_attempts) is not int or max_attempts not in range(1, 32768):
        raise RefusedError(f"max_attempts is {max_attempts}, expected a whole number from 1 to 32767")
    if scheduled_for is not None:
        if scheduled_for.tzinfo is None:
            raise RefusedError(f"scheduled_for {scheduled_for.isoformat()} has no time zone")
        if not 2000 <= scheduled_for.year < 2200:
            raise RefusedError(f"scheduled_for {scheduled_for.isoformat()} lies outside the years 2000 to 2199")
    return {
        "job_type": job_type,
        "priority": priority,
        "scheduled_for": scheduled_for,
        "max_attempts": max_attempts,
        "parent_id": parent_id,
    }


def _fetch(conn: psycopg.Connection[Any], statement: str, arguments: dict[str, Any]) -> list[tuple[Any, ...]]:
    try:
        with conn.cursor(row_factory=tuple_row) as cursor:
            return cursor.execute(_SQL[statement], arguments).fetchall()
    except psycopg.Error as error:
        if (ours := translate(error)) is not None:
            raise ours from error
        raise
