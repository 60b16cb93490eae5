"""The worker loop: register, claim, run, settle; one job at a time, or one batch for job types that ask for it."""

import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import psycopg

from sidelinja_jobs import queue
from sidelinja_jobs.batches import Batches
from sidelinja_jobs.calling import Caller, Handler
from sidelinja_jobs.context import Context
from sidelinja_jobs.database import Link, QueueConnection, check_schema, connect
from sidelinja_jobs.errors import (
    JobQueueError,
    NotAllowedError,
    SchemaError,
    SettingsError,
    StopReason,
)
from sidelinja_jobs.interrupt import Interrupter, StopFlag, Waker
from sidelinja_jobs.job_type import JobType
from sidelinja_jobs.lease import LeaseThread
from sidelinja_jobs.log import configure_logging, get_logger
from sidelinja_jobs.metrics import WorkerMetrics, serve_metrics
from sidelinja_jobs.models import Job, Rules
from sidelinja_jobs.outcomes import Outcome, Stopped
from sidelinja_jobs.payload_schema import payload_schema
from sidelinja_jobs.run import Phase, Run
from sidelinja_jobs.settings import WorkerSettings, load_settings
from sidelinja_jobs.settling import LOST, Ending, settle
from sidelinja_jobs.version import VERSION

LEFTOVER_SECONDS = 3.0  # for threads that a handler left behind, when the worker ends
START_SECONDS = 60.0  # how long the database may be away at start

P = TypeVar("P")


def run_worker(
    handle: Callable[[Job[P], Context], Any],
    payload_type: type[P],
    job_type: JobType,
    *,
    settings: WorkerSettings | None = None,
) -> int:
    """Works jobs of one type until SIGTERM or SIGINT; returns the exit code of the process.

    The code is 0, EX_CONFIG (settings, login or schema are wrong), EX_UNAVAILABLE (the database stayed away at start)
    or EX_SOFTWARE (the lease thread failed, or a handler did not stop), as sysexits.h has them.

    Args:
        handle: called with each job and its context; what it returns becomes the result.
        payload_type: a msgspec struct that forbids unknown fields; payloads that do not fit end in error at once.
    """
    try:
        settings = load_settings(WorkerSettings) if settings is None else settings
    except SettingsError as error:
        configure_logging()
        get_logger().error("cannot start", problem=str(error))
        return os.EX_CONFIG
    configure_logging(settings.log_format, settings.log_level)
    worker = Worker(handle, payload_type, job_type, settings)
    try:
        return worker.run()
    except (SettingsError, SchemaError, NotAllowedError) as error:
        worker.log.error("cannot go on", problem=str(error))
        return os.EX_CONFIG
    except psycopg.OperationalError as error:
        worker.log.error("database unreachable", problem=str(error).strip())
        return os.EX_UNAVAILABLE


class Worker:
    """One worker process."""

    def __init__(self, handle: Handler, payload_type: type[Any], job_type: JobType, settings: WorkerSettings) -> None:
        self._handle, self._payload_type = handle, payload_type
        self._type, self._settings = job_type, settings
        host = socket.gethostname()
        self.worker_id = f"{host}:{os.getpid()}:{secrets.token_hex(3)}"
        self.log = get_logger(job_type=job_type.name, worker_id=self.worker_id)
        self._stopping = StopFlag()
        self._waker, self._lease_waker = Waker(), Waker()
        self._interrupter = Interrupter(self._lease_waker, self._stopping, stops_at_once=job_type.drain_seconds == 0)
        self._metrics = WorkerMetrics(job_type.name, self.worker_id, VERSION)
        self._link = self._another_link("work")
        self._idle = False
        self._batches: Batches | None = None  # for job types that ask for them

    def run(self) -> int:
        """Works until asked to stop. Returns the exit code."""
        serve_metrics(
            self._settings.metrics_port, self._settings.metrics_host
        )  # first: one that waits for its database is seen to wait
        rules = self._register_at_start()
        if rules is None:
            return 0
        self._rules = rules
        self._lease = self._lease_thread()
        self._caller = Caller(self._handle, self._payload_type, rules, self._link, self._connect, self.log)
        if rules.batch_size > 1:
            self._batches = self._make_batches()
        self._lease.start()
        self.log.info("worker started", version=VERSION, lease_seconds=rules.lease_seconds)
        while not self._stopping.is_set():
            self._turn()
        return self._stop()

    def _turn(self) -> None:
        try:
            if runs := (self._batches and self._batches.take()) or self._claim():
                self._work(runs)
            else:
                self._wait()
        except psycopg.Error as error:  # away, read-only after a failover, functions just being replaced
            self.log.warning("database trouble, trying again", error=str(error).strip())
            self._link.close()
            self._waker.wait(min(self._settings.poll_seconds, 1.0))

    # ---------------------------------------------------------------- start and stop

    def _register_at_start(self) -> Rules | None:
        """The rules of our type, as soon as there is a database; None when asked to stop before."""
        give_up_at = time.monotonic() + START_SECONDS
        while not self._stopping.is_set():
            try:
                conn = self._link.open()
                check_schema(conn)
                return self._register(conn)
            except psycopg.OperationalError as error:
                if time.monotonic() >= give_up_at:
                    raise
                self.log.warning("database not reachable yet", error=str(error).strip())
                self._link.close()
                self._waker.wait(1.0)
        return None

    def _lease_thread(self) -> LeaseThread:
        deadline_seconds = min(self._settings.timeout_seconds, self._rules.beat_seconds)
        return LeaseThread(
            Link(lambda: self._connect("lease", deadline_seconds), self._metrics.db_reconnects.inc),
            self._rules,
            self.worker_id,
            listens_to=self._type.name if self._settings.listen else None,
            claim_seconds=self._settings.timeout_seconds,
            register=self._register,
            stopping=self._stopping,
            waker=self._lease_waker,
            main_waker=self._waker,
            interrupter=self._interrupter,
            metrics=self._metrics,
            health_file=self._settings.health_file,
            drain_seconds=self._type.drain_seconds,
            settle_overdue=self._settle_overdue,
        )

    def _settle_overdue(self, conn: QueueConnection) -> None:
        if self._batches is not None:
            self._batches.settle_overdue(conn)

    def _make_batches(self) -> Batches:
        return Batches(
            rules=self._rules,
            caller=self._caller,
            link=self._link,
            ahead_link=self._another_link("claim"),
            behind_link=self._another_link("settle"),
            claim=self._claim_once,
            lease=self._lease,
            interrupter=self._interrupter,
            stopping=self._stopping,
            metrics=self._metrics,
            record=self._record,
            log=self.log,
        )

    def _stop(self) -> int:
        if self._batches is not None:
            self._batches.close()
        self._lease.close()
        try:
            queue.unregister(self._link.open(), self.worker_id)
        except (psycopg.Error, JobQueueError) as error:
            self.log.warning("could not unregister", error=str(error).strip())
        self._link.close()
        self._interrupter.close()
        self.log.info("worker stopped", failed=self._lease.failed)
        code = os.EX_SOFTWARE if self._lease.failed else 0
        # Python waits for threads that a handler left behind; daemon timers run on meanwhile.
        last_resort = threading.Timer(LEFTOVER_SECONDS, os._exit, [code])
        last_resort.daemon = True
        last_resort.start()
        return code

    def _another_link(self, purpose: str) -> Link:
        return Link(lambda: self._connect(purpose), self._metrics.db_reconnects.inc)

    def _connect(self, purpose: str, deadline_seconds: float | None = None) -> QueueConnection:
        return connect(self._settings, name=f"jobbko {self._type.name} {purpose}", deadline_seconds=deadline_seconds)

    def _register(self, conn: QueueConnection) -> Rules:
        schema = payload_schema(self._payload_type)
        rules = queue.register(
            conn, self.worker_id, self._type.name, VERSION, socket.gethostname(), os.getpid(), schema
        )
        self._idle = False  # afterwards: the row says so from now on, and the main thread must say it anew
        return rules

    # ---------------------------------------------------------------- claim and wait

    def _claim(self) -> list[Run]:
        conn = self._link.open()
        limit = 1 if self._batches is None else self._batches.pace.limit
        runs = self._claim_once(conn, limit)
        if not runs and not self._idle:
            queue.set_idle(conn, self.worker_id)
            self._idle = True
            runs = self._claim_once(conn, limit)  # an enqueue that did not yet see us idle sent no notification
        if runs:
            self._idle = False
        return runs

    def _claim_once(self, conn: QueueConnection, limit: int) -> list[Run]:
        """Also called by the thread that claims ahead, on its own connection."""
        claimed_at = time.monotonic()
        try:
            claims = queue.claim(conn, self._type.name, self.worker_id, limit)
        except psycopg.Error:
            self._lease.claim_failed()  # or its answer was lost, and it holds jobs that nobody knows of
            self._idle = False
            raise
        self._lease.polled()
        self._metrics.last_poll.set_to_current_time()
        self._metrics.claim_duration.observe(time.monotonic() - claimed_at)
        self._metrics.record_waits((claim.started_at - claim.scheduled_for).total_seconds() for claim in claims)
        return [Run(claim, self._type.name, self._rules, claimed_at) for claim in claims]

    def _wait(self) -> None:
        """Until a job of our type is due, the poll interval is over, or the worker is to stop."""
        # Readable there is a notification, or an answer to the lease thread: then one claim too many.
        self._waker.wait(self._settings.poll_seconds, *self._lease.listening_on)

    # ---------------------------------------------------------------- work

    def _work(self, runs: list[Run]) -> None:
        self._lease.hold(runs)
        self._metrics.in_progress.set(len(runs))
        self._metrics.attempt_started.set_to_current_time()
        try:
            if self._batches is not None:
                self._batches.work(runs)
            else:
                self._work_one(*runs)
        finally:
            self._metrics.in_progress.set(0)
            self._metrics.attempt_started.set(0)

    def _work_one(self, run: Run) -> None:
        self._log_of(run).info("job claimed", max_attempts=run.claim.max_attempts, priority=run.claim.priority)
        started = time.monotonic()
        if self._stopping.is_set():
            outcome: Outcome = Stopped(run.stop_reason or StopReason.SHUTDOWN)
        else:
            outcome = self._caller.outcome(run, self._handling)
        self._link.tidy()
        ending = settle(self._link, run, outcome, self._interrupter.call)
        self._lease.drop(run)
        if ending is LOST:
            self._lease.require_alive()
        self._record(run, ending, time.monotonic() - started)

    def _handling(self, run: Run, function: Callable[[], Any]) -> Any:
        return self._interrupter.call(run, Phase.HANDLING, function)

    def _log_of(self, run: Run) -> Any:
        return self.log.bind(job_id=str(run.id), attempt=run.claim.attempts + 1)

    def _record(self, run: Run, ending: Ending, seconds: float) -> None:
        log = self._log_of(run)
        self._metrics.record_end(ending.label, seconds, ending.error_class, ending.is_permanent)
        fields: dict[str, Any] = {"outcome": ending.label, "seconds": round(seconds, 3)}
        if ending.error_class is not None:
            fields |= {"error_class": ending.error_class, "error": (ending.message or "")[:500]}
        if ending.settled is not None and ending.label in ("retry", "snoozed"):
            fields["scheduled_for"] = str(ending.settled.scheduled_for)
        level = log.warning if ending.label in ("retry", "error", "lost_lease") else log.info
        level("job ended", **fields)
