"""The JSON API as another program meets it: enqueue, look, operate, over a socket."""

from collections.abc import Iterator
from uuid import uuid4

import httpx
import pytest
from psycopg.types.json import Jsonb

from services.admin.pages import job_source
from tests.services.admin_site import AdminSite
from tests.services.api_client import SCHEMA, api_client


@pytest.fixture
def api(admin_site: AdminSite) -> Iterator[httpx.Client]:
    with api_client(admin_site) as client:
        yield client


def enqueue(api: httpx.Client, **fields: object) -> httpx.Response:
    return api.post("/jobs", json={"job_type": "test_job", "payload": {}} | fields)


def test_an_enqueued_job_is_what_was_sent(admin_site: AdminSite, api: httpx.Client) -> None:
    parent = str(uuid4())
    body = (
        '{"job_type": "test_job", "payload": {"navn": "æøå 日本", "n": 9223372036854775807, "x": 0.1, "big": 1e400},'
        ' "priority": -32768, "max_attempts": 7, "unique_key": "k", "scheduled_for": "2199-12-31T23:59:00+00:00",'
        f' "parent_id": "{parent}"}}'
    )

    answer = api.post("/jobs", content=body.encode(), headers={"Content-Type": "application/json"})

    assert answer.status_code == 201, answer.text
    assert answer.headers["location"] == f"/api/v1/jobs/{answer.json()['id']}"
    job = admin_site.database.row("select *, payload::text as text from job_queue")
    assert str(job["id"]) == answer.json()["id"]
    assert '"n": 9223372036854775807' in job["text"]
    assert '"x": 0.1,' in job["text"]
    assert '"navn": "æøå 日本"' in job["text"]
    assert "1" + "0" * 400 in job["text"]
    assert (job["priority"], job["max_attempts"], job["unique_key"]) == (-32768, 7, "k")
    assert (job["scheduled_for"].year, str(job["parent_id"])) == (2199, parent)
    assert admin_site.database.value("select actor from job_event") == "token:suite"


def test_a_key_that_is_held_makes_no_second_job(admin_site: AdminSite, api: httpx.Client) -> None:
    first = enqueue(api, unique_key="k")
    second = enqueue(api, unique_key="k")
    admin_site.database.rows("update job_queue set status = 'running'")
    third = enqueue(api, unique_key="k", payload={"n": 3})

    assert [answer.status_code for answer in (first, second, third)] == [201, 200, 200]
    assert [answer.json()["outcome"] for answer in (first, second, third)] == ["created", "exists", "rerun"]
    assert first.json()["id"] == second.json()["id"] == third.json()["id"]


def test_a_payload_is_held_against_the_schema_of_its_type(admin_site: AdminSite, api: httpx.Client) -> None:
    admin_site.database.rows("update job_type set payload_schema = %s where name = 'test_job'", Jsonb(SCHEMA))

    answer = enqueue(api, payload={"path": "x" * 21, "n": -1, "pth": 1})
    right = enqueue(api, payload={"path": "x" * 20, "n": 0})

    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload")
    assert {error["field"]: error["message"] for error in answer.json()["errors"]} == {
        "payload.path": "has 21 characters, expected at most 20",
        "payload.n": "is -1, expected 0 or more",
        "payload.pth": "is not a known field (did you mean path?)",
    }
    assert right.status_code == 201


def test_a_type_that_nobody_works_is_refused_with_the_nearest_name(api: httpx.Client) -> None:
    answer = enqueue(api, job_type="tset_job")

    assert (answer.status_code, answer.json()["code"]) == (422, "unknown_job_type")
    assert answer.json()["next_step"] == "did you mean test_job?"


def test_a_batch_is_queued_in_order_or_not_at_all(admin_site: AdminSite, api: httpx.Client) -> None:
    jobs = [{"job_type": name, "payload": {"n": n}, "unique_key": f"k{9 - n}"}
            for n, name in enumerate(["test_job", "other_job"] * 3)]  # fmt: skip
    wrong = [*jobs[:2], {"job_type": "test_job", "payload": {"html": "data:text/html,x"}}]

    made = api.post("/jobs/batch", json={"jobs": jobs})
    refused = api.post("/jobs/batch", json={"jobs": wrong})

    assert made.status_code == 201, made.text
    numbers = [
        admin_site.database.value("select payload -> 'n' from job_queue where id = %s", job["id"])
        for job in made.json()["jobs"]
    ]
    assert numbers == [0, 1, 2, 3, 4, 5]
    assert refused.json()["errors"][0]["field"] == "jobs[2].payload.html"
    assert admin_site.database.value("select count(*) from job_queue") == 6


def test_pages_are_not_moved_by_jobs_that_arrive(admin_site: AdminSite, api: httpx.Client) -> None:
    ids = [enqueue(api).json()["id"] for _ in range(7)]
    seen: list[str] = []
    cursor = None
    for _ in range(3):
        page = api.get("/jobs", params={"limit": 3} | ({"cursor": cursor} if cursor else {})).json()
        seen += [job["id"] for job in page["jobs"]]
        cursor = page["next_cursor"]
        enqueue(api)

    assert seen == ids[::-1]
    assert cursor is None


def test_filters_narrow_the_list_and_an_unknown_one_is_told(admin_site: AdminSite, api: httpx.Client) -> None:
    parent = enqueue(api).json()["id"]
    child = enqueue(api, parent_id=parent).json()["id"]
    other = enqueue(api, job_type="other_job").json()["id"]
    admin_site.database.rows(
        "update job_queue set status = 'error', error_class = 'boom', completed_at = now() where id = %s", other
    )

    def ids(**filters: object) -> set[str]:
        return {job["id"] for job in api.get("/jobs", params=filters).json()["jobs"]}

    assert ids(type="test_job") == {parent, child}
    assert ids(type=["test_job", "other_job"]) == {parent, child, other}
    assert ids(status="error") == ids(error_class="boom") == {other}
    assert ids(parent_id=parent) == {child}
    assert ids(created_from="2199-01-01T00:00:00Z") == set()
    assert ids(created_before="2199-01-01T00:00:00Z") == {parent, child, other}
    wrong = api.get("/jobs", params={"tpye": "test_job"})
    assert (wrong.status_code, wrong.json()["errors"][0]["field"]) == (422, "tpye")


def test_a_shown_job_hides_secrets_unless_an_operator_asks(admin_site: AdminSite, api: httpx.Client) -> None:
    payload = {"api_key": "hemmelig", "url": "https://me:pass@example.org/", "n": 2**63 - 1}
    job_id = enqueue(api, payload=payload).json()["id"]
    shown = api.get(f"/jobs/{job_id}")
    revealed = api.get(f"/jobs/{job_id}", params={"reveal": "true"})
    with api_client(admin_site, "read", name="reader") as reader:
        refused = reader.get(f"/jobs/{job_id}", params={"reveal": "true"})

    assert "hemmelig" not in shown.text
    assert "pass@" not in shown.text
    assert shown.json()["payload"]["n"] == 2**63 - 1
    assert revealed.json()["payload"] == payload
    assert (refused.status_code, refused.json()["code"]) == (403, "missing_scope")
    assert shown.json()["reasons"][0]["reason"] == "no_worker"
    assert [event["actor"] for event in shown.json()["events"]] == ["token:suite"]


def test_a_result_is_given_as_it_was_written(admin_site: AdminSite, api: httpx.Client) -> None:
    job_id = enqueue(api).json()["id"]
    early = api.get(f"/jobs/{job_id}/result")
    admin_site.database.rows(
        """update job_queue set status = 'completed', result = '{"token": "kept", "x": 0.10}' where id = %s""", job_id
    )
    done = api.get(f"/jobs/{job_id}/result")
    admin_site.database.rows(
        "update job_queue set status = 'error', error_class = 'boom', error_msg = 'password=hunter2' where id = %s",
        job_id,
    )
    failed = api.get(f"/jobs/{job_id}/result")

    assert (early.status_code, early.json()["code"]) == (409, "not_completed")
    assert done.text == '{"x": 0.10, "token": "kept"}'
    assert (failed.status_code, failed.json()["code"]) == (409, "job_failed")
    assert "boom" in failed.json()["detail"]
    assert "hunter2" not in failed.text


def test_actions_do_what_they_say_and_tell_when_they_cannot(admin_site: AdminSite, api: httpx.Client) -> None:
    job_id = enqueue(api).json()["id"]

    def act(what: str, **body: object) -> tuple[int, str]:
        answer = api.post(f"/jobs/{job_id}/{what}", **({"json": body} if body or what == "cancel" else {}))
        return answer.status_code, answer.json().get("outcome") or answer.json()["code"]

    assert act("priority", priority=7) == (200, "changed")
    assert act("priority", priority=7) == (200, "unchanged")
    assert act("retry") == (200, "pulled_forward")
    assert act("cancel", reason="nei") == (200, "cancelled")
    assert act("cancel") == (409, "not_possible")
    assert act("priority", priority=1) == (409, "not_possible")
    assert act("retry") == (200, "retried")
    admin_site.database.rows("update job_queue set status = 'running' where id = %s", job_id)
    assert act("cancel", reason="nei") == (200, "requested")
    assert set(admin_site.database.rows("select actor from audit_entry where job_id = %s", job_id)[0].values()) == {
        "token:suite"
    }


def test_a_type_is_paused_and_resumed(admin_site: AdminSite, api: httpx.Client) -> None:
    path = "/job-types/test_job"
    paused = api.post(f"{path}/pause", json={"reason": "disk", "until": "2199-01-01T00:00:00Z"})
    (shown,) = [kind for kind in api.get("/job-types").json()["job_types"] if kind["name"] == "test_job"]
    resumed = api.post(f"{path}/resume")
    again = api.post(f"{path}/resume")
    unknown = api.post("/job-types/nobody/pause", json={"reason": "x"})

    assert (paused.json(), resumed.json()) == ({"outcome": "paused"}, {"outcome": "resumed"})
    assert (shown["is_paused"], shown["pause_reason"], shown["pause_origin"]) == (True, "disk", "operator")
    assert (again.status_code, again.json()["code"]) == (409, "not_possible")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "no_such_job_type")


def test_no_such_job_is_told_on_every_path(api: httpx.Client) -> None:
    nobody = f"/jobs/{uuid4()}"
    answers = [api.get(nobody), api.get(f"{nobody}/result"), api.get(f"{nobody}/wait"), api.post(f"{nobody}/retry"),
               api.post(f"{nobody}/cancel", json={}), api.post(f"{nobody}/priority", json={"priority": 1})]  # fmt: skip

    assert {(answer.status_code, answer.json()["code"]) for answer in answers} == {(404, "no_such_job")}
    wrong = api.get("/jobs/1")
    assert (wrong.status_code, wrong.json()["errors"][0]["field"]) == (422, "id")


def test_workers_and_health_are_told(admin_site: AdminSite, api: httpx.Client) -> None:
    admin_site.database.rows(
        "insert into worker (worker_id, job_type, version, host, pid) values ('w1', 'test_job', '1', 'h', 7)"
    )

    admin_site.database.rows("update worker set current_since = 'infinity'")  # by hand: no reader of ours may break
    admin_site.database.rows(
        "update job_type set paused_at = '-infinity', paused_until = 'infinity', pause_origin = 'operator'"
    )
    (worker,) = api.get("/workers").json()["workers"]
    assert all(kind["is_paused"] for kind in api.get("/job-types").json()["job_types"])
    health = httpx.get(f"{admin_site.url}/api/v1/health")

    assert (worker["worker_id"], worker["state"], worker["pid"]) == ("w1", "idle", 7)
    assert (health.status_code, health.json()) == (200, {"status": "ok"})


def test_a_page_looks_at_a_bounded_number_of_jobs_and_goes_on(
    admin_site: AdminSite, api: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a filter seldom lets pass is found page by page; what has not ended, and a job's children, at once."""
    monkeypatch.setattr(job_source, "SCANNED_ROWS", 5)
    parent = str(uuid4())
    rare = enqueue(api, job_type="other_job", parent_id=parent).json()["id"]
    admin_site.database.rows(
        "insert into job_queue (job_type, payload, status)"
        " select 'test_job', '{}', 'completed' from generate_series(1, 12)"
    )
    pages, parameters = 0, {"type": "other_job"}
    found: list[str] = []
    while True:
        page = api.get("/jobs", params=parameters).json()
        pages, found = pages + 1, found + [job["id"] for job in page["jobs"]]
        if page["next_cursor"] is None:
            break
        parameters["cursor"] = page["next_cursor"]

    assert (found, pages) == ([rare], 3)
    for indexed in ({"status": ["pending", "running"]}, {"parent_id": parent}):
        assert [job["id"] for job in api.get("/jobs", params=indexed).json()["jobs"]] == [rare]
    admin_site.database.rows("update job_queue set status = 'error', error_class = 'x' where id = %s", rare)
    (failed,) = api.get("/jobs", params={"status": "error", "error_class": "x"}).json()["jobs"]
    assert failed["id"] == rare
