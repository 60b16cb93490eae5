"""The forwarder against a real receiver, whatever that one does: every event arrives, in the order of its job."""

from collections.abc import Iterator

import pytest

from tests.databases import Database
from tests.services.delivery_support import Forwarders, parked, run_jobs, wait_for_all
from tests.services.event_receiver import Receiver, answering, dripping, flooding, resetting, silent
from tests.waiting import stays, wait_until
from tests.worker_processes import WorkerProcesses


@pytest.fixture
def forwarders(database: Database, worker_process: WorkerProcesses) -> Forwarders:
    return Forwarders(database, worker_process)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


def test_each_change_of_a_job_arrives_once_signed_and_in_order(
    database: Database, forwarders: Forwarders, receiver: Receiver
) -> None:
    """The receiver checks each signature with the specification's own library."""
    forwarders.start(receiver)
    ids = run_jobs(database, 5)
    wait_for_all(database, receiver)

    assert [receiver.events_of(job_id) for job_id in ids] == [["pending", "running", "completed"]] * 5
    assert len(receiver.requests) == 15
    assert {request.line for request in receiver.requests} == {"POST /hooks/jobbko HTTP/1.1"}


def test_jobs_whose_events_fail_hold_up_no_other_and_come_in_order_later(
    database: Database, forwarders: Forwarders, receiver: Receiver
) -> None:
    """Each fails in its own way: an error, a reset, silence, a head that drips, a body that never ends."""
    troubles = [answering(500), resetting, silent, dripping, flooding(500)]
    failing = [database.enqueue() for _ in troubles]
    receiver.by_job = {str(job_id): trouble for job_id, trouble in zip(failing, troubles, strict=True)}
    database.rows("delete from job_event")
    forwarders.start(receiver, DELIVERY_TIMEOUT_SECONDS="1")
    for status in ("running", "completed"):
        database.rows("update job_queue set status = %s::job_status where id = any(%s)", status, failing)
    (other,) = run_jobs(database)

    wait_until(lambda: receiver.events_of(other) == ["pending", "running", "completed"], what="the other job's events")
    tried = "select count(*) from event_delivery where attempts >= 2"
    wait_until(lambda: database.value(tried) == len(troubles), 30, what="a second try of each")
    assert [receiver.events_of(job_id) for job_id in failing] == [[]] * len(troubles)
    for row in database.rows("select last_error from event_delivery where attempts >= 2"):
        assert row["last_error"].startswith(
            ("no answer within 1 s", "the connection broke", "the receiver failed (500")
        )
    receiver.by_job.clear()
    wait_for_all(database, receiver, 40)
    assert [receiver.events_of(job_id) for job_id in failing] == [["running", "completed"]] * len(troubles)
    wait_until(lambda: not database.rows("select 1 from event_delivery"), what="nothing to be left")


def test_a_receiver_that_is_down_gets_everything_once_it_is_back(
    database: Database, forwarders: Forwarders, receiver: Receiver
) -> None:
    with Receiver() as gone:
        port = gone.port
    forwarder = forwarders.start_with({"DELIVERY_WEBHOOK_URL": f"http://127.0.0.1:{port}/"})
    ids = run_jobs(database, 20)
    wait_until(lambda: forwarder.log_events("sink waits"), what="the forwarder to see that nobody is there")
    tries = len(forwarder.log_events("event failed"))

    with Receiver(port=port) as back:
        wait_for_all(database, back)
        assert [back.events_of(job_id) for job_id in ids] == [["pending", "running", "completed"]] * 20
    assert tries < 20, "not every event has to find out that nobody is there"
    assert parked(database) == []


def test_a_receiver_that_restarts_now_and_then_misses_nothing(database: Database, forwarders: Forwarders) -> None:
    """Connections that were kept are closed under the forwarder, in the middle of an answer or before."""
    first = Receiver()
    with first:
        forwarders.start(first)
        run_jobs(database, 10)
        wait_until(lambda: len(first.accepted) >= 5, what="some events")
    second = Receiver(port=first.port, accepted=first.accepted)
    run_jobs(database, 10)
    with second:
        wait_for_all(database, second)


def test_a_receiver_that_says_gone_gets_nothing_more_until_an_operator_says_so(
    database: Database, forwarders: Forwarders, receiver: Receiver
) -> None:
    receiver.behaviour = answering(410, b"unsubscribed")
    forwarder = forwarders.start(receiver)
    (job_id,) = run_jobs(database)
    sink = wait_until(lambda: database.rows("select * from event_sink where disabled_at is not null"))[0]
    wait_until(lambda: forwarder.log_events("sink is disabled"), what="the forwarder to see it")
    asked = len(receiver.requests)

    assert sink["disabled_reason"] == "the receiver wants no more events (410: unsubscribed)"
    assert database.row("select subject, actor from audit_entry where action = 'sink.disable'") == {
        "subject": "webhook", "actor": "jobbko_delivery",
    }  # fmt: skip
    receiver.behaviour = answering(200)
    run_jobs(database)
    stays(lambda: len(receiver.requests) == asked, 0.5, what="no further request")
    database.connect("operator").execute("select enable_event_sink('webhook')")
    wait_for_all(database, receiver)
    assert receiver.events_of(job_id) == ["pending", "running", "completed"]


def test_an_event_that_is_refused_is_parked_at_once_and_can_be_sent_anew(
    database: Database, forwarders: Forwarders, receiver: Receiver
) -> None:
    refused, sent_on = database.enqueue(), database.enqueue()
    receiver.by_job = {
        str(refused): answering(400, b"no such \x1b[31mfield\npassword=hunter2secret"),
        str(sent_on): answering(302, location="https://elsewhere.example/"),
    }
    database.rows("delete from job_event")
    forwarders.start(receiver)
    for status in ("running", "completed"):
        database.rows("update job_queue set status = %s::job_status", status)
    rows = wait_until(lambda: len(parked(database)) == 4 and parked(database), what="four parked events")

    told = {row["job_id"]: row["last_error"] for row in rows}
    assert "refuses the event (400: no such" in told[refused]
    assert "hunter2secret" not in told[refused]
    assert "sends on to 'https://elsewhere.example/' (302), which is not followed" in told[sent_on]
    assert {row["attempts"] for row in rows} == {1}
    assert len(receiver.requests) == 4, "no redirect was followed, nothing tried again"
    receiver.by_job.clear()
    assert database.connect("operator").execute("select replay_deliveries()").fetchone() == (4,)
    wait_for_all(database, receiver)


def test_an_event_that_nobody_takes_is_parked_after_its_time_and_the_next_one_goes(
    database: Database, forwarders: Forwarders, receiver: Receiver
) -> None:
    job_id = database.enqueue()
    receiver.by_job[str(job_id)] = answering(500)
    forwarders.start(receiver, DELIVERY_GIVE_UP_SECONDS="0.4")
    database.rows("update job_queue set status = 'running' where id = %s", job_id)
    (row,) = wait_until(lambda: parked(database), what="the event to be parked")
    receiver.by_job.clear()
    database.rows("update job_queue set status = 'completed' where id = %s", job_id)

    wait_until(lambda: receiver.events_of(job_id) == ["completed"], what="the next event")
    assert row["attempts"] >= 2
    assert row["last_error"] == f"given up at try {row['attempts']}: the receiver failed (500)"


def test_a_receiver_that_asks_for_a_wait_gets_it(
    database: Database, forwarders: Forwarders, receiver: Receiver
) -> None:
    receiver.behaviour = answering(429, retry_after="3600")
    forwarders.start(receiver)
    run_jobs(database, 3)
    wait = "select extract(epoch from waits_until - now()) as seconds, wait_reason from event_sink"
    row = wait_until(lambda: next((row for row in database.rows(wait) if row["seconds"]), None), what="the wait")

    assert 3500 < row["seconds"] <= 3600
    assert row["wait_reason"] == "the receiver failed (429)"
    asked = len(receiver.requests)
    stays(lambda: len(receiver.requests) == asked, 0.5, what="no further request")
    receiver.behaviour = answering(200)
    database.connect("operator").execute("select enable_event_sink('webhook')")
    wait_for_all(database, receiver)


def test_what_a_receiver_says_with_its_thanks_is_not_taken_in(
    database: Database, forwarders: Forwarders, receiver: Receiver
) -> None:
    """A body that never ends, a cookie."""
    forwarders.start(receiver)
    for behaviour in (flooding(200), answering(204, set_cookie="a=b")):
        receiver.behaviour = behaviour
        run_jobs(database, 2)
        wait_for_all(database, receiver)

    assert len(receiver.requests) == 12
    assert not any("cookie" in request.headers for request in receiver.requests)


def test_only_the_types_and_changes_that_are_asked_for_leave(
    database: Database, forwarders: Forwarders, receiver: Receiver
) -> None:
    forwarders.start(receiver, DELIVERY_JOB_TYPES="other_job, nothing", DELIVERY_STATUSES="running,error")
    run_jobs(database, 2)
    wanted = database.enqueue("other_job")
    for status in ("running", "completed"):
        database.rows("update job_queue set status = %s::job_status where id = %s", status, wanted)
    last = database.enqueue("other_job", status="error")

    wait_until(lambda: len(receiver.accepted) == 2, what="the two that are wanted")
    assert (receiver.events_of(wanted), receiver.events_of(last)) == (["running"], ["error"])
    wait_until(
        lambda: database.value("select cursor_id from event_sink") == database.value("select max(id) from job_event")
    )
    assert len(receiver.requests) == 2
    assert database.value("select count(*) from event_delivery") == 0
