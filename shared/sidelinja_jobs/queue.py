"""The queue's functions as Python calls. Everything that the rules say is said in db/init; here is only the calling."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import starmap
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID

import msgspec
import psycopg
from psycopg.rows import tuple_row

from sidelinja_jobs.database import QueueConnection
from sidelinja_jobs.errors import translate
from sidelinja_jobs.json_text import as_jsonb, clean_text
from sidelinja_jobs.models import Checkpoint, Claim, Rules, Settled
from sidelinja_jobs.queries import load_queries

ERROR_LIMIT = 8000  # characters of an error message, as db/init/0006_settle.sql cuts it
TRACEBACK_LIMIT = 32000
_SQL = load_queries(Path(__file__).with_name("queries.sql"))


class Held(Protocol):
    """A run that is held: which job, and with which token."""

    @property
    def id(self) -> UUID: ...
    @property
    def lease_token(self) -> UUID: ...


def register(
    conn: QueueConnection,
    worker_id: str,
    job_type: str,
    version: str,
    host: str,
    pid: int,
    payload_schema: Any,
) -> Rules:
    """Registers a worker and returns the rules of its type. Raises NotAllowedError when it may not work the type."""
    schema = None if payload_schema is None else as_jsonb(payload_schema)
    row = _call(conn, "register_worker", worker_id=worker_id, job_type=job_type, version=version, host=host, pid=pid,
                payload_schema=schema)[0]  # fmt: skip
    return Rules(**row)


def claim(conn: QueueConnection, job_type: str, worker_id: str, limit: int) -> list[Claim]:
    """Claims up to `limit` due jobs, most important first."""
    arguments = {"job_type": job_type, "worker_id": worker_id, "limit": limit}
    with _ours(), conn.cursor(row_factory=tuple_row) as cursor:
        return list(starmap(Claim, cursor.execute(_SQL["claim_jobs"], arguments).fetchall()))


def extend(
    conn: QueueConnection, runs: Sequence[Held], progress: Sequence[tuple[float | None, str | None]]
) -> dict[UUID, bool]:
    """Heartbeat of all held runs. Returns the runs that are still held, and whether their cancel was requested."""
    rows = _call(
        conn,
        "extend_leases",
        **_keys(runs),
        progress=[fraction for fraction, _ in progress],
        notes=[None if note is None else clean_text(note, 500) for _, note in progress],
    )
    return {row["job_id"]: row["cancel_requested_at"] is not None for row in rows}


def confirm(conn: QueueConnection, run: Held) -> None:
    """Raises LeaseLostError when the run is no longer held."""
    _call(conn, "confirm_run", job_id=run.id, lease_token=run.lease_token)


def write_checkpoint(conn: QueueConnection, run: Held, data: Any, seq: int) -> None:
    """Appends checkpoint number `seq`; writing it again after a broken connection does nothing."""
    _call(conn, "write_checkpoint", job_id=run.id, lease_token=run.lease_token, data=as_jsonb(data), seq=seq)


def read_checkpoints(conn: QueueConnection, run: Held) -> list[Checkpoint]:
    """All checkpoints of the job, in order."""
    rows = _call(conn, "read_checkpoints", job_id=run.id, lease_token=run.lease_token)
    return [Checkpoint(**row) for row in rows]


def drop_checkpoints(conn: QueueConnection, run: Held) -> None:
    """Removes the job's checkpoints: the work starts again from nothing."""
    _call(conn, "drop_checkpoints", job_id=run.id, lease_token=run.lease_token)


def complete(conn: QueueConnection, run: Held, result: Any) -> None:
    """Ends the run well; last statement of its transaction. Raises LeaseLostError."""
    _call(conn, "complete_job", job_id=run.id, lease_token=run.lease_token, result=as_jsonb(result))


def complete_many(conn: QueueConnection, runs: Sequence[Held], results: Sequence[msgspec.Raw]) -> set[UUID]:
    """Ends many runs well, each under its own fence; `results` are JSON.

    Returns:
        the jobs whose run was lost: of those nothing was written.
    """
    ended = sorted(
        zip(runs, results, strict=True), key=lambda each: each[0].id.int
    )  # the order in which rows are locked
    rows = _call(
        conn, "complete_runs", **_keys([run for run, _ in ended]), results=as_jsonb([each for _, each in ended])
    )
    return {row["job_id"] for row in rows}


def release_many(conn: QueueConnection, runs: Sequence[Held], reason: str) -> dict[UUID, str]:
    """Puts jobs back unharmed, or ends those whose cancel was requested.

    Returns:
        the status of each job that was still held.
    """
    rows = _call(conn, "release_jobs", **_keys(runs), reason=clean_text(reason, ERROR_LIMIT))
    return {row["job_id"]: row["status"] for row in rows}


def fail(
    conn: QueueConnection,
    run: Held,
    error_class: str,
    message: str,
    *,
    traceback: str | None = None,
    permanent: bool = False,
    retry_after_seconds: float | None = None,
) -> Settled:
    """Ends the run badly. Raises LeaseLostError."""
    rows = _call(
        conn,
        "fail_job",
        job_id=run.id,
        lease_token=run.lease_token,
        error_class=clean_text(error_class, 200),
        error_msg=clean_text(message, ERROR_LIMIT),
        traceback=None if traceback is None else clean_text(traceback, TRACEBACK_LIMIT),
        permanent=permanent,
        retry_after_seconds=retry_after_seconds,
    )
    return Settled(**rows[0])


def postpone(conn: QueueConnection, run: Held, until: Any, reason: str) -> Settled:
    """Puts the job back until a time, at no cost, within bounds. Raises LeaseLostError."""
    rows = _call(conn, "postpone_job", job_id=run.id, lease_token=run.lease_token, until=until,
                 reason=clean_text(reason, ERROR_LIMIT))  # fmt: skip
    return Settled(**rows[0])


def release(conn: QueueConnection, run: Held, reason: str) -> Settled:
    """Puts the job back unharmed, or ends it when its cancel was requested. Raises LeaseLostError."""
    rows = _call(
        conn,
        "release_job",
        job_id=run.id,
        lease_token=run.lease_token,
        reason=clean_text(reason, ERROR_LIMIT),
    )
    return Settled(**rows[0])


def release_strays(conn: QueueConnection, worker_id: str, held: Sequence[Held], older_than_seconds: float) -> int:
    """Puts back what a worker has claimed without knowing, its answer having been lost; returns how many."""
    tokens = _array(run.lease_token for run in held)
    rows = _call(conn, "release_strays", worker_id=worker_id, held=tokens, older_than_seconds=older_than_seconds)
    count: int = rows[0]["count"]
    return count


def run_outcome(conn: QueueConnection, run: Held) -> str:
    """What became of a run: running, completed, an outcome of job_attempt, or lost."""
    outcome: str = _call(conn, "run_outcome", job_id=run.id, lease_token=run.lease_token)[0]["outcome"]
    return outcome


def pause_job_type(
    conn: QueueConnection, job_type: str, until: Any, reason: str, origin: str, pause_class: str | None = None
) -> bool:
    """Pauses a type until a time; False when an operator's pause stands in the way."""
    rows = _call(conn, "pause_job_type", job_type=job_type, until=until, reason=clean_text(reason, 1000), origin=origin,
                 pause_class=None if pause_class is None else clean_text(pause_class, 200))  # fmt: skip
    return bool(rows[0]["paused"])


def resume_own_pause(conn: QueueConnection, job_type: str, pause_classes: Sequence[str]) -> bool:
    """Ends a pause that a worker of the type made for one of these causes; False when there is none."""
    rows = _call(conn, "resume_own_pause", job_type=job_type, pause_classes=list(pause_classes))
    return bool(rows[0]["resumed"])


def set_idle(conn: QueueConnection, worker_id: str) -> None:
    """Says that the worker is about to sleep; claim once more after it."""
    _call(conn, "set_worker_idle", worker_id=worker_id)


def beat_worker(conn: QueueConnection, worker_id: str) -> bool:
    """Heartbeat of the process; False when it must register again."""
    return bool(_call(conn, "beat_worker", worker_id=worker_id)[0]["known"])


def listen_ready(conn: QueueConnection) -> None:
    """Notifications about jobs that are due, to workers that sleep; the payload is a job type. None behind a pooler."""
    if not conn.is_pooled:  # it would listen for whoever gets the session next
        conn.execute(_SQL["listen_ready"])


def listen_cancel(conn: QueueConnection) -> None:
    """Notifications about running jobs to cancel; the payload is a worker id. None behind a pooler: heartbeats tell."""
    if not conn.is_pooled:
        conn.execute(_SQL["listen_cancel"])


def unregister(conn: QueueConnection, worker_id: str) -> None:
    """Takes the worker off the list."""
    _call(conn, "unregister_worker", worker_id=worker_id)


def sweep(conn: QueueConnection) -> dict[str, int]:
    """Rescues lost runs, queues schedules, ends pauses, forgets vanished workers, prunes. Returns the counts."""
    return _call(conn, "sweep_jobs")[0]


def _keys(runs: Sequence[Held]) -> dict[str, str]:
    return {"job_ids": _array(run.id for run in runs), "lease_tokens": _array(run.lease_token for run in runs)}


def _array(ids: Iterable[UUID]) -> str:
    """An array as PostgreSQL writes it; the driver takes ten times as long for one."""
    return "{" + ",".join([each.hex for each in ids]) + "}"


def _call(conn: QueueConnection, statement: str, **arguments: Any) -> list[dict[str, Any]]:
    with _ours():
        return conn.execute(_SQL[statement], arguments).fetchall()


@contextlib.contextmanager
def _ours() -> Iterator[None]:
    """The queue's own error in place of the database's."""
    try:
        yield
    except psycopg.Error as error:
        if (ours := translate(error)) is not None:
            raise ours from error
        raise
