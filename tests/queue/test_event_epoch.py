"""A restored database begins a new epoch of events: nothing is lost, and receivers can tell old from new."""

from tests.databases import Database
from tests.queue.sink_session import Sink
from tests.sessions import refused


def test_a_database_of_another_server_is_not_delivered_from_until_its_epoch_is_renewed(database: Database) -> None:
    """Restored into a young server, events have transaction numbers that are still to come."""
    before = Sink(database)
    done = database.enqueue()
    before.record(before.next())
    left = database.enqueue()
    before.leave()
    old = database.row("select epoch from event_epoch")["epoch"]
    for table, column in (("job_event", "xid"), ("event_sink", "cursor_xid")):
        database.rows(f"update {table} set {column} = (({column}::text)::bigint + 1000000000)::text::xid8")
    with refused("JQ002", "it was restored"):
        Sink(database)

    assert database.connect("operator").execute("select renew_event_epoch()").fetchone()[0] != old

    after = Sink(database)
    new = database.enqueue()
    sent = after.deliver_all()
    assert sent == [(left, "pending"), (new, "pending")]
    assert done not in [job_id for job_id, _ in sent]
    assert database.row("select epoch from event_epoch")["epoch"] != old


def test_what_waits_and_what_is_parked_survives_the_renewal_once(database: Database) -> None:
    sink = Sink(database)
    parked = database.enqueue()
    sink.record(sink.next(), "parked")
    retried = database.enqueue()
    sink.record(sink.next(), "failed")
    left = database.enqueue()
    database.connect("operator").execute("select renew_event_epoch()")

    assert sink.deliver_all() == [(retried, "pending"), (left, "pending")]
    assert database.row("select job_id from event_delivery where parked_at is not null")["job_id"] == parked


def test_a_sink_that_had_nothing_left_stays_there(database: Database) -> None:
    sink = Sink(database)
    database.enqueue()
    sink.record(sink.next())
    database.connect("operator").execute("select renew_event_epoch()")

    assert sink.next() == []
    new = database.enqueue()
    assert sink.deliver_all() == [(new, "pending")]
