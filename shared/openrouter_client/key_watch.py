"""Watches the key: pauses the job type while there is none or it is refused, and ends just such a pause when it works.

A thread of its own, so that a worker without a key, or without a network, starts and can be scraped like any other.
Once the key works the thread sleeps until a call doubts it. A pause is for a bounded time and renewed while the cause
lasts; should this process vanish, the next job after it looks at the key again, at no cost.
"""

import contextlib
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import psycopg
import structlog

from openrouter_client.key_state import KeyState
from openrouter_client.metrics import ModelMetrics
from openrouter_client.outcomes import KEY_LIMIT, NO_KEY, NO_KEY_SECONDS, REFUSED_KEY, REFUSED_KEY_SECONDS
from openrouter_client.profile import Profile
from openrouter_client.settings import ClientSettings
from openrouter_client.transport import Client
from openrouter_client.verdicts import NO_CREDIT_SECONDS, Kind
from sidelinja_jobs import queue
from sidelinja_jobs.database import QueueConnection, connect
from sidelinja_jobs.errors import JobQueueError
from sidelinja_jobs.settings import DatabaseSettings

OWN_CLASSES = (NO_KEY, REFUSED_KEY, KEY_LIMIT)
PROBE_SECONDS = 300.0  # between two looks at a key that does not work
SOON_SECONDS = 5.0  # until the next try while the database or the network is away
_SECONDS = {NO_KEY: NO_KEY_SECONDS, REFUSED_KEY: REFUSED_KEY_SECONDS, KEY_LIMIT: NO_CREDIT_SECONDS}
_CLASSES = {"no_api_key": NO_KEY, "auth": REFUSED_KEY, "credits": KEY_LIMIT}


class KeyWatch:
    """Watches the key of one process, for its job type."""

    def __init__(
        self,
        settings: ClientSettings,
        database: DatabaseSettings,
        job_type: str,
        log: structlog.typing.FilteringBoundLogger,
        *,
        metrics: ModelMetrics | None = None,
        probe_seconds: float = PROBE_SECONDS,
        soon_seconds: float = SOON_SECONDS,
    ) -> None:
        self._settings, self._database, self._job_type = settings, database, job_type
        self._profile = Profile.from_settings(settings)
        self._log, self._metrics = log, metrics
        self._probe_seconds, self._soon_seconds = probe_seconds, soon_seconds
        self._doubt, self._closing = threading.Event(), threading.Event()
        self._told: tuple[str, str] | None = None
        self._thread = threading.Thread(target=self._run, name="key-watch", daemon=True)

    def start(self) -> None:
        """Looks at once, in the background."""
        self._thread.start()

    def doubt(self) -> None:
        """A call has found the key refused or its limit spent: watch for its recovery."""
        if self._metrics is not None:
            self._metrics.key_usable.set(0)
        self._doubt.set()

    def close(self) -> None:
        self._closing.set()
        self._doubt.set()
        self._thread.join(1.0)  # it may be asking the server; as a daemon it ends with the process

    def look(self) -> float | None:
        """Looks once and pauses or resumes the type; returns after how many seconds to look again, None = on doubt."""
        state = self._key_state()
        verdict = state.verdict
        if verdict.kind is Kind.OK:
            return None if self._settle(self._resume) else self._soon_seconds
        if verdict.kind is not Kind.PAUSE or verdict.error_class not in _CLASSES:
            self._tell("key not checked", verdict.message)  # the server is away: that says nothing of the key
            return self._probe_seconds if verdict.kind is Kind.PERMANENT else 6 * self._soon_seconds
        self._tell("key not usable", verdict.message)
        if self._metrics is not None:
            self._metrics.key_usable.set(0)
        reason = f"{verdict.message}. Next: {verdict.advice}" if verdict.advice else verdict.message
        pause_class = _CLASSES[verdict.error_class]
        is_written = self._settle(lambda conn: self._pause(conn, pause_class, reason, verdict.wait_seconds))
        return self._probe_seconds if is_written else self._soon_seconds

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                wait = self.look()
            except Exception as error:  # the edge of a thread: it must go on watching
                self._log.error("key watch failed", error=f"{type(error).__name__}: {error}")
                wait = self._probe_seconds
            if wait is None:
                self._doubt.wait()
                # Not at once: where only calls are refused, jobs would run and pause in a spin.
                wait = self._probe_seconds
            self._doubt.clear()
            self._closing.wait(wait)

    def _key_state(self) -> KeyState:
        client = Client(self._profile, self._settings)
        try:
            return client.key_state()
        finally:
            client.close()

    def _pause(self, conn: QueueConnection, pause_class: str, reason: str, wait: float | None) -> None:
        # Longer than until the next look, so that the pause has no gaps while this process lives.
        seconds = max(wait or _SECONDS[pause_class], 2 * self._probe_seconds)
        until = datetime.now(UTC) + timedelta(seconds=seconds)
        if not queue.pause_job_type(conn, self._job_type, until, reason, "worker", pause_class):
            self._log.info("an operator's pause stays", job_type=self._job_type)

    def _resume(self, conn: QueueConnection) -> None:
        if self._metrics is not None:
            self._metrics.key_usable.set(1)
        self._tell("key usable", "")
        if queue.resume_own_pause(conn, self._job_type, OWN_CLASSES):
            self._log.info("job type resumed: the key works", job_type=self._job_type)

    def _settle(self, write: Callable[[QueueConnection], None]) -> bool:
        """Whether the database took it; one that is away, or not migrated yet, will later."""
        try:
            with contextlib.closing(connect(self._database, name=f"jobbko {self._job_type} key")) as conn:
                write(conn)
        except (psycopg.Error, JobQueueError) as error:
            self._log.debug("pause not written yet", error=str(error).strip())
            return False
        return True

    def _tell(self, event: str, problem: str) -> None:
        """Logs a state when it changes, not at each look."""
        if self._told == (event, problem):
            return
        self._told = (event, problem)
        if problem:
            self._log.warning(event, problem=problem)
        else:
            self._log.info(event)
