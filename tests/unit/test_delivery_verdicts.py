"""What answers mean, and when an event is tried again or given up."""

from uuid import UUID, uuid4

import pytest

from services.admin.delivery.batch import Batch, Tried
from services.admin.delivery.events import Event
from services.admin.delivery.lane import Lane
from services.admin.delivery.policy import Policy, probe
from services.admin.delivery.sinks import Outgoing
from services.admin.delivery.spacetimedb import SpacetimeDB
from services.admin.delivery.verdicts import Answer, Kind, Verdict, retry_after_seconds
from services.admin.delivery.webhook import Webhook
from tests.unit.delivery_events import EPOCH, event

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
WEBHOOK = Webhook("https://example.net/", [SECRET], "/jobbko")
SPACETIMEDB = SpacetimeDB("https://example.net/", "jobbko", "job_event", "token")


def kind(sink: Webhook | SpacetimeDB, status: int, text: str = "") -> Kind:
    return sink.judge(Answer(status, {}, text)).kind


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ([200, 201, 202, 204, 299], Kind.DELIVERED),
        ([408, 409, 425, 429, 500, 501, 502, 503, 504, 530, 599, 100], Kind.RETRY),
        ([400, 401, 403, 404, 405, 411, 413, 415, 422, 451], Kind.PARK),
        ([300, 301, 302, 303, 304, 307, 308], Kind.PARK),
        ([410], Kind.DISABLE),
    ],
)
def test_answers_of_a_webhook(statuses: list[int], expected: Kind) -> None:
    assert {status: kind(WEBHOOK, status) for status in statuses} == dict.fromkeys(statuses, expected)


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ([200], Kind.DELIVERED),
        ([408, 429, 500, 502, 503, 504, 530], Kind.RETRY),
        ([301, 302, 400, 401, 402, 403, 404, 410, 415], Kind.HOLD),
    ],
)
def test_answers_of_spacetimedb(statuses: list[int], expected: Kind) -> None:
    assert {status: kind(SPACETIMEDB, status) for status in statuses} == dict.fromkeys(statuses, expected)


def test_a_database_that_is_not_on_its_host_just_now_is_waited_for() -> None:
    assert kind(SPACETIMEDB, 404, "database is Not Scheduled on this node") is Kind.RETRY


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120.0), ("1.5", 1.5), ("-3", 0.0), ("9999999", 86400.0), ("nan", None), ("inf", None),
        ("soon", None),
        ("", None),
        ("Thu, 01 Jan 1970 00:02:00 GMT", 20.0), ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("Thu, 99 Foo 1970 00:00:00 GMT", None),
    ],
)  # fmt: skip
def test_retry_after_is_seconds_or_a_date_within_bounds(text: str, seconds: float | None) -> None:
    assert retry_after_seconds({"retry-after": text}, now=100.0) == seconds


def test_an_answer_is_told_on_one_line_without_secrets_and_cut() -> None:
    told = WEBHOOK.judge(Answer(500, {}, f"bad\x00 {SECRET}\n" + "x" * 5000)).message

    assert SECRET not in told
    assert "\n" not in told
    assert "\x00" not in told
    assert len(told) < 400


def test_a_redirect_says_where_it_leads_and_what_to_do() -> None:
    verdict = WEBHOOK.judge(Answer(308, {"location": f"https://new.example/\x1b[2J?token={SECRET}&" + "y" * 999}))

    assert SECRET not in verdict.message
    assert "set the final address" in verdict.message
    assert "\x1b" not in verdict.message
    assert len(verdict.message) < 400


POLICY = Policy((5.0, 30.0, 3600.0), 259200.0)


@pytest.mark.parametrize(("tries", "wait"), [(0, 5.0), (1, 30.0), (2, 3600.0), (50, 3600.0)])
def test_waits_grow_and_stay_at_the_last_one_with_a_little_chance(tries: int, wait: float) -> None:
    result = POLICY.result(event(tries=tries, age_seconds=60.0), Tried(Verdict(Kind.RETRY, "500"), 0.1))

    assert result.outcome == "failed"
    assert wait <= result.wait_seconds <= wait * 1.2


def test_a_receivers_wish_for_a_wait_is_the_sinks_and_no_events() -> None:
    """Else an event would still wait when an operator has let the sink go on."""
    tried = Tried(Verdict(Kind.RETRY, "429", retry_after_seconds=7200.0), 0.1)

    assert POLICY.result(event(), tried).wait_seconds <= 6.0


def test_an_event_is_given_up_after_its_time_and_a_raising_reducer_after_its_tries() -> None:
    late = POLICY.result(event(tries=80, age_seconds=259200.0), Tried(Verdict(Kind.RETRY, "500"), 0.1))
    raising = POLICY.result(event(tries=4), Tried(Verdict(Kind.RETRY, "530", most_tries=5), 0.1))

    assert (late.outcome, late.error) == ("parked", "given up at try 81: 500")
    assert raising.outcome == "parked"


def test_what_is_nobodys_fault_costs_no_try() -> None:
    for verdict_kind in (Kind.HOLD, Kind.DISABLE):
        assert POLICY.result(event(), Tried(Verdict(verdict_kind, "x"), 0.1)).outcome == "waiting"
    assert POLICY.result(event(), None).outcome == "waiting"
    assert POLICY.result(event(is_wanted=False), None).outcome == "skipped"


def test_a_sink_that_seems_to_be_down_is_asked_at_least_once_a_minute() -> None:
    assert [POLICY.pause_seconds(before) for before in (0, 1, 2, 3, 4, 5, 500)] == [5, 10, 20, 40, 60, 60, 60]


def test_an_event_that_trips_the_forwarder_is_tried_again_and_stops_no_other() -> None:
    class Tripping(Webhook):
        def request(self, event: Event, epoch: UUID) -> Outgoing:
            raise ZeroDivisionError

    batch = Batch(Tripping("http://127.0.0.1:9/", [SECRET], "/jobbko"), EPOCH, [event()], frozenset())
    batch.work(Lane("http://127.0.0.1:9/", 1.0))

    assert batch.tried[42].verdict == Verdict(Kind.RETRY, "a fault in the forwarder: ZeroDivisionError")


def test_a_receiver_that_seems_to_be_down_is_asked_with_one_retried_and_one_new_event() -> None:
    """The new one is the first that may be sent, wherever it stands: those before it would only have to wait."""
    jobs = [uuid4() for _ in range(6)]
    retried = [event(event_id=number, job_id=jobs[number], is_new=False) for number in (1, 2)]
    held = [event(event_id=number, job_id=jobs[1], is_held=True) for number in (10, 11)]
    unwanted = event(event_id=12, job_id=jobs[3], is_wanted=False)
    free, left = event(event_id=13, job_id=jobs[4]), event(event_id=14, job_id=jobs[5])

    passed, to_send = probe([*retried, *held, unwanted, free, left])
    assert [one.event_id for one in passed] == [1, 10, 11, 12, 13]
    assert [one.event_id for one in to_send] == [1, 13]


def test_a_probe_overtakes_no_earlier_event_of_its_job() -> None:
    """In the order of the cursor the later one comes first: it waits, the earlier one goes."""
    later, earlier = event(event_id=21), event(event_id=20)

    passed, to_send = probe([later, earlier])
    assert [one.event_id for one in passed] == [21, 20]
    assert [one.event_id for one in to_send] == [20]


def test_a_receiver_that_seems_down_is_asked_with_the_event_that_was_tried_least() -> None:
    """Or the trouble of one job would be taken for the receiver's for ever."""
    often = event(event_id=1, job_id=uuid4(), tries=5, is_new=False)
    seldom = event(event_id=2, job_id=uuid4(), tries=1, is_new=False)

    passed, to_send = probe([often, seldom])

    assert (passed, to_send) == ([seldom], [seldom])
