"""Real forwarder processes, and what they should have delivered."""

import sys
from typing import Any
from uuid import UUID

from tests.databases import Database
from tests.services.event_receiver import SECRET, Receiver
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcess, WorkerProcesses

QUICK = {
    "DELIVERY_RETRY_SECONDS": "0.1",
    "DELIVERY_TIMEOUT_SECONDS": "15",
    "DELIVERY_WEBHOOK_SECRET": SECRET,
    "POLL_SECONDS": "0.05",
}


class Forwarders:
    """Starts forwarders of one database, which end with the test."""

    def __init__(self, database: Database, workers: WorkerProcesses) -> None:
        self.database, self._workers = database, workers

    def start(self, receiver: Receiver, *, ready: bool = True, **environ: str) -> WorkerProcess:
        """A forwarder that delivers to this receiver; returns when it has the sink, if it is to be `ready`."""
        return self.start_with({"DELIVERY_WEBHOOK_URL": receiver.url, **environ}, ready=ready)

    def start_with(self, environ: dict[str, str], *, ready: bool = True) -> WorkerProcess:
        process = self._workers.start_command(
            self.database, [sys.executable, "-m", "services.admin.delivery"], "delivery", QUICK | environ
        )
        if ready:
            sinks = sum(name in environ for name in ("DELIVERY_WEBHOOK_URL", "DELIVERY_SPACETIMEDB_URL"))
            wait_until(lambda: is_delivering(process, sinks), 20, what="the forwarder to have its sinks")
        return process


def is_delivering(process: WorkerProcess, sinks: int = 1) -> bool:
    """Whether it has so many sinks: what happens from then on is delivered to each."""
    assert process.is_alive(), f"the forwarder ended with {process.wait()}:\n{process.log_text()}"
    return len({line["sink"] for line in process.log_events("delivering")}) >= sinks


def run_jobs(database: Database, count: int = 1) -> list[UUID]:
    """Jobs that go from pending by running to completed, each change in a transaction of its own."""
    ids = [database.enqueue() for _ in range(count)]
    for status in ("running", "completed"):
        for job_id in ids:
            database.rows("update job_queue set status = %s::job_status where id = %s", status, job_id)
    return ids


def all_events(database: Database) -> dict[str, list[int]]:
    """Ids of every event by job, in the order in which they happened."""
    rows = database.rows("select job_id::text, array_agg(id order by id) as ids from job_event group by job_id")
    return {row["job_id"]: row["ids"] for row in rows}


def wait_for_all(database: Database, receiver: Receiver, timeout: float = 20) -> None:
    """Until every event has arrived; checks that those of each job came in their order."""
    wanted = all_events(database)
    wait_until(
        lambda: (
            {job: set(ids) for job, ids in receiver.first_ids().items()}
            == {job: set(ids) for job, ids in wanted.items()}
        ),
        timeout,
        what=f"{sum(map(len, wanted.values()))} events to arrive",
    )
    assert receiver.first_ids() == wanted


def parked(database: Database) -> list[dict[str, Any]]:
    return database.rows("select * from event_delivery where parked_at is not null order by event_id")
