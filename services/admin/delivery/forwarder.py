"""Delivers the events of one sink, in a thread and on a connection of its own.

No transaction is open while something is sent. The hold on the sink is a lock of the connection's session: a forwarder
that loses its connection stops sending, and whoever holds the sink next goes on from what was recorded. What was sent
and not recorded is sent again.
"""

import threading
import time
from typing import Any
from uuid import UUID

import psycopg

from services.admin.delivery import store
from services.admin.delivery.batch import Batch, Crew
from services.admin.delivery.events import Event
from services.admin.delivery.metrics import SinkMetrics
from services.admin.delivery.policy import Policy, probe, sendable
from services.admin.delivery.settings import DeliverySettings, origin
from services.admin.delivery.sinks import Sink
from services.admin.delivery.store import Record, Result, SinkRow
from services.admin.delivery.verdicts import Kind
from sidelinja_jobs.database import Link, QueueConnection, check_schema, connect
from sidelinja_jobs.errors import LeaseLostError, NotFoundError, translate
from sidelinja_jobs.log import get_logger

BATCH_EVENTS = 100
STATE_SECONDS = 5.0  # between looks at lag and parked events
PROOF_SECONDS = 1.0  # between proofs that the connection, and with it the hold, is still there
PROOF_DEADLINE_SECONDS = 2.0
STANDBY_SECONDS = 1.0
TROUBLE_SECONDS = 1.0
DRAIN_SECONDS = 3.0  # for what is being sent when the forwarder is asked to stop
CONTACT_SECONDS = 60.0  # a batch takes its own time and that of a try, which together are less by far


class Forwarder:
    """One sink's deliveries. `run` returns when `stopping` is set."""

    def __init__(self, sink: Sink, settings: DeliverySettings, stopping: threading.Event, metrics: SinkMetrics) -> None:
        self._sink, self._settings, self._stopping, self._metrics = sink, settings, stopping, metrics
        self._policy = Policy.from_settings(settings)
        self._log = get_logger(sink=sink.name)
        self._link = Link(self._connect, metrics.reconnects.inc)
        self._held_on: QueueConnection | None = None
        self._crew = Crew(sink, settings.try_seconds)
        self._failing: frozenset[UUID] = frozenset()
        self._pauses = 0  # in a row
        self._unrecorded: Record | None = None
        self._contact_at = time.monotonic()
        self._proof_at = self._state_at = 0.0
        self._said = ""

    @property
    def is_well(self) -> bool:
        """Whether the database was there lately."""
        return time.monotonic() - self._contact_at < CONTACT_SECONDS

    def run(self) -> None:
        """Delivers until it is stopped; waits for a database that is away.

        Raises:
            JobQueueError: it cannot run with these settings, this login, this schema.
        """
        while not self._stopping.is_set():
            try:
                wait_seconds = self._turn()
            except (psycopg.Error, NotFoundError) as error:  # away, replaced just now, or an operator forgot the sink
                self._say("database trouble, trying again", level="warning", error=str(error).strip())
                self._let_go()
                wait_seconds = TROUBLE_SECONDS
            self._stopping.wait(wait_seconds)
        self._let_go()
        self._crew.close()

    def _turn(self) -> float:
        """One look, and a batch if there is something; returns the seconds until the next one."""
        conn = self._hold()
        if conn is None:
            return STANDBY_SECONDS
        self._record_rest(conn)
        row = store.read_sink(conn, self._sink.name)
        self._contact_at = time.monotonic()
        self._observe(conn, row)
        if row.disabled_reason is not None:
            self._say("sink is disabled", level="warning", reason=row.disabled_reason)
            return max(STANDBY_SECONDS, self._settings.poll_seconds)
        if row.wait_seconds > 0:
            return min(row.wait_seconds, self._settings.poll_seconds)
        events = store.next_events(conn, self._sink.name, BATCH_EVENTS)
        if not events:
            return self._settings.poll_seconds
        self._unrecorded = self._deliver(row, events)
        self._record_rest(self._link.open())
        return 0.0

    def _connect(self) -> QueueConnection:
        conn = connect(self._settings, name=f"jobbko delivery {self._sink.name}")
        try:
            check_schema(conn)
        except BaseException:
            conn.close()
            raise
        return conn

    def _hold(self) -> QueueConnection | None:
        """Our connection, which has the sink; None while another forwarder has it."""
        conn = self._link.open()
        self._contact_at = time.monotonic()
        if self._held_on is conn:
            return conn
        try:
            is_ours = store.open_sink(conn, self._sink, self._settings)
        except psycopg.Error as error:
            if (refused := translate(error)) is not None:
                raise refused from error
            raise
        if not is_ours:
            self._show_standby()
            return None
        self._held_on = conn
        self._metrics.active.set(1)
        self._say("delivering", address=origin(self._sink.url))
        return conn

    def _show_standby(self) -> None:
        self._metrics.active.set(0)
        self._metrics.hide_state()
        self._say("standing by: another forwarder delivers to this sink")

    def _let_go(self) -> None:
        self._held_on = None
        self._link.close()
        self._metrics.active.set(0)
        self._metrics.hide_state()

    def _end_within(self) -> float | None:
        """Asked while a batch is sent: how many seconds it may still take, None while there is no reason to end it."""
        if self._stopping.is_set():
            return DRAIN_SECONDS
        now = time.monotonic()
        if now < self._proof_at:
            return None
        self._proof_at = now + PROOF_SECONDS
        try:
            if self._held_on is None:
                return 0.0
            with self._held_on.deadline(PROOF_DEADLINE_SECONDS):
                store.prove_alive(self._held_on)
        except psycopg.Error as error:
            self._say("connection lost while sending", level="warning", error=str(error).strip())
            self._let_go()
            return 0.0
        self._contact_at = now
        return None

    def _deliver(self, row: SinkRow, events: list[Event]) -> Record:
        passed, to_send = probe(events) if self._pauses else (events, sendable(events))
        batch = Batch(self._sink, row.epoch, to_send, self._failing)
        started = time.monotonic()
        if to_send:
            self._proof_at = started + PROOF_SECONDS
            self._crew.send(batch, self._end_within)
            if self._held_on is None:
                self._crew = Crew(self._sink, self._settings.try_seconds)
        tried = dict(batch.tried)
        self._failing = frozenset(batch.failing)
        results = [self._policy.result(event, tried.get(event.event_id)) for event in passed]
        for result in results:
            if (one := tried.get(result.event.event_id)) is not None:
                self._metrics.record_try(result.outcome, one.seconds)
        self._tell(results, time.monotonic() - started)
        return self._record(row, results, batch, has_recovered=self._pauses > 0 and batch.has_delivered)

    def _record(self, row: SinkRow, results: list[Result], batch: Batch, *, has_recovered: bool) -> Record:
        """What the batch comes to, for the sink as a whole, too."""
        verdicts = [tried.verdict for tried in batch.tried.values()]
        if batch.has_delivered:
            self._pauses = 0
        disable_reason = next((one.message for one in verdicts if one.kind is Kind.DISABLE), None)
        holding = next((one for one in verdicts if one.kind is Kind.HOLD), None)
        asked = max((one.retry_after_seconds or 0.0 for one in verdicts), default=0.0)
        if not verdicts or (holding is None and not asked and not batch.is_down):  # nothing sent tells nothing new
            return Record(row, results, has_recovered=has_recovered, disable_reason=disable_reason)
        wait_seconds = max(asked, self._policy.pause_seconds(self._pauses) if holding or batch.is_down else 0.0)
        self._pauses += 1
        why = holding.message if holding else verdicts[-1].message
        self._log.warning("sink waits", seconds=round(wait_seconds, 1), reason=why)
        return Record(row, results, wait_seconds, why, has_recovered, disable_reason)

    def _record_rest(self, conn: QueueConnection) -> None:
        """Records the last batch, also where the connection was lost meanwhile and we hold the sink again."""
        if self._unrecorded is None or conn is not self._held_on:
            return
        entry, self._unrecorded = self._unrecorded, None
        try:
            store.record(conn, self._sink.name, entry)
        except psycopg.Error as error:
            if isinstance(translate(error), LeaseLostError):  # recorded already, or another one was here meanwhile
                self._log.info("the sink has moved on", problem=str(error).strip())
                return
            self._unrecorded = entry
            raise
        if entry.disable_reason is not None:
            self._log.error("sink disabled", reason=entry.disable_reason)

    def _observe(self, conn: QueueConnection, row: SinkRow) -> None:
        now = time.monotonic()
        self._metrics.disabled.set(row.disabled_reason is not None)
        if now < self._state_at:
            return
        self._state_at = now + STATE_SECONDS
        if (state := store.read_state(conn, self._sink.name)) is not None:
            self._metrics.show_state(state.lag_seconds, state.waiting, state.parked)

    def _tell(self, results: list[Result], seconds: float) -> None:
        delivered = sum(result.outcome == "delivered" for result in results)
        if delivered:
            self._said = ""
            self._log.info("events delivered", count=delivered, seconds=round(seconds, 3))
        for result in results:
            if result.outcome in ("failed", "parked"):
                self._state_at = 0.0  # there is something to show
                level = self._log.error if result.outcome == "parked" else self._log.warning
                level(
                    f"event {result.outcome}",
                    event_id=result.event.event_id,
                    job_id=str(result.event.job_id),
                    tries=result.event.tries + 1,
                    next_seconds=round(result.wait_seconds, 1),
                    error=result.error,
                )

    def _say(self, what: str, *, level: str = "info", **fields: Any) -> None:
        """Once, until something else is said."""
        said = f"{what} {fields}"
        if said != self._said:
            getattr(self._log, level)(what, **fields)
        self._said = said
