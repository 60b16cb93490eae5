"""What a person does to jobs: once however often it is clicked, by the rule of the filter, and with the name."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from services.admin.pages import job_bulk
from sidelinja_jobs.redaction import MASK
from tests.databases import Database
from tests.services.admin_jobs import as_of, completed, failed, form, said
from tests.services.admin_site import AdminSite


def followed(site: AdminSite, answer: httpx.Response) -> str:
    """What the page says that an action leads to."""
    assert answer.status_code == 303, answer.text[:500]
    page = site.operator.get(answer.headers["location"])
    assert page.status_code == 200
    return said(page.text)


def events(database: Database, job: object) -> list[tuple[str, str]]:
    rows = database.rows("select new_status::text, actor from job_event where job_id = %s order by id", job)
    return [(row["new_status"], row["actor"]) for row in rows]


def test_a_double_click_on_retry_is_one_retry(admin_site: AdminSite) -> None:
    job = failed(admin_site.database, "x")
    clients = [admin_site.client("kari") for _ in range(2)]

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda c: c.post(f"/jobs/{job}/retry", data={"seen": "error"}), clients))

    assert [answer.status_code for answer in answers] == [303, 303]
    assert events(admin_site.database, job)[1:] == [("pending", "kari")]
    words = sorted(said(c.get(f"/jobs/{job}").text) for c in clients)
    assert any("The job is retried" in text for text in words)


def test_actions_go_back_to_the_job_and_say_what_they_did(admin_site: AdminSite) -> None:
    database = admin_site.database
    job = failed(database, "x")
    assert "The job is retried" in followed(admin_site, admin_site.operator.post(f"/jobs/{job}/retry"))
    later = database.enqueue(scheduled_for="2100-01-01")
    assert "due now" in followed(admin_site, admin_site.operator.post(f"/jobs/{later}/retry", data={"seen": "pending"}))
    changed = admin_site.operator.post(f"/jobs/{job}/priority", data={"priority": "-7"})
    assert "Priority changed from 0 to -7" in followed(admin_site, changed)
    cancelled = admin_site.operator.post(f"/jobs/{job}/cancel", data={"reason": "no need"})
    assert "The job was cancelled." in followed(admin_site, cancelled)
    late = admin_site.operator.post(f"/jobs/{job}/priority", data={"priority": "1", "seen": "pending"})
    assert "Nothing was done" in followed(admin_site, late)

    assert database.job(job)["error_msg"] == "cancelled while waiting: no need"
    assert {actor for _, actor in events(database, job)[1:]} == {"kari"}
    audit = database.rows("select action, actor, detail from audit_entry where action = 'job.priority'")
    assert audit == [{"action": "job.priority", "actor": "kari", "detail": {"before": 0, "after": -7}}]


def test_a_priority_that_is_none_changes_nothing(admin_site: AdminSite) -> None:
    job = admin_site.database.enqueue()
    for priority in ("", "x", "1.5", "40000", "-32769", "٣", "1" * 400, "--1", "-"):
        answer = admin_site.operator.post(f"/jobs/{job}/priority", data={"priority": priority})

        assert "must be a whole number" in followed(admin_site, answer), priority
        assert admin_site.database.job(job)["priority"] == 0


def test_a_running_job_is_asked_to_stop_after_a_question(admin_site: AdminSite) -> None:
    job = admin_site.database.enqueue(status="running", worker_id="w", started_at="2026-11-29 10:00+00")

    assert "is asked to stop" in said(admin_site.operator.get(f"/jobs/{job}/cancel").text)
    answer = admin_site.operator.post(f"/jobs/{job}/cancel", data={"seen": "running"})

    words = followed(admin_site, answer)
    assert "The worker was asked to stop" in words
    assert "cancelling" in words
    assert admin_site.database.job(job)["status"] == "running"


def test_running_again_makes_a_new_job_and_leaves_the_old_one_alone(admin_site: AdminSite) -> None:
    database = admin_site.database
    job = completed(database, "test_job", {"a": 1}, payload={"big": 2**63 - 1, "token": "hunter2"})
    before = database.job(job)
    sent = form()

    first, second = (followed(admin_site, admin_site.operator.post(f"/jobs/{job}/again", data=sent)) for _ in range(2))

    assert "New job enqueued. test_job" in first
    assert "Made from" in first
    assert "had been sent already" in second
    assert database.job(job) == before
    (new,) = database.rows("select job.*, origin_id from job_queue as job join job_origin on job_id = job.id")
    assert (new["origin_id"], new["payload"], new["status"]) == (job, before["payload"], "pending")


def test_an_edited_payload_keeps_its_numbers_and_its_secrets(admin_site: AdminSite) -> None:
    database = admin_site.database
    payload = '{"big": 9223372036854775807, "small": 0.1, "long": 0.1000000000000000055511151231257827, "e": 1e400}'
    job = failed(database, "x")
    database.rows("update job_queue set payload = %s::jsonb || %s", payload, Jsonb({"api_key": "hunter2", "u": "a"}))
    shown = admin_site.operator.get(f"/jobs/{job}/edit").text
    assert "hunter2" not in shown
    text = shown.split("<textarea")[1].split(">\n", 1)[1].split("</textarea>")[0].replace("&#34;", '"')

    answer = admin_site.operator.post(f"/jobs/{job}/edit", data=form(payload=text.replace('"a"', '"b"')))

    new = answer.headers["location"].rsplit("/", 1)[1]
    same = "select payload - 'u' = (select payload - 'u' from job_queue where id = %s) from job_queue where id = %s"
    assert database.value(same, job, new) is True
    assert database.job(new)["payload"]["u"] == "b"
    assert database.value("select payload ->> 'long' from job_queue where id = %s", new).endswith("827")


REFUSED = [
    ("{", "is not JSON"),
    ("[1]", "expected an object"),
    ('{"a": NaN}', "NaN"),
    ('{"a": 1, "a": 2}', "stands twice"),
    ('{"a": "\\u0000"}', "NUL"),
    (f'{{"elsewhere": "{MASK}"}}', "stands for a hidden value"),
    ('{"a":' * 3000 + "1" + "}" * 3000, "nested too deep"),
    ('{"a":' * 600 + f'"{MASK}"' + "}" * 600, "nested too deep"),
    ('{"path": 5}', "path is number, expected"),
]


def test_a_payload_that_cannot_be_is_refused_with_what_was_typed(admin_site: AdminSite) -> None:
    database = admin_site.database
    job = failed(database, "x")
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    database.rows("update job_type set payload_schema = %s where name = 'test_job'", Jsonb(schema))
    for text, told in REFUSED:
        answer = admin_site.operator.post(f"/jobs/{job}/edit", data=form(payload=text))

        assert answer.status_code == 422, told
        assert told in said(answer.text)
    assert database.value("select count(*) from job_queue") == 1


def test_ticked_jobs_are_retried_and_the_list_keeps_its_address(admin_site: AdminSite) -> None:
    database = admin_site.database
    jobs = [failed(database, "x") for _ in range(3)]
    meanwhile = completed(database, "test_job", {})
    back = "/jobs?status=error&before=2026-11-29T10%3A00%3A00%2B00%3A00_" + str(jobs[0])

    data = {"action": "retry", "back": back, "job": [str(job) for job in [*jobs, meanwhile]]}
    answer = admin_site.operator.post("/jobs/ticked", data=data)

    assert answer.headers["location"] == back
    assert "3 of 4 retried." in followed(admin_site, answer)
    assert {database.job(job)["status"] for job in jobs} == {"pending"}


def test_ticked_jobs_are_cancelled_after_a_question_that_needs_no_script(admin_site: AdminSite) -> None:
    jobs = [admin_site.database.enqueue() for _ in range(2)]
    data: dict[str, Any] = {"action": "cancel", "job": [str(job) for job in jobs], "back": "/jobs?status=pending"}

    asked = admin_site.operator.post("/jobs/ticked", data=data)
    assert "2 selected jobs will be cancelled" in said(asked.text)
    assert {admin_site.database.job(job)["status"] for job in jobs} == {"pending"}

    answer = admin_site.operator.post("/jobs/ticked", data=data | {"confirmed": "1"})
    assert "2 of 2 cancelled." in followed(admin_site, answer)


def test_the_way_back_never_leads_elsewhere(admin_site: AdminSite) -> None:
    elsewhere = ("https://evil.example/", "//evil.example/", "//[", "/\\evil.example", "javascript:x", "x", "/\n", "/æ")
    for back in elsewhere:
        answer = admin_site.operator.post("/jobs/ticked", data={"action": "retry", "back": back})

        assert answer.headers["location"] == "/jobs", back


def test_all_of_a_filter_is_asked_for_in_words_and_by_number(admin_site: AdminSite) -> None:
    database = admin_site.database
    inside = [failed(database, "x") for _ in range(5)]
    outside = [failed(database, "x", "other"), database.enqueue(), failed(database, "cancelled", "cancelled")]
    query = urlencode({"action": "retry", "class": "bad", "type": "test_job"})

    asked = said(admin_site.operator.get(f"/jobs/all?{query}").text)
    assert "type test_job" in asked
    assert "status error" in asked
    assert "error class bad" in asked
    assert "Retry 5 jobs" in asked
    moment = as_of(admin_site.operator.get(f"/jobs/all?{query}").text)
    late = failed(database, "x")
    taken = inside.pop()
    database.rows("update job_queue set status = 'completed' where id = %s", taken)

    answer = admin_site.operator.post(f"/jobs/all?{query}", data={"as_of": moment})

    assert "4 of 4 retried." in followed(admin_site, answer)
    assert {database.job(job)["status"] for job in inside} == {"pending"}
    assert [database.job(job)["status"] for job in [*outside, late]] == ["error", "pending", "error", "error"]


def test_what_takes_longer_than_a_request_goes_on_by_the_same_page(
    admin_site: AdminSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_bulk, "BATCH", 2)
    monkeypatch.setattr(job_bulk, "REQUEST_SECONDS", 0.0)
    for _ in range(5):
        failed(admin_site.database, "x")
    path = "/jobs/all?action=retry&status=error"
    for left in (3, 1, 0):
        page = admin_site.operator.get(path).text
        answer = admin_site.operator.post(path, data={"as_of": as_of(page)})

        assert answer.headers["location"].startswith("/jobs/all?")
        assert "retried so far. The rest is left" in followed(admin_site, answer)
        assert admin_site.database.value("select count(*) from job_queue where status = 'error'") == left


FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["test_job", "other_job"]),
        "status": st.lists(st.sampled_from(["error", "retry", "pending", "completed"]), min_size=1, unique=True),
        "class": st.sampled_from(["bad", "worse"]),
        "q": st.sampled_from(["a", "b", "%"]),
        "worker": st.sampled_from(["w1", "w"]),
    },
)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(FILTERS)
def test_an_action_touches_what_its_filter_lists_and_nothing_else(
    admin_site: AdminSite, wanted: dict[str, Any]
) -> None:
    database = admin_site.database
    database.rows("truncate job_queue cascade")
    database.rows(
        """insert into job_queue (job_type, payload, status, error_class, error_msg, worker_id)
           select kind, jsonb_build_object('v', word), status::job_status, class, null, worker
             from unnest('{test_job,other_job}'::text[]) kind, unnest('{a,b}'::text[]) word,
                  unnest('{error,retry,completed}'::text[]) status, unnest('{bad,worse}'::text[]) class,
                  unnest('{w1,v}'::text[]) worker"""
    )
    statuses = wanted.get("status", ["error"])
    expected = {
        row["id"]
        for row in database.rows("select *, payload ->> 'v' as v from job_queue")
        if row["status"] in statuses and row["status"] in ("error", "retry")
        and row["job_type"] == wanted.get("type", row["job_type"])
        and row["error_class"] == wanted.get("class", row["error_class"])
        and wanted.get("q", row["v"]) == row["v"] and wanted.get("worker", "") in row["worker_id"]
    }  # fmt: skip
    query = urlencode({"action": "retry", **wanted}, doseq=True)
    page = admin_site.operator.get(f"/jobs/all?{query}")
    if page.status_code == 400:
        assert set(statuses) <= {"completed"}
        return
    if 'name="as_of"' not in page.text:
        assert expected == set()
        return

    admin_site.operator.post(f"/jobs/all?{query}", data={"as_of": as_of(page.text)})

    acted = "select job.id from job_event as event join job_queue as job on job.id = event.job_id where actor = 'kari'"
    touched = {row["id"] for row in database.rows(acted)}
    errors = {row["id"] for row in database.rows("select id from job_queue where status = 'error'")}
    assert touched <= expected
    assert not errors & expected
