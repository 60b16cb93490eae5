"""Batches: for job types whose jobs are quick, claimed, settled and logged many at a time (batch_size above 1).

A job that takes long is settled alone and at once. Only where jobs follow each other quickly does one wait for others
to be settled with, for FLUSH_SECONDS at most; what sits behind a slow neighbour is settled by the lease thread.
"""

import gc
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psycopg

from sidelinja_jobs import queue
from sidelinja_jobs.calling import Caller
from sidelinja_jobs.claiming_ahead import ClaimAhead
from sidelinja_jobs.database import Link, QueueConnection
from sidelinja_jobs.errors import JobQueueError, StopReason
from sidelinja_jobs.interrupt import Interrupter, StopFlag
from sidelinja_jobs.lease import LeaseThread
from sidelinja_jobs.metrics import WorkerMetrics
from sidelinja_jobs.models import Rules
from sidelinja_jobs.outcomes import Completed, Outcome, Stopped
from sidelinja_jobs.pace import Pace
from sidelinja_jobs.run import Phase, Run
from sidelinja_jobs.settling import LOST, Ending, settle
from sidelinja_jobs.settling_together import Finished, complete_plain, settle_together

FLUSH_SECONDS = 0.25  # a finished job waits no longer for the others while they are quick
OVERDUE_SECONDS = 0.5  # then the lease thread settles it
TELLING_JOBS = 20  # from so many jobs the pace of a batch can be told
ALLOCATIONS = 20_000  # between two looks for cycles: a batch makes thousands of objects, and hardly a cycle
TOO_LONG = "claimed in a batch that takes longer than a lease"
NOT_TOGETHER = "could not settle together, trying one by one"
Record = Callable[[Run, Ending, float], None]


def _look_seldom_for_cycles() -> None:
    """A seventh of a quick job's time in Python went into that. What was loaded until now is not looked at again."""
    gc.collect()
    gc.freeze()
    first, *others = gc.get_threshold()
    gc.set_threshold(max(first, ALLOCATIONS), *others)


class Batches:
    """Works batches in the main thread."""

    def __init__(
        self,
        *,
        rules: Rules,
        caller: Caller,
        link: Link,
        ahead_link: Link,
        behind_link: Link,
        claim: Callable[[QueueConnection, int], list[Run]],
        lease: LeaseThread,
        interrupter: Interrupter,
        stopping: StopFlag,
        metrics: WorkerMetrics,
        record: Record,
        log: Any,
    ) -> None:
        self._caller, self._claim = caller, claim
        self._link, self._ahead_link, self._behind_link = link, ahead_link, behind_link
        self._lease, self._interrupter, self._stopping = lease, interrupter, stopping
        self._metrics, self._record, self._log = metrics, record, log
        self.pace = Pace(rules)
        self._ahead = ClaimAhead(self._claim_ahead, self._give_back, rules.beat_seconds)
        self._behind = ThreadPoolExecutor(1, "settling")
        self._settling: Future[list[Finished]] | None = None
        self._lock = threading.Lock()  # over _finished, which the lease thread takes from, too
        self._finished: list[Finished] = []
        self._waiting_since = 0.0
        _look_seldom_for_cycles()

    def take(self) -> list[Run]:
        """The batch that was claimed ahead, if any."""
        runs = self._ahead.take()
        if not runs:
            self._flush()  # what the lease thread could not settle after the last batch was over
        return runs

    def work(self, runs: list[Run]) -> None:
        """Works the batch to its end, or puts back what is left of it when the worker is to stop."""
        goes_on = self._ask_ahead(runs)
        started = time.monotonic()
        done = 0
        with self._interrupter.batch(runs):
            for run in runs:
                if self._stopping.is_set() or time.monotonic() - run.claimed_at > run.rules.lease_seconds:
                    break
                self._work_one(run)
                done += 1
                if done == TELLING_JOBS and not goes_on:  # nothing was known before the first batch
                    self.pace.note_batch(time.monotonic() - started, done)
                    goes_on = self._ask_ahead(runs)
            self._flush(behind=goes_on)
        if done:
            self.pace.note_batch(time.monotonic() - started, done)
        self._release(runs[done:])

    def _ask_ahead(self, runs: list[Run]) -> bool:
        """Has the next batch claimed, if this one is full and soon over; whether it did."""
        goes_on = self.pace.is_ahead_worth(len(runs)) and len(runs) >= self.pace.limit
        if goes_on:
            self._ahead.ask()
        return goes_on

    def close(self) -> None:
        """Puts back what was claimed ahead."""
        self._flush()
        self._behind.shutdown()
        self._ahead.close()
        for link in (self._behind_link, self._ahead_link):
            link.close()

    def settle_overdue(self, conn: QueueConnection) -> None:
        """Called by the lease thread: what waits behind a job that takes long, as far as one statement can do it."""
        with self._lock:
            if not self._finished or time.monotonic() - self._waiting_since < OVERDUE_SECONDS:
                return
            taken = [each for each in self._finished if each.is_plain]
            self._finished = [each for each in self._finished if not each.is_plain]
        if not taken:
            return
        try:
            endings = complete_plain(conn, taken)
        except (psycopg.Error, JobQueueError) as error:
            with self._lock:
                self._finished += [each._replace(in_doubt=True) for each in taken]
            if isinstance(error, psycopg.Error):
                raise
            self._log.warning(NOT_TOGETHER, error=str(error).strip())
        else:
            self._note(taken, endings)

    # ---------------------------------------------------------------- one job

    def _handling(self, run: Run, function: Callable[[], Any]) -> Any:
        return self._interrupter.call(run, Phase.HANDLING, function)

    def _work_one(self, run: Run) -> None:
        started = time.monotonic()
        outcome = self._caller.outcome(run, self._handling)
        now = time.monotonic()
        may_wait = self.pace.note_job(now - started)
        if isinstance(outcome, Completed):
            with self._lock:
                if not self._finished:
                    self._waiting_since = now
                self._finished.append(Finished(run, outcome, now - started))
            if not may_wait or now - self._waiting_since > FLUSH_SECONDS:
                self._flush()
        else:
            self._settle_alone(run, outcome, now - started)

    def _settle_alone(self, run: Run, outcome: Outcome, seconds: float) -> None:
        self._link.tidy()
        ending = settle(self._link, run, outcome, self._interrupter.call)
        self._lease.drop(run)
        if ending is LOST:
            self._lease.require_alive()
        self._record(run, ending, seconds)

    def _flush(self, *, behind: bool = False) -> None:
        """Settles what is finished; `behind`: while the next batch is worked, if it can be done without this thread."""
        self._collect()
        with self._lock:
            finished, self._finished = self._finished, []
        if behind and finished and all(each.is_plain for each in finished):
            self._settling = self._behind.submit(self._settle_behind, finished)
        elif finished:
            self._settle_now(finished)

    def _collect(self) -> None:
        """Waits for what is settled behind, and settles here what could not be."""
        settling, self._settling = self._settling, None
        if settling is not None and (failed := settling.result()):
            self._settle_now(failed)

    def _settle_now(self, finished: list[Finished]) -> None:
        self._link.tidy()
        endings = settle_together(self._link, finished, self._interrupter.call)
        self._note(finished, endings)
        if LOST in endings:
            self._lease.require_alive()

    def _note(self, finished: list[Finished], endings: list[Ending]) -> None:
        """Counts and logs what was settled together: one line for all that went well."""
        well = []
        for each, ending in zip(finished, endings, strict=True):
            self._lease.drop(each.run)
            if ending.label == "completed":
                well.append(each.seconds)
            else:
                self._record(each.run, ending, each.seconds)
        if len(well) == 1 == len(finished):
            self._record(finished[0].run, endings[0], well[0])
        elif well:
            self._metrics.record_ends("completed", well)
            self._log.info("jobs ended", outcome="completed", jobs=len(well), seconds=round(sum(well), 3))

    # ---------------------------------------------------------------- what is not worked

    def _release(self, runs: list[Run]) -> None:
        """Puts back runs that were not begun, at no cost."""
        if not runs:
            return
        why = f"worker stopped: {StopReason.SHUTDOWN.value}" if self._stopping.is_set() else TOO_LONG
        try:
            statuses = queue.release_many(self._link.open(), runs, why)
        except (psycopg.Error, JobQueueError):
            self._link.tidy()
            for run in runs:
                self._settle_alone(run, Stopped(run.stop_reason or StopReason.SHUTDOWN), 0.0)
            return
        self._note_released(runs, statuses)

    def _note_released(self, runs: list[Run], statuses: dict[Any, str]) -> None:
        for run in runs:
            self._lease.drop(run)
        labels = Counter("lost_lease" if run.id not in statuses else "released" for run in runs)
        labels["cancelled"] = sum(status == "error" for status in statuses.values())
        labels["released"] -= labels["cancelled"]
        for label, count in labels.items():
            if count:
                self._metrics.record_ends(label, [0.0] * count)
                self._log.info("jobs ended", outcome=label, jobs=count, seconds=0.0)

    # ---------------------------------------------------------------- in threads of their own

    def _settle_behind(self, finished: list[Finished]) -> list[Finished]:
        """Returns what could not be settled, in doubt."""
        try:
            endings = complete_plain(self._behind_link.open(), finished)
        except (psycopg.Error, JobQueueError, ValueError) as error:
            self._log.warning(NOT_TOGETHER, error=str(error).strip())
            self._behind_link.close()
            return [each._replace(in_doubt=True) for each in finished]
        self._note(finished, endings)
        if LOST in endings:
            self._lease.require_alive()
        return []

    def _claim_ahead(self) -> list[Run]:
        try:
            runs = self._claim(self._ahead_link.open(), self.pace.limit)
            self._lease.hold(runs)
            return runs
        except (psycopg.Error, JobQueueError) as error:
            self._log.warning("could not claim ahead", error=str(error).strip())
            self._ahead_link.close()
            return []

    def _give_back(self, runs: list[Run]) -> None:
        try:
            statuses = queue.release_many(
                self._ahead_link.open(), runs, "claimed ahead, and the batch before it takes long"
            )
        except (psycopg.Error, JobQueueError) as error:
            self._log.warning("could not give back jobs", error=str(error).strip(), jobs=len(runs))
            self._ahead_link.close()
            self._lease.claim_failed()  # they are looked for among what nobody holds
            statuses = {}
        self._note_released(runs, statuses)
