"""The forwarder as a process: killed, stopped, doubled, without its database, without a sink."""

import random
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from demo.embedded_postgres import EmbeddedPostgres, free_port
from tests.databases import Database
from tests.services.delivery_support import Forwarders, all_events, is_delivering, run_jobs, wait_for_all
from tests.services.event_receiver import Receiver, Request, answering, silent
from tests.tcp_proxy import Proxy
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcesses


@pytest.fixture
def forwarders(database: Database, worker_process: WorkerProcesses) -> Forwarders:
    return Forwarders(database, worker_process)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


class Slow:
    """Takes each event after a while, so that a kill falls between its arrival and its recording, too."""

    def __init__(self, most_seconds: float) -> None:
        self._most_seconds = most_seconds
        self._random = random.Random(7)  # noqa: S311 - a test's chance

    def __call__(self, request: Request, connection: object) -> None:
        time.sleep(self._random.random() * self._most_seconds)
        answering(204)(request, connection)  # type: ignore[arg-type]


def kill_again_and_again(database: Database, forwarders: Forwarders, receiver: Receiver, kills: int) -> None:
    """Two forwarders; the one that delivers is killed somewhere in its work, the other goes on, a third one starts."""
    chance = random.Random(11)  # noqa: S311 - a test's chance
    receiver.behaviour = Slow(0.03)
    alive = [forwarders.start(receiver), forwarders.start(receiver, ready=False)]
    for _ in range(kills):
        run_jobs(database, 12)
        before = len(receiver.accepted)
        wait_until(lambda: len(receiver.accepted) > before + chance.randrange(10), what="some events", every=0.005)  # noqa: B023
        active = next(process for process in alive if is_delivering(process))
        active.kill()
        alive.remove(active)
        alive.append(forwarders.start(receiver, ready=False))
        wait_until(lambda: any(map(is_delivering, alive)), 20, what="another one to take over")


def test_events_survive_the_forwarder_being_killed_anywhere(
    database: Database, forwarders: Forwarders, receiver: Receiver
) -> None:
    kill_again_and_again(database, forwarders, receiver, kills=3)
    wait_for_all(database, receiver)

    repeated = len(receiver.accepted) - sum(map(len, all_events(database).values()))
    assert repeated <= 3 * 100, "a kill repeats a batch at most"


@pytest.mark.long
@pytest.mark.timeout(900)
def test_events_survive_sixty_kills(database: Database, forwarders: Forwarders, receiver: Receiver) -> None:
    kill_again_and_again(database, forwarders, receiver, kills=60)
    wait_for_all(database, receiver, 60)


def test_a_second_forwarder_stands_by_and_takes_over(
    database: Database, forwarders: Forwarders, receiver: Receiver
) -> None:
    first = forwarders.start(receiver)
    second = forwarders.start(receiver, ready=False)
    wait_until(lambda: any("standing by" in line["event"] for line in second.log_events()), 20)
    wait_until(second.health_file.exists, what="the health file of the one that waits")
    run_jobs(database, 3)
    wait_for_all(database, receiver)
    assert len(receiver.requests) == 9

    first.terminate()
    assert first.wait() == 0
    wait_until(lambda: is_delivering(second), what="the second one to take over")
    run_jobs(database, 3)
    wait_for_all(database, receiver)
    assert len(receiver.requests) == 18, "a forwarder that is stopped in order repeats nothing"


def test_sigterm_ends_it_at_once_and_what_it_was_sending_is_sent_again(
    database: Database, forwarders: Forwarders, receiver: Receiver
) -> None:
    receiver.behaviour = silent
    forwarder = forwarders.start(receiver, DELIVERY_TIMEOUT_SECONDS="60")
    (job_id,) = run_jobs(database)
    wait_until(lambda: receiver.requests, what="the first request")
    forwarder.terminate()

    assert forwarder.wait(20) == 0, "the try itself may take a minute"
    row = database.row("select attempts, parked_at from event_delivery order by event_id limit 1")
    assert row == {"attempts": 0, "parked_at": None}
    receiver.behaviour = answering(200)
    forwarders.start(receiver)
    wait_for_all(database, receiver)
    assert receiver.events_of(job_id) == ["pending", "running", "completed"]


def test_the_database_may_go_and_come_back(
    own_postgres: EmbeddedPostgres, own_database: Database, worker_process: WorkerProcesses, receiver: Receiver
) -> None:
    receiver.behaviour = Slow(0.05)
    forwarder = Forwarders(own_database, worker_process).start(receiver)
    run_jobs(own_database, 10)
    wait_until(lambda: len(receiver.accepted) >= 3, what="some events")
    own_postgres.restart()

    wait_until(lambda: any("database trouble" in line["event"] for line in forwarder.log_events()), 20)
    run_jobs(own_database, 3)
    wait_for_all(own_database, receiver)
    assert forwarder.is_alive()


def test_one_whose_connection_is_cut_stops_sending_and_loses_nothing(
    database: Database, forwarders: Forwarders, receiver: Receiver
) -> None:
    """The server gives the sink to the next one as soon as the connection is gone."""
    gate = threading.Event()

    def hesitating(request: Request, connection: Any) -> None:
        gate.wait(20)
        answering(204)(request, connection)

    receiver.behaviour = hesitating
    forwarder = forwarders.start(receiver, DELIVERY_TIMEOUT_SECONDS="30")
    ids = [database.enqueue() for _ in range(30)]
    wait_until(lambda: receiver.requests, what="the first event")
    database.rows("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'jobbko_delivery'")
    wait_until(lambda: forwarder.log_events("connection lost while sending"), what="the forwarder to see it")
    sent = len(receiver.requests)
    gate.set()

    wait_for_all(database, receiver)
    assert sent <= 8, "one for each lane"
    assert len(receiver.accepted) <= len(ids) + sent, "what was cut off is sent again, nothing else"


@pytest.mark.parametrize(("word", "is_recorded"), [("record_deliveries", False), ("COMMIT", True)])
def test_a_record_that_breaks_off_repeats_no_event(
    database: Database, forwarders: Forwarders, receiver: Receiver, word: str, is_recorded: bool
) -> None:
    """The forwarder remembers what it sent, and whether that was recorded the cursor tells."""
    with Proxy(database.server.host, database.server.port) as proxy:
        forwarder = forwarders.start(receiver, DATABASE_URL=proxy.dsn(database.dsn("delivery")))
        cut = proxy.cut_at(word, answered=True)
        run_jobs(database, 4)
        assert cut.happened.wait(10)
        wait_until(lambda: len(forwarder.log_events("delivering")) == 2, what="the forwarder to hold the sink again")
        run_jobs(database, 1)
        wait_for_all(database, receiver)

    assert len(receiver.requests) == 15
    assert bool(forwarder.log_events("the sink has moved on")) is is_recorded


def test_without_a_sink_it_says_so_and_stays_well(forwarders: Forwarders) -> None:
    forwarder = forwarders.start_with({}, ready=False)
    wait_until(forwarder.health_file.exists, 20, what="the health file")

    assert any("no sink is set" in line["event"] for line in forwarder.log_events())
    forwarder.terminate()
    assert forwarder.wait() == 0


def test_alerts_that_prometheus_hands_over_are_kept_though_no_sink_is_set(
    database: Database, forwarders: Forwarders
) -> None:
    port = free_port()
    forwarder = forwarders.start_with({"METRICS_PORT": str(port), "METRICS_HOST": "127.0.0.1"}, ready=False)
    wait_until(forwarder.health_file.exists, 20, what="the health file")
    answer = httpx.post(f"http://127.0.0.1:{port}/api/v2/alerts", json=[{"labels": {"alertname": "NoWorker"}}])

    assert answer.status_code == 200
    assert database.row("select name from alert")["name"] == "NoWorker"


def test_settings_that_cannot_work_end_it_with_their_own_code_and_all_their_problems(forwarders: Forwarders) -> None:
    forwarder = forwarders.start_with(
        {"DELIVERY_WEBHOOK_URL": "http://example.net/key-4711", "DELIVERY_WEBHOOK_SECRET": "",
         "DELIVERY_STATUSES": "done", "DELIVERY_RETRY_SECONDS": "soon"}, ready=False,
    )  # fmt: skip

    assert forwarder.wait() == 78
    (line,) = forwarder.log_events("cannot start")
    for problem in ("DELIVERY_WEBHOOK_URL is plain http to example.net", "DELIVERY_WEBHOOK_SECRET is not set",
                    "DELIVERY_STATUSES names done", "DELIVERY_RETRY_SECONDS is 'soon'"):  # fmt: skip
        assert problem in line["problem"]
    assert "4711" not in forwarder.log_text()


def test_a_restored_database_is_not_delivered_from_before_its_epoch_is_renewed(
    database: Database, forwarders: Forwarders, receiver: Receiver
) -> None:
    run_jobs(database)
    database.rows("update job_event set xid = '900000000000'")
    forwarder = forwarders.start(receiver, ready=False)

    assert forwarder.wait() == 78
    assert "renew_event_epoch" in forwarder.log_events("cannot go on")[0]["problem"]


def test_metrics_tell_what_is_delivered_and_what_is_left(
    database: Database, forwarders: Forwarders, receiver: Receiver
) -> None:
    port = free_port()
    receiver.behaviour = answering(400)
    forwarders.start(receiver, METRICS_PORT=str(port), METRICS_HOST="127.0.0.1")
    run_jobs(database)

    def values() -> dict[str, float]:
        lines = httpx.get(f"http://127.0.0.1:{port}/metrics").text.splitlines()
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line[0] != "#")}

    wait_until(lambda: values().get('jobqueue_event_parked{sink="webhook"}') == 3, 15, every=0.2, what="the gauge")
    found = values()
    assert found['jobqueue_event_deliveries_total{outcome="parked",sink="webhook"}'] == 3
    assert found['jobqueue_event_deliveries_total{outcome="delivered",sink="webhook"}'] == 0
    assert found['jobqueue_event_lag_seconds{sink="webhook"}'] == 0
    assert found['jobqueue_event_sink_active{sink="webhook"}'] == 1


def test_no_secret_stands_in_the_log_or_the_database(
    database: Database, forwarders: Forwarders, receiver: Receiver
) -> None:
    receiver.behaviour = answering(400, b"bad signature for whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYqr")
    forwarder = forwarders.start(receiver, LOG_LEVEL="debug")
    run_jobs(database)
    wait_until(lambda: database.rows("select 1 from event_delivery where parked_at is not null"), what="a refusal")

    stored = str(database.rows("select * from event_sink")) + str(database.rows("select * from event_delivery"))
    assert "MfKQ9r8GKYqr" not in stored + forwarder.log_text()
    assert "/hooks" not in stored + forwarder.log_text(), "a path may be a key"
