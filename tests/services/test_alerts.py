"""Alerts as Prometheus posts them, kept in the real database, told to a real receiver and by real mail."""

import http.client
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from demo.embedded_postgres import EmbeddedPostgres, free_port
from services.admin.alerts import desk
from services.admin.alerts.channels import Alert, Channel, Mail, UntoldError, channels_of
from services.admin.alerts.desk import AlertDesk
from services.admin.alerts.receiver import LONGEST_BODY, PATH, receiving
from services.admin.alerts.settings import AlertSettings
from sidelinja_jobs.metrics import serve_metrics
from sidelinja_jobs.settings import DatabaseSettings
from tests.databases import Database
from tests.services.alert_receivers import SECRET, Mails, Posts
from tests.waiting import stays, wait_until

LATER = timedelta(minutes=4)


class Stack:
    """A desk with its receiver on a port of its own, as Prometheus meets it."""

    def __init__(self, database: Database, channels: list[Channel], repeat_seconds: float = 3600) -> None:
        self.database = database
        self.stopping = threading.Event()
        settings = DatabaseSettings(url=database.dsn("jobbko_delivery"), password=None, timeout_seconds=5)
        self.desk = AlertDesk(settings, channels, self.stopping, repeat_seconds)
        self.port = free_port()
        self.server = serve_metrics(self.port, "127.0.0.1")
        assert self.server is not None
        self.server.set_app(receiving(self.desk.record, self.server.get_app()))
        self.thread = threading.Thread(target=self.desk.run)
        self.thread.start()

    def post(self, *alerts: dict[str, Any], body: bytes | None = None) -> int:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{PATH}", json.dumps(alerts).encode() if body is None else body
        )
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - to loopback
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    def is_settled(self, statement: str) -> bool:
        return bool(self.database.value(statement))

    def close(self) -> None:
        self.stopping.set()
        self.thread.join(10)
        assert self.server is not None
        self.server.shutdown()
        self.server.server_close()


def alert(name: str = "NoWorker", *, ends_in: timedelta = LATER, **labels: str) -> dict[str, Any]:
    now = datetime.now(UTC)
    return {
        "labels": {"alertname": name, "severity": "critical", **labels},
        "annotations": {"summary": f"{name} of {labels.get('job_type', 'all')}", "next_step": "look"},
        "startsAt": (now - timedelta(minutes=1)).isoformat(),
        "endsAt": (now + ends_in).isoformat(),
        "generatorURL": "http://prometheus/graph",
    }


@pytest.fixture(autouse=True)
def _swift(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(desk, "WAITS_SECONDS", (0.2,))


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> CollectorRegistry:
    """One for each desk, which a process has once."""
    registry = CollectorRegistry()
    monkeypatch.setattr(desk, "REGISTRY", registry)
    return registry


@pytest.fixture
def posts() -> Iterator[Posts]:
    with closing(Posts()) as receiver:
        yield receiver


@contextmanager
def running(database: Database, settings: AlertSettings, **options: float) -> Iterator[Stack]:
    stack = Stack(database, channels_of(settings, "/jobbko"), **options)
    try:
        yield stack
    finally:
        stack.close()


def by_webhook(posts: Posts) -> AlertSettings:
    return AlertSettings(webhook_url=posts.url, webhook_secret=SECRET)


@pytest.fixture
def stack(database: Database, posts: Posts) -> Iterator[Stack]:
    with running(database, by_webhook(posts)) as stack:
        yield stack


def test_an_alert_is_told_once_and_so_is_its_end(stack: Stack, posts: Posts, database: Database) -> None:
    for _ in range(3):  # Prometheus repeats itself every minute
        assert stack.post(alert(job_type="stats_parse")) == 200
    wait_until(lambda: posts.taken)
    stack.post(alert(job_type="stats_parse", ends_in=timedelta(seconds=-1)))
    wait_until(lambda: len(posts.taken) == 2)
    stack.post(alert(job_type="stats_parse", ends_in=timedelta(seconds=-1)))
    stays(lambda: len(posts.taken) == 2, 0.5)

    firing, over = posts.taken
    assert (firing["type"], over["type"]) == ("no.sidelinja.alert.firing", "no.sidelinja.alert.over")
    assert firing["text"] == "critical: NoWorker of stats_parse"
    assert firing["data"]["labels"] == {"job_type": "stats_parse"}
    assert firing["data"]["next_step"] == "look"
    assert firing["id"] != over["id"]
    assert database.value("select is_over from alert_notice")


def test_one_that_fires_again_is_told_again(stack: Stack, posts: Posts) -> None:
    for ends_in in (LATER, timedelta(seconds=-1), LATER):
        stack.post(alert(ends_in=ends_in))
        expected = len(posts.taken) + 1
        wait_until(lambda expected=expected: len(posts.taken) == expected)

    assert [document["data"]["is_firing"] for document in posts.taken] == [True, False, True]


def test_what_the_receiver_does_not_take_is_told_later(stack: Stack, posts: Posts, database: Database) -> None:
    posts.statuses = [500, 302, 404]
    stack.post(alert())

    wait_until(lambda: posts.taken)
    assert posts.statuses == []
    wait_until(lambda: database.value("select last_error is null and tries = 0 from alert_notice"))


def test_an_alert_that_goes_on_is_told_again_after_a_while(database: Database, posts: Posts) -> None:
    with running(database, by_webhook(posts), repeat_seconds=0.5) as stack:
        stack.post(alert())
        wait_until(lambda: len(posts.taken) >= 3)


def test_nothing_more_heard_is_taken_for_the_end(stack: Stack, posts: Posts) -> None:
    stack.post(alert(ends_in=timedelta(seconds=1)))

    wait_until(lambda: len(posts.taken) == 2)
    assert posts.taken[1]["type"].endswith("over")


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"{}", 400), (b"[{}]", 400), (b"\xff", 400), (b'[{"labels": {"a": 1}}]', 400),
     (b'[{"labels": {"a": "\\ud800"}}]', 400), (b"", 413)],
)  # fmt: skip
def test_what_is_no_list_of_alerts_is_refused(stack: Stack, database: Database, body: bytes, status: int) -> None:
    assert stack.post(body=body) == status
    assert database.rows("select * from alert") == []


def test_a_body_that_is_too_long_is_refused_unread(stack: Stack) -> None:
    sender = http.client.HTTPConnection("127.0.0.1", stack.port, timeout=10)
    sender.putrequest("POST", PATH)
    sender.putheader("Content-Length", str(LONGEST_BODY + 1))
    sender.endheaders()

    assert sender.getresponse().status == 413
    sender.close()


def test_hostile_text_stays_text(stack: Stack, posts: Posts, database: Database) -> None:
    hostile = alert(job_type="\0<script>\r\nBcc: all@example.no")
    hostile["annotations"]["summary"] = "a\nb" * 5000
    assert stack.post(hostile) == 200

    (document,) = wait_until(lambda: posts.taken)
    assert "\n" not in document["data"]["summary"]
    assert len(document["data"]["summary"]) <= 2000
    assert "\0" not in database.value("select labels::text from alert")


def test_metrics_are_served_beside_the_alerts(stack: Stack) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{stack.port}/metrics", timeout=5) as answer:
        assert b"python_info" in answer.read()


def test_while_the_database_is_away_prometheus_is_asked_to_try_again(
    stack: Stack, database: Database, posts: Posts
) -> None:
    conn = database.connect()
    conn.execute("revoke execute on function record_alerts from jobbko_delivery")
    assert stack.post(alert()) == 503
    conn.execute("grant execute on function record_alerts to jobbko_delivery")
    assert stack.post(alert()) == 200
    wait_until(lambda: posts.taken)


@pytest.fixture
def own_stack(own_database: Database, posts: Posts) -> Iterator[Stack]:
    """On a server that a test may stop."""
    with running(own_database, by_webhook(posts)) as stack:
        yield stack


def test_without_the_database_an_alert_is_told_all_the_same_and_once(
    own_stack: Stack, own_postgres: EmbeddedPostgres, posts: Posts
) -> None:
    """That the database is away is what has to be told; so is the end, which the database never hears more of."""
    own_postgres.stop()
    away, came_back = alert("StateUnknown"), alert("NoWorker")
    posts.statuses = [500]
    assert own_stack.post(away, came_back) == 503
    wait_until(lambda: len(posts.taken) == 2, 30)
    own_postgres.start()
    assert own_stack.post(away | {"endsAt": datetime.now(UTC).isoformat()}, came_back) == 200
    wait_until(lambda: len(posts.taken) == 3, 30)
    own_stack.post(came_back | {"endsAt": datetime.now(UTC).isoformat()})
    wait_until(lambda: len(posts.taken) == 4, 30)

    assert [(post["subject"], post["data"]["is_firing"]) for post in posts.taken[2:]] == [
        ("StateUnknown", False), ("NoWorker", False),
    ]  # fmt: skip
    assert len({post["id"] for post in posts.taken}) == 4


def test_the_gauges_are_absent_while_the_database_is_away(
    own_stack: Stack, own_postgres: EmbeddedPostgres, posts: Posts, registry: CollectorRegistry
) -> None:
    def gauges() -> list[float | None]:
        return [registry.get_sample_value(f"jobqueue_alerts_{name}") for name in ("firing", "untold")]

    posts.status = 500
    own_stack.post(alert())
    wait_until(lambda: gauges() == [1, 1])
    own_postgres.stop()
    wait_until(lambda: gauges() == [None, None], 20)
    own_postgres.start()
    wait_until(lambda: gauges() == [1, 1], 30)


def test_what_the_database_had_told_is_not_told_again_without_it(
    own_stack: Stack, own_postgres: EmbeddedPostgres, posts: Posts
) -> None:
    told = alert()
    own_stack.post(told)
    wait_until(lambda: posts.taken and own_stack.is_settled("select told_at is not null from alert_notice"))
    own_postgres.stop()
    assert own_stack.post(told) == 503
    assert own_stack.post(told | {"endsAt": datetime.now(UTC).isoformat()}) == 503
    wait_until(lambda: len(posts.taken) == 2, 30)
    own_postgres.start()
    assert own_stack.post(told | {"endsAt": datetime.now(UTC).isoformat()}) == 200
    wait_until(lambda: own_stack.is_settled("select is_over from alert_notice"), 30)

    assert [post["data"]["is_firing"] for post in posts.taken] == [True, False]


def test_mail_tells_all_alerts_of_a_moment_at_once(database: Database) -> None:
    mails = Mails(free_port())
    settings = AlertSettings(
        mail_to="vakt@example.no, reserve@example.no", mail_from="jobbko@example.no", smtp_host="127.0.0.1",
        smtp_port=mails.port, smtp_security="none",
    )  # fmt: skip
    with closing(mails), running(database, settings) as stack:
        stack.post(alert(job_type="a"), alert("DiskNearlyFull"))
        (mail,) = wait_until(lambda: mails.taken, 10)

    assert "To: vakt@example.no, reserve@example.no" in mail
    assert "(+1)" in mail
    assert "NoWorker of a" in mail
    assert "DiskNearlyFull of all" in mail
    assert "Next: look" in mail


def test_a_mail_server_that_is_down_is_told_without_the_password() -> None:
    settings = AlertSettings(
        mail_to="a@example.no", mail_from="b@example.no", smtp_host="127.0.0.1", smtp_port=free_port(),
        smtp_security="none", smtp_user="me", smtp_password="hemmelig",
    )  # fmt: skip
    now = datetime.now(UTC)
    with pytest.raises(UntoldError, match=r"127\.0\.0\.1 did not take the mail") as caught:
        Mail(settings).tell([Alert("f", "A", "warning", {}, "s", "n", now, now, True, 0)])
    assert "hemmelig" not in str(caught.value)
