"""The event stream: what it tells, in what order, and that nothing is missed when anything is slow or restarts."""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import httpx
import pytest

from services.admin import streams
from services.admin.live import LiveFeed
from sidelinja_jobs.redaction import MASK
from tests.databases import Database
from tests.services.admin_site import OPERATOR, AdminSite, admin_site_with
from tests.tcp_proxy import Proxy
from tests.waiting import wait_until

STATUS_AND_PROGRESS_SECONDS = 1.0  # what is promised for a page
SLACK_SECONDS = 4.0  # for a machine that does other things, too


class Stream:
    """An open event stream, read by a thread: `events` are (event, data), `cursor` the last id."""

    def __init__(self, site: AdminSite, after: str | None = None, last_event_id: str | None = None) -> None:
        self.events: list[tuple[str, Any]] = []
        self.cursor = ""
        self.beats = 0  # comments, which come when there is nothing to tell
        self.is_over = False
        self._client = site.client(OPERATOR)
        headers = {"Last-Event-ID": last_event_id} if last_event_id else {}
        query = {"after": after} if after else {}
        self._request = self._client.build_request("GET", "/live", params=query, headers=headers)
        self.answer = self._client.send(self._request, stream=True)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def of(self, kind: str) -> list[Any]:
        """The data of every event of that kind."""
        return [data for event, data in self.events if event == kind]

    def changes(self) -> list[tuple[UUID, str]]:
        """Job and new status, in the order in which they came."""
        return [(UUID(job["id"]), job["to"]) for jobs in self.of("job") for job in jobs]

    def close(self) -> None:
        connection = self.answer.extensions["network_stream"].get_extra_info("socket")
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)  # what the reading thread waits for ends
        self._thread.join(5)
        self.answer.close()

    def _read(self) -> None:
        kind, data, number = "", "", ""
        try:
            for line in self.answer.iter_lines():
                name, _, value = line.partition(":")
                value = value.removeprefix(" ")
                if not name and line:
                    self.beats += 1
                elif name == "event":
                    kind = value
                elif name == "data":
                    data = value
                elif name == "id":
                    number = value
                elif not line and kind:
                    self.cursor = number or self.cursor
                    self.events.append((kind, json.loads(data)))
                    kind, data = "", ""
        except httpx.HTTPError:
            pass
        self.is_over = True


@pytest.fixture
def stream(admin_site: AdminSite) -> Iterator[Stream]:
    opened = Stream(admin_site, after=cursor(admin_site))
    wait_until(lambda: opened.cursor, what="the first message")
    yield opened
    opened.close()


def cursor(site: AdminSite) -> str:
    """Where the events go on after a page that is made now."""
    text = site.operator.get("/").text
    return text.partition('data-cursor="')[2].partition('"')[0]


def test_a_change_of_status_arrives_within_a_second(stream: Stream, database: Database) -> None:
    started = time.monotonic()
    job = database.enqueue()
    wait_until(lambda: stream.changes() == [(job, "pending")])

    assert time.monotonic() - started < STATUS_AND_PROGRESS_SECONDS + SLACK_SECONDS
    assert stream.of("job")[0][0] == {
        "id": str(job), "type": "test_job", "from": None, "to": "pending", "attempts": 0,
    }  # fmt: skip


def test_progress_arrives_in_words_of_both_languages(stream: Stream, database: Database) -> None:
    note = "part 1 of https://me:hunter2@example.no/"
    job = database.enqueue("whisper_transcribe", status="running", attempts=1, progress=0.25, progress_note=note)
    wait_until(lambda: stream.of("progress"))
    started = time.monotonic()
    database.rows("update job_queue set progress = 0.5 where id = %s", job)
    wait_until(lambda: len(stream.of("progress")) > 1)

    assert time.monotonic() - started < STATUS_AND_PROGRESS_SECONDS + SLACK_SECONDS
    assert [change[0]["progress"] for change in stream.of("progress")] == [0.25, 0.5]
    assert stream.of("progress")[0][0]["note"] == f"part 1 of https://me:{MASK}@example.no/"
    assert stream.of("progress")[1][0]["text"] == {
        "nb": "Transkriberer … 2/3 forsøk",
        "en": "Transcribing … attempt 2/3",
    }
    database.rows("update job_queue set cancel_requested_at = now() where id = %s", job)
    wait_until(lambda: len(stream.of("progress")) > 2)
    assert stream.of("progress")[2][0]["text"]["nb"] == "Stopper … 2/3 forsøk"


def test_progress_that_stands_still_is_not_told_again(stream: Stream, database: Database) -> None:
    database.enqueue(status="running", progress=0.25)
    wait_until(lambda: stream.of("progress"))
    for _ in range(3):
        marker = database.enqueue()
        wait_until(lambda: (marker, "pending") in stream.changes())  # noqa: B023 - is asked within the turn

    assert len(stream.of("progress")) == 1


def test_an_event_of_a_slow_transaction_is_not_missed_and_holds_up_no_other(stream: Stream, database: Database) -> None:
    """Its id and transaction are older than those of what was told already."""
    slow = database.connect(autocommit=False)
    late = slow.execute(
        "insert into job_queue (job_type, payload) values ('test_job', '{}') returning id"
    ).fetchone()[0]  # fmt: skip
    quick = database.enqueue()
    wait_until(lambda: stream.changes() == [(quick, "pending")], what="what was committed, at once")
    slow.commit()
    wait_until(lambda: (late, "pending") in stream.changes())

    assert stream.changes() == [(quick, "pending"), (late, "pending")]


def test_a_page_that_comes_back_after_a_restart_gets_what_it_missed_and_no_more(
    admin_site: AdminSite, database: Database
) -> None:
    stream = Stream(admin_site, after=cursor(admin_site))
    first = database.enqueue()
    wait_until(lambda: stream.changes())
    wait_until(lambda: stream.events[-1][0] == "cursor")
    slow = database.connect(autocommit=False)
    slow.execute("update job_queue set status = 'running', started_at = now() where id = %s", (first,))
    second = database.enqueue()
    wait_until(lambda: (second, "pending") in stream.changes() and stream.events[-1][0] == "cursor")
    last, port = stream.cursor, admin_site.port
    admin_site.stop()
    wait_until(lambda: stream.is_over)
    slow.commit()
    database.rows("select cancel_job(%s)", second)
    admin_site.start(port)
    again = Stream(admin_site, last_event_id=last)
    wait_until(lambda: again.cursor)

    assert again.changes() == [(first, "running"), (second, "error")]
    again.close()


@pytest.mark.parametrize("after", [None, "", "x", "5:3:", "1:2:7", "99999999999:99999999999:", "1:1:" + "9," * 5000])
def test_a_cursor_that_says_nothing_means_look_at_everything(shared_admin_site: AdminSite, after: str | None) -> None:
    stream = Stream(shared_admin_site, after=after)
    wait_until(lambda: stream.cursor)
    kinds = [event for event, _ in stream.events]
    stream.close()

    assert kinds[0] == "reset"
    assert stream.answer.status_code == 200


def test_more_than_a_page_can_use_is_told_as_one_word(stream: Stream, database: Database) -> None:
    database.rows(
        "insert into job_queue (job_type, payload) select 'test_job', '{}' from generate_series(1, 501)"
    )  # fmt: skip
    wait_until(lambda: stream.of("reset"))
    after = database.enqueue()
    wait_until(lambda: stream.changes())

    assert stream.changes() == [(after, "pending")]


def test_telling_to_stop_ends_the_streams_at_once(admin_site: AdminSite) -> None:
    opened = [Stream(admin_site, after=cursor(admin_site)) for _ in range(5)]
    wait_until(lambda: all(stream.cursor for stream in opened))
    started = time.monotonic()
    admin_site.stop()

    assert time.monotonic() - started < 2 + SLACK_SECONDS / 4, "uvicorn alone waits out its grace of 5 s"
    wait_until(lambda: all(stream.is_over for stream in opened))


def test_there_is_an_end_to_how_many_pages_may_be_open(database: Database) -> None:
    with admin_site_with(database, ADMIN_LIVE_STREAMS="2") as site:
        opened = [Stream(site, after=cursor(site)) for _ in range(2)]
        wait_until(lambda: all(stream.cursor for stream in opened))
        refused = site.operator.get("/live")
        opened[0].close()
        wait_until(lambda: site.app.state.feed.streams == 1)
        allowed = Stream(site, after=cursor(site))
        wait_until(lambda: allowed.cursor)
        allowed.close()
        opened[1].close()

    assert (refused.status_code, refused.headers["retry-after"]) == (503, "30")


def test_nobody_reads_when_nobody_looks(admin_site: AdminSite) -> None:
    feed: LiveFeed = admin_site.app.state.feed
    stream = Stream(admin_site, after=cursor(admin_site))
    wait_until(lambda: feed._reader is not None and not feed._reader.done())
    stream.close()

    wait_until(lambda: feed.streams == 0 and feed._reader is not None and feed._reader.done())


def test_a_stream_ends_with_the_session_of_its_page(admin_site: AdminSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "ACCOUNT_SECONDS", 0.0)
    stream = Stream(admin_site, after=cursor(admin_site))
    wait_until(lambda: stream.cursor)
    admin_site.database.rows("delete from admin_session")
    admin_site.database.enqueue()

    wait_until(lambda: stream.is_over)


def test_the_database_may_go_and_come_back(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the session of the page holds cannot be asked meanwhile: that ends no stream."""
    monkeypatch.setattr(streams, "ACCOUNT_SECONDS", 0.0)
    monkeypatch.setattr(streams, "QUIET_SECONDS", 0.2)
    server = database.server
    with Proxy(server.host, server.port) as proxy:
        site = AdminSite(database, DATABASE_URL=proxy.dsn(database.dsn("admin")), DB_TIMEOUT_SECONDS="1")
        stream = Stream(site, after=cursor(site))
        wait_until(lambda: stream.cursor)
    away, beats = site.operator.get("/"), stream.beats
    wait_until(lambda: stream.beats > beats + 1, 20, what="signs of life without the database")
    job = database.enqueue()
    with Proxy(server.host, server.port, listen_on=proxy.port):
        wait_until(lambda: (job, "pending") in stream.changes(), 30)
        wait_until(lambda: site.operator.get("/").status_code == 200, 30)
        stream.close()
        site.close()

    assert (away.status_code, away.headers["retry-after"]) == (503, "5")
    assert "The database does not answer" in away.text
