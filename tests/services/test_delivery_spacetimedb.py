"""Events as calls of a reducer, against a fake that answers as SpacetimeDB's sources say."""

from collections.abc import Iterator

import pytest

from tests.databases import Database
from tests.services.delivery_support import Forwarders, parked, run_jobs, wait_for_all
from tests.services.event_receiver import Receiver, answering
from tests.services.spacetimedb_fake import TOKEN, SpacetimeFake
from tests.waiting import stays, wait_until
from tests.worker_processes import WorkerProcess, WorkerProcesses


@pytest.fixture
def spacetimedb() -> Iterator[SpacetimeFake]:
    with SpacetimeFake() as running:
        yield running


@pytest.fixture
def forwarders(database: Database, worker_process: WorkerProcesses) -> Forwarders:
    return Forwarders(database, worker_process)


def start(forwarders: Forwarders, fake: SpacetimeFake, **environ: str) -> WorkerProcess:
    settings = {
        "DELIVERY_SPACETIMEDB_URL": fake.url,
        "DELIVERY_SPACETIMEDB_DATABASE": "jobbko",
        "DELIVERY_SPACETIMEDB_TOKEN": TOKEN,
    }
    return forwarders.start_with(settings | environ)


def test_each_event_is_a_call_that_fits_the_reducer(
    database: Database, forwarders: Forwarders, spacetimedb: SpacetimeFake
) -> None:
    forwarder = start(forwarders, spacetimedb)
    ids = run_jobs(database, 4)
    wait_for_all(database, spacetimedb)

    assert {job: row["newStatus"] for job, row in spacetimedb.table.items()} == {str(one): "completed" for one in ids}
    assert not any(TOKEN in request.line or "?" in request.line for request in spacetimedb.requests)
    assert TOKEN not in forwarder.log_text(), "the server's answers carry one, too"


def test_a_reducer_that_raises_is_tried_five_times_and_holds_up_no_other_job(
    database: Database, forwarders: Forwarders, spacetimedb: SpacetimeFake
) -> None:
    start(forwarders, spacetimedb)
    spacetimedb.trouble = (530, b"job_event: index out of range")
    job_id = database.enqueue()
    (row,) = wait_until(lambda: parked(database), what="the event to be parked")
    spacetimedb.trouble = None
    database.rows("update job_queue set status = 'running' where id = %s", job_id)

    wait_until(lambda: str(job_id) in spacetimedb.table, what="the next event")
    assert row["attempts"] == 5
    assert row["last_error"] == ("given up at try 5: the reducer raised (530: job_event: index out of range)")


def test_what_somebody_has_to_correct_holds_the_sink_and_gives_nothing_up(
    database: Database, forwarders: Forwarders, spacetimedb: SpacetimeFake
) -> None:
    forwarder = start(forwarders, spacetimedb, DELIVERY_GIVE_UP_SECONDS="0")
    for status in (401, 404, 302):
        spacetimedb.trouble = (status, b"")
        before = len(forwarder.log_events("sink waits"))
        run_jobs(database, 2)
        wait_until(lambda: len(forwarder.log_events("sink waits")) >= before + 2, what="two pauses")  # noqa: B023
        assert parked(database) == []
        spacetimedb.trouble = None
        wait_for_all(database, spacetimedb)


def test_a_webhook_and_a_database_get_the_same_events_and_do_not_hold_each_other_up(
    database: Database, forwarders: Forwarders, spacetimedb: SpacetimeFake
) -> None:
    with Receiver(behaviour=answering(500)) as webhook:
        start(forwarders, spacetimedb, DELIVERY_WEBHOOK_URL=webhook.url)
        run_jobs(database, 3)
        wait_for_all(database, spacetimedb)
        stays(lambda: webhook.accepted == [], 0.3)
        webhook.behaviour = answering(200)
        wait_for_all(database, webhook)
