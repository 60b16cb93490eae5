"""The ledger of paid calls, as a run of a job writes it: reserved, sent, then received, failed or unknown.

It has a connection of its own, since what was paid for must outlive the failure of the job. When that connection
breaks, a write is repeated until it stands: the database knows a repetition. Only the alarm of the lease ends this.
"""

import contextlib
import dataclasses
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self
from uuid import UUID

import psycopg
import structlog

from openrouter_client.unicode_text import sound_text, sound_value
from sidelinja_jobs.database import is_passing
from sidelinja_jobs.errors import JobQueueError, JobStopped, StopReason, translate
from sidelinja_jobs.json_text import as_jsonb, clean_value
from sidelinja_jobs.queries import load_queries

SQL = load_queries(Path(__file__).with_name("ledger.sql"))
PAUSE_SECONDS = 0.5  # between two tries to reach the database


class Run(Protocol):
    """What the ledger needs of a handler's context."""

    @property
    def lease_token(self) -> UUID: ...
    @property
    def log(self) -> structlog.typing.FilteringBoundLogger: ...
    def is_closing(self) -> bool: ...
    def progress(self, fraction: float | None, note: str | None = None) -> None: ...
    def side_connection(self) -> contextlib.AbstractContextManager[psycopg.Connection[Any]]: ...


@dataclass(frozen=True)
class Budgets:
    """USD that calls may cost: of one job, of a UTC day, and of a UTC day for this job type (None = no own limit)."""

    job: Decimal
    day: Decimal
    type_day: Decimal | None


@dataclass(frozen=True)
class PastCall:
    """An earlier call with the same question.

    It is `received` with its answer, `unknown` and perhaps paid for, or `failed`. `is_discarded`: it was of no use.
    """

    id: UUID
    state: str
    generation_id: str | None
    body: dict[str, Any] | None
    http_status: int | None
    cost_usd: Decimal | None
    cost_source: str | None
    is_possible_duplicate: bool
    error_class: str | None
    error_msg: str | None
    is_discarded: bool

    @property
    def is_useless_answer(self) -> bool:
        """Whether the server did answer, and the answer was of no use."""
        is_empty = self.state == "failed" and self.http_status is not None and self.http_status < 300
        return is_empty or (self.state == "received" and self.is_discarded)


@dataclass(frozen=True)
class Spent:
    """What a job's calls have cost, and how many more may have cost up to `unknown_usd`."""

    cost_usd: Decimal
    unknown_calls: int
    unknown_usd: Decimal


@dataclass(frozen=True)
class Reservation:
    """`outcome` is reserved, or says which budget has too little left: job, day, type_day, never, in_flight.

    `day_ends`: of the day whose budget counts. `postponements`: how often the job has come back later.
    """

    call_id: UUID | None
    outcome: str
    spent_usd: Decimal | None
    in_flight_usd: Decimal | None
    budget_usd: Decimal | None
    day_ends: datetime | None = None
    postponements: int = 0


@dataclass(frozen=True)
class Settlement:
    """What became of a call. `cost_usd` None = nobody knows yet, and what was reserved stays reserved."""

    state: str
    cost_usd: Decimal | None
    cost_source: str
    generation_id: str | None = None
    model_used: str | None = None
    provider: str | None = None
    http_status: int | None = None
    finish_reason: str | None = None
    usage: Any = None
    error_class: str | None = None
    error_msg: str | None = None


class Ledger:
    """The entries of one job, written by one run of it. A context manager, used by one thread."""

    def __init__(self, job_id: UUID, run: Run) -> None:
        self._job_id, self._run = job_id, run
        self._stack = contextlib.ExitStack()
        self._conn: psycopg.Connection[Any] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._close()

    def find(self, step: str, request_hash: str) -> list[PastCall]:
        """Earlier calls of a question, oldest first. Raises LeaseLostError."""
        rows = self._insist("find_calls", **self._held(), step=step, request_hash=request_hash)
        return [_past_call(row) for row in rows]

    def live(self) -> None:
        """A sign of life, for the stall limit of the job type: a call may be as long as its own time-outs let it be."""
        self._run.progress(None)

    def require_time(self) -> None:
        """Raises JobStopped when the worker is to end: a call that begins now would be cut off, and paid for."""
        if self._run.is_closing():
            raise JobStopped(StopReason.SHUTDOWN)

    def reserve(
        self, step: str, request_hash: str, model: str, most_usd: Decimal, budgets: Budgets, *, is_again: bool
    ) -> Reservation:
        """Takes what a call can cost at most out of the budgets, if they all have it. Raises LeaseLostError.

        `is_again`: the question was sent before, and that may have been paid for.
        """
        rows = self._insist(
            "reserve_call",
            **self._held(),
            step=step,
            request_hash=request_hash,
            model=sound_text(model),
            reserve_usd=most_usd,
            job_budget_usd=budgets.job,
            day_budget_usd=budgets.day,
            type_day_budget_usd=budgets.type_day,
            possible_duplicate=is_again,
        )
        return Reservation(**rows[0])

    def mark_sent(self, call_id: UUID) -> None:
        """Committed when this returns: the call may be billed from now on. Raises LeaseLostError."""
        self._insist("mark_sent", call_id=call_id)

    def note_generation(self, call_id: UUID, generation_id: str) -> None:
        """Stores the provider's id while the answer still streams; once, since the answer must not wait for it."""
        try:
            self._call("note_generation", {"call_id": call_id, "generation_id": sound_text(generation_id)})
        except (psycopg.Error, JobQueueError) as error:
            self._close()
            self._run.log.warning("generation id not stored yet", call_id=str(call_id), error=str(error).strip())

    def settle(self, call_id: UUID, settlement: Settlement, body: dict[str, Any] | None = None) -> None:
        """Records the end of a call, with its answer as it came. Stands when this returns, lease or not."""
        self._insist("settle_call", **_settle_arguments(call_id, settlement, body))

    def settle_once(self, call_id: UUID, settlement: Settlement) -> None:
        """The same with one try, for a run that is being stopped. Raises psycopg.Error."""
        self._call("settle_call", _settle_arguments(call_id, settlement, None))

    def discard(self, step: str, request_hashes: Sequence[str]) -> None:
        """Answers that were of no use: the job's next run asks again in place of using them."""
        self._insist("discard_calls", **self._held(), step=step, request_hashes=list(request_hashes))

    def spent(self) -> Spent:
        """What the job has cost so far, in all its runs."""
        return Spent(**self._insist("sum_calls", **self._held())[0])

    def take_turn(self, seconds: float, *, opens: bool) -> datetime | None:
        """When the job asks again that was not answered: `seconds` after the last of its type that stands in line.

        None where none does, unless it `opens` the line. Raises LeaseLostError.
        """
        turn: datetime | None = self._insist("take_turn", **self._held(), seconds=seconds, opens=opens)[0]["turn"]
        return turn

    def end_line(self) -> None:
        """There are answers again: makes all jobs of the type due that stand in line. Raises LeaseLostError."""
        self._insist("end_line", **self._held())

    def _held(self) -> dict[str, UUID]:
        return {"job_id": self._job_id, "lease_token": self._run.lease_token}

    def _insist(self, statement: str, **arguments: Any) -> list[dict[str, Any]]:
        while True:
            try:
                return self._call(statement, arguments)
            except psycopg.Error as error:
                if (ours := translate(error)) is not None:
                    raise ours from error
                is_open = self._conn is not None and not self._conn.closed
                if not is_passing(error, is_open):
                    raise
                self._close()
                self._run.log.warning("ledger not reachable, trying again", error=str(error).strip())
                time.sleep(PAUSE_SECONDS)

    def _call(self, statement: str, arguments: dict[str, Any]) -> list[dict[str, Any]]:
        if self._conn is None:
            self._conn = self._stack.enter_context(self._run.side_connection())
        rows: list[dict[str, Any]] = self._conn.execute(SQL[statement], arguments).fetchall()
        return rows

    def _close(self) -> None:
        self._conn = None
        with contextlib.suppress(psycopg.Error):
            self._stack.close()


def _settle_arguments(call_id: UUID, settlement: Settlement, body: dict[str, Any] | None) -> dict[str, Any]:
    own = ("state", "cost_usd", "cost_source")
    details = {name: value for name, value in dataclasses.asdict(settlement).items() if name not in own}
    return {
        "call_id": call_id,
        "state": settlement.state,
        "cost_usd": settlement.cost_usd,
        "cost_source": settlement.cost_source,
        "details": as_jsonb(clean_value(sound_value(details))),
        # ASCII: what no text can hold, such as NUL, stays an escape, so that the answer is read back as it came.
        "response": None if body is None else json.dumps(body, ensure_ascii=True),
    }


def _past_call(row: dict[str, Any]) -> PastCall:
    body = None if row["response"] is None else json.loads(row["response"])
    names = [field.name for field in dataclasses.fields(PastCall) if field.name != "body"]
    return PastCall(body=body if isinstance(body, dict) else None, **{name: row[name] for name in names})
