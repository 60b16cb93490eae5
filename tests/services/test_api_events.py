"""Following the queue by the JSON API: events since a cursor, the stream, and waiting for an end."""

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import httpx
import pytest

from services.admin.api import waiting
from services.admin.api.watch import MOST_LISTENING
from tests.services.admin_site import AdminSite
from tests.services.api_client import api_client
from tests.waiting import wait_until


@pytest.fixture
def api(admin_site: AdminSite) -> Iterator[httpx.Client]:
    with api_client(admin_site) as client:
        yield client


class Listener:
    """Reads a stream in a thread of its own."""

    def __init__(self, api: httpx.Client, **parameters: str) -> None:
        self.changes: list[dict[str, Any]] = []
        self.cursor = ""
        self.has_ended = False
        self._headers = {"Last-Event-ID": parameters.pop("last_event_id")} if "last_event_id" in parameters else {}
        self._api, self._parameters = api, parameters
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def statuses(self, count: int) -> list[str]:
        """The new status of each change, once there are so many."""
        wait_until(lambda: len(self.changes) >= count, what=f"{count} changes")
        return [change["new_status"] for change in self.changes]

    def _read(self) -> None:
        with (
            contextlib.suppress(httpx.HTTPError),
            self._api.stream("GET", "/events/stream", params=self._parameters, headers=self._headers) as answer,
        ):
            assert answer.headers["content-type"].startswith("text/event-stream")
            for line in answer.iter_lines():
                name, _, value = line.partition(": ")
                if name == "id":
                    self.cursor = value
                elif name == "data":
                    self.changes.append(json.loads(value))
        self.has_ended = True

    def end(self) -> None:
        self._thread.join(10)
        assert not self._thread.is_alive()


def all_events(api: httpx.Client, **parameters: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while True:
        page = api.get("/events", params=parameters).json()
        found += page["events"]
        if not page["has_more"]:
            return found
        parameters["after"] = page["next_cursor"]


def test_every_change_is_met_once_page_by_page(admin_site: AdminSite, api: httpx.Client) -> None:
    ids = [str(admin_site.database.enqueue()) for _ in range(7)]

    events = all_events(api, limit=2)

    assert [event["job_id"] for event in events] == ids
    assert {(event["old_status"], event["new_status"]) for event in events} == {(None, "pending")}


def test_an_event_of_a_transaction_that_commits_late_is_not_skipped(admin_site: AdminSite, api: httpx.Client) -> None:
    late = admin_site.database.connect(autocommit=False)
    late.execute("insert into job_queue (job_type, payload) values ('test_job', '{}')")
    admin_site.database.enqueue("other_job")

    before = api.get("/events").json()
    late.commit()
    after = api.get("/events", params={"after": before["next_cursor"]}).json()

    assert before["events"] == []
    assert [event["job_type"] for event in after["events"]] == ["test_job", "other_job"]


def test_changes_of_one_job_stand_in_the_order_in_which_they_happened(admin_site: AdminSite, api: httpx.Client) -> None:
    """The transaction that drew its number first made its change last."""
    job_id = admin_site.database.enqueue()
    early = admin_site.database.connect(autocommit=False)
    early.execute("select pg_current_xact_id()")
    admin_site.database.rows("update job_queue set status = 'running' where id = %s", job_id)
    early.execute("update job_queue set status = 'completed', completed_at = now() where id = %s", (job_id,))
    early.commit()

    events = all_events(api)

    assert [event["new_status"] for event in events] == ["pending", "running", "completed"]


def test_a_filter_passes_over_any_number_of_other_events(admin_site: AdminSite, api: httpx.Client) -> None:
    admin_site.database.rows(
        "insert into job_queue (job_type, payload) select 'other_job', '{}' from generate_series(1, 4100)"
    )
    job_id = str(admin_site.database.enqueue())

    assert [event["job_id"] for event in all_events(api, type="test_job", limit=5)] == [job_id]


def test_from_the_end_only_what_is_to_come_is_met(admin_site: AdminSite, api: httpx.Client) -> None:
    admin_site.database.enqueue()
    cursor = api.get("/events", params={"after": "end"}).json()["next_cursor"]
    job_id = str(admin_site.database.enqueue())

    assert [event["job_id"] for event in all_events(api, after=cursor)] == [job_id]


def test_a_cursor_that_none_gave_is_refused(api: httpx.Client) -> None:
    for cursor in ("x", "1", "-1--1", "00000000-" + "9" * 20 + "-1", "00000000-1-" + "9" * 19, "", "infinity"):
        answer = api.get("/events", params={"after": cursor})
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_parameter"), cursor


def test_a_cursor_of_before_a_restore_is_told_in_place_of_losing_events(
    admin_site: AdminSite, api: httpx.Client
) -> None:
    cursor = api.get("/events", params={"after": "end"}).json()["next_cursor"]
    admin_site.database.connect("operator").execute("select renew_event_epoch()")

    page = api.get("/events", params={"after": cursor})
    stream = api.get("/events/stream", params={"after": cursor})

    assert [(answer.status_code, answer.json()["code"]) for answer in (page, stream)] == [(410, "cursor_expired")] * 2
    assert "after=end" in page.json()["next_step"]


def test_a_stream_tells_changes_as_they_come_and_goes_on_where_it_was(admin_site: AdminSite, api: httpx.Client) -> None:
    first = Listener(api, after="end")
    wait_until(lambda: first.cursor, what="the cursor")
    job_id = admin_site.database.enqueue()
    admin_site.database.rows("update job_queue set status = 'running' where id = %s", job_id)
    assert first.statuses(2) == ["pending", "running"]
    wait_until(lambda: admin_site.app.state.watch._listening == 1)

    admin_site.stop()
    first.end()
    admin_site.database.rows("update job_queue set status = 'completed', completed_at = now() where id = %s", job_id)
    admin_site.start()
    with httpx.Client(base_url=f"{admin_site.url}/api/v1", headers=api.headers, timeout=20) as again:
        second = Listener(again, after="end", last_event_id=first.cursor)
        assert second.statuses(1) == ["completed"]
        admin_site.stop()
        second.end()
    admin_site.start()


def test_a_stream_ends_with_its_token_and_frees_its_place(
    admin_site: AdminSite, api: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "TOKEN_SECONDS", 0.0)
    listener = Listener(api, after="end")
    wait_until(lambda: listener.cursor, what="the cursor")
    admin_site.database.rows("select revoke_api_token('suite')")
    admin_site.database.enqueue()

    listener.end()

    assert listener.changes == []
    wait_until(lambda: admin_site.app.state.watch._listening == 0)


def test_one_listener_too_many_is_told_to_come_back(admin_site: AdminSite, api: httpx.Client) -> None:
    admin_site.app.state.watch._listening = MOST_LISTENING
    answer = api.get("/events/stream")
    admin_site.app.state.watch._listening = 0

    assert (answer.status_code, answer.json()["code"]) == (503, "busy")
    assert answer.headers["retry-after"] == "5"


def end_job(admin_site: AdminSite, job_id: UUID) -> None:
    admin_site.database.rows(
        "update job_queue set status = 'completed', completed_at = now(), result = '{}' where id = %s", job_id
    )


def test_waiting_ends_with_the_job(admin_site: AdminSite, api: httpx.Client) -> None:
    """More wait than there are connections to the database, and all of them are told."""
    job_ids = [admin_site.database.enqueue() for _ in range(10)]

    with ThreadPoolExecutor(10) as pool:
        waits = [pool.submit(api.get, f"/jobs/{job_id}/wait", params={"timeout": 20}) for job_id in job_ids]
        wait_until(lambda: len(admin_site.app.state.watch._waiting) == 10)
        asked = api.get("/jobs").status_code
        for job_id in job_ids:
            end_job(admin_site, job_id)
        answers = [wait.result() for wait in waits]

    assert asked == 200
    assert {(answer.json()["status"], answer.json()["has_ended"]) for answer in answers} == {("completed", True)}


def test_waiting_ends_with_the_time(admin_site: AdminSite, api: httpx.Client) -> None:
    job_id = admin_site.database.enqueue()
    began = time.monotonic()

    at_once = api.get(f"/jobs/{job_id}/wait", params={"timeout": 0})
    later = api.get(f"/jobs/{job_id}/wait", params={"timeout": 1})

    assert time.monotonic() - began >= 1
    assert (at_once.json()["has_ended"], later.json()["has_ended"]) == (False, False)


def test_a_stop_lets_those_go_who_wait(admin_site: AdminSite, api: httpx.Client) -> None:
    job_id = admin_site.database.enqueue()
    with ThreadPoolExecutor(1) as pool:
        wait = pool.submit(api.get, f"/jobs/{job_id}/wait", params={"timeout": 100})
        wait_until(lambda: admin_site.app.state.watch._waiting)
        admin_site.stop()
        assert wait.result(10).json()["has_ended"] is False
    admin_site.start()
