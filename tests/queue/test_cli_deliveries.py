"""`jobs deliveries …` against a real database."""

from services.admin.delivery.signature import signing_key
from sidelinja_jobs.cli.exits import ExitCode
from tests.command_line import Jobs
from tests.databases import Database
from tests.queue.sink_session import Sink


def test_sinks_are_listed_with_what_they_do_and_how_far_behind_they_are(database: Database, jobs: Jobs) -> None:
    assert "no sink was ever delivered to. Next: make secret NAME=webhook_url" in jobs("deliveries", "sinks").err
    sink = Sink(database)
    database.enqueue()
    sink.record(sink.next(), "parked")

    (shown,) = jobs("deliveries", "sinks", "--json").document
    assert (shown["name"], shown["state"], shown["parked"], shown["waiting"]) == ("test", "delivering", 1, 0)
    sink.leave()
    assert jobs("deliveries", "sinks", columns=200).lines[1].split()[:5] == [
        "test", "https://example.net", "no", "forwarder", "0",
    ]  # fmt: skip


def test_what_is_parked_is_listed_and_sent_anew_one_by_one_or_all_at_once(database: Database, jobs: Jobs) -> None:
    sink = Sink(database)
    ids = [database.enqueue() for _ in range(3)]
    sink.record(sink.next(), "parked", error="\x1b[31mgiven up\nmore")

    listed = jobs("deliveries", "list", "--parked", columns=200)
    assert [line.split()[2] for line in listed.lines[1:]] == [str(job_id)[:8] for job_id in reversed(ids)]
    assert "\x1b" not in listed.out
    assert "new → pending" in listed.out
    first = jobs("deliveries", "list", "--json").document[-1]["event_id"]
    assert jobs("deliveries", "replay", str(first)).lines == ["1 to be sent anew"]
    assert jobs("deliveries", "replay", str(first)).code == ExitCode.NOT_FOUND
    assert jobs("deliveries", "replay", "--all", "--sink", "other").lines == ["0 to be sent anew"]
    assert jobs("deliveries", "replay", "--all").lines == ["2 to be sent anew"]
    assert [job_id for job_id, _ in sink.deliver_all()] == ids
    assert "everything was delivered" in jobs("deliveries", "list").err


def test_replay_wants_to_be_told_which(jobs: Jobs) -> None:
    assert jobs("deliveries", "replay").code == ExitCode.REFUSED
    assert jobs("deliveries", "replay", "--all", "7").code == ExitCode.REFUSED


def test_a_disabled_sink_is_enabled_and_an_old_one_forgotten(database: Database, jobs: Jobs) -> None:
    sink = Sink(database)
    sink.conn.execute("select disable_event_sink('test', 'gone')")

    (shown,) = jobs("deliveries", "sinks", "--json").document
    assert (shown["state"], shown["reason"]) == ("disabled", "gone")
    assert jobs("deliveries", "enable", "test").lines == ["test goes on"]
    assert jobs("deliveries", "enable", "test").lines == ["test was going on already"]
    refused = jobs("deliveries", "forget", "test")
    assert (refused.code, "is being delivered to" in refused.err) == (ExitCode.REFUSED, True)
    sink.leave()
    assert jobs("deliveries", "forget", "test").lines == ["test is forgotten"]
    assert jobs("deliveries", "forget", "test").code == ExitCode.NOT_FOUND
    actions = [row["action"] for row in database.rows("select action from audit_entry order by id")]
    assert actions == ["sink.disable", "sink.enable", "sink.enable", "sink.forget"]


def test_who_only_looks_may_look(database: Database, jobs: Jobs) -> None:
    Sink(database)

    assert jobs("deliveries", "list", role="reader").code == 0
    assert jobs("deliveries", "sinks", role="reader").code == 0
    assert jobs("deliveries", "replay", "--all", role="reader").code == ExitCode.NOT_ALLOWED


def test_a_new_secret_can_sign(jobs: Jobs) -> None:
    first, second = (jobs("deliveries", "secret").out.strip() for _ in range(2))

    assert len(signing_key(first)) == 32
    assert first != second
