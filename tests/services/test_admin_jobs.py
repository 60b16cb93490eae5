"""The list of jobs: filters, places, what is shown of a row, and the file of it."""

import csv
import io
from typing import Any
from urllib.parse import parse_qs
from uuid import UUID

import pytest
from psycopg.types.json import Jsonb

from services.admin.pages import job_source
from sidelinja_jobs.redaction import MASK
from tests.databases import Database
from tests.services.admin_jobs import RESULTS, completed, failed, links, next_path, said, shown_ids
from tests.services.admin_site import AdminSite, admin_site_with


def listed(site: AdminSite, **query: Any) -> list[UUID]:
    answer = site.operator.get("/jobs", params=query)
    assert answer.status_code == 200
    return shown_ids(answer.text)


def test_filters_of_the_address_narrow_the_list(admin_site: AdminSite) -> None:
    database = admin_site.database
    waiting = database.enqueue("test_job", payload={"path": "Blåbær_1.mp3"}, worker_id="host-a")
    other = database.enqueue("other_job", status="completed", worker_id="host-b")
    error = failed(database, "no such file: tyttebær")
    old = database.enqueue(created_at="2020-05-01 12:00+00")

    assert listed(admin_site) == [error, other, waiting, old]
    assert listed(admin_site, type="other_job") == [other]
    assert listed(admin_site, status=["error", "completed"]) == [error, other]
    assert listed(admin_site, status="pending") == [waiting, old]
    assert listed(admin_site, **{"class": "bad"}) == [error]
    assert listed(admin_site, worker="host-b") == [other]
    assert listed(admin_site, q="blåbær_1") == [waiting]
    assert listed(admin_site, q="TYTTEBÆR") == [error]
    assert listed(admin_site, q="bær_x") == listed(admin_site, q="%") == []
    assert listed(admin_site, since="2020-05-01", until="2020-05-01") == [old]
    assert listed(admin_site, since="2020-05-01T14:00", until="2020-05-01T14:00:01") == [old], "in the view's zone"
    assert listed(admin_site, group=str(database.job(error)["error_fingerprint"])) == [error]
    assert listed(admin_site, id=str(old)[:8], status="pending") == [old]


def test_an_id_leads_to_its_job_and_what_is_no_id_is_told(admin_site: AdminSite) -> None:
    job = admin_site.database.enqueue()

    for text in (str(job), str(job).upper(), str(job)[:8], str(job).replace("-", "")):
        answer = admin_site.operator.get("/jobs", params={"id": text})
        assert (answer.status_code, answer.headers["location"]) == (303, f"/jobs/{job}")
    answer = admin_site.operator.get("/jobs", params={"id": "no id"})
    assert shown_ids(answer.text) == []
    assert "expected at least four of the signs" in said(answer.text)


def test_a_filter_that_cannot_be_read_matches_nothing_and_acts_on_nothing(admin_site: AdminSite) -> None:
    job = failed(admin_site.database, "x")
    for query in ("since=yesterday", "status=done", "group=x", "q=a%00b", "until=9999-99-99", "id=zz", "type=a%00"):
        assert listed(admin_site, **parse_qs(query)) == [], query
        assert admin_site.operator.get(f"/jobs/all?action=retry&{query}").status_code == 400
        assert admin_site.operator.post(f"/jobs/all?action=retry&{query}", data={}).status_code == 400
    assert admin_site.database.job(job)["status"] == "error"


def test_pages_hold_every_job_once_while_others_arrive(admin_site: AdminSite) -> None:
    database = admin_site.database
    at = "2026-11-29 10:00:00.000001+00"  # all at once: the id decides
    made = (
        "insert into job_queue (job_type, payload, created_at) select 'test_job', '{}', %s from generate_series(1, 120)"
    )
    jobs = {row["id"] for row in database.rows(f"{made} returning id", at)}
    seen: list[UUID] = []
    path: str | None = "/jobs"
    while path:
        page = admin_site.operator.get(path).text
        seen += shown_ids(page)
        database.rows("insert into job_queue (job_type, payload) select 'test_job', '{}' from generate_series(1, 10)")
        path = next_path(page)

    assert len(seen) == len(set(seen))
    assert jobs <= set(seen)


def test_a_search_says_how_far_it_has_read_and_goes_on_from_there(
    admin_site: AdminSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_source, "SEARCHED_ROWS", 10)
    database = admin_site.database
    wanted = database.enqueue(payload={"a": "needle"}, created_at="2026-11-01")
    for number in range(25):
        database.enqueue(created_at=f"2026-11-02 00:00:{number:02}+00")
    path: str | None = "/jobs?q=needle"
    pages = []
    while path:
        pages.append(admin_site.operator.get(path).text)
        path = next_path(pages[-1])

    assert [shown_ids(page) for page in pages] == [[], [], [wanted]]
    assert "Searched back to" in said(pages[0])
    assert "Search further back" in said(pages[0])
    assert "Searched back to" not in said(pages[2])


def test_a_search_in_large_payloads_reads_a_bounded_number_of_bytes(
    admin_site: AdminSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_source, "SEARCHED_BYTES", 10_000)
    database = admin_site.database
    wanted = database.enqueue(payload={"a": "needle"}, created_at="2026-11-01")
    for number in range(3):
        noise = database.value("select string_agg(md5(random()::text), '') from generate_series(1, 400)")
        database.enqueue(payload={"a": noise}, created_at=f"2026-11-02 00:00:0{number}+00")

    path: str | None = "/jobs?q=needle"
    pages = []
    while path:
        pages.append(shown_ids(admin_site.operator.get(path).text))
        path = next_path(admin_site.operator.get(path).text)

    assert pages == [[], [], [], [wanted]]


def test_a_row_shows_attempt_progress_and_estimate_and_cuts_its_payload(admin_site: AdminSite) -> None:
    database = admin_site.database
    database.enqueue(
        "whisper_transcribe", {"hotwords": ["a" * 100] * 50, "api_key": "hunter2"}, status="running", attempts=1,
        progress=0.5, progress_note="unit 3 of 6 password=hunter2", worker_id="w", error_class="timeout",
        error_msg="no answer",
    )  # fmt: skip
    database.rows(
        "update job_queue set started_at = now() - interval '20 min', progress_at = now() - interval '11 min'"
    )
    page = admin_site.operator.get("/jobs").text
    words = said(page)

    assert "Transcribing … attempt 2/3" in words
    assert "unit 3 of 6" in words
    assert "last error: timeout: no answer" in words
    assert "about 20" in words
    assert "no progress for 11" in words
    assert "hunter2" not in page
    assert page.count("a" * 100) == 1


def test_no_estimate_before_a_twentieth_and_no_bar_without_progress(admin_site: AdminSite) -> None:
    database = admin_site.database
    database.enqueue(status="running", progress=0.04, started_at="2026-11-29 10:00+00")
    database.enqueue(status="running", started_at="2026-11-29 10:00+00")
    page = admin_site.operator.get("/jobs?status=running").text

    assert "left" not in said(page)
    assert page.count("<progress") == 2
    assert page.count(" hidden></progress>") == 1


def test_the_file_of_a_filter_holds_its_jobs_without_secrets_and_without_formulas(admin_site: AdminSite) -> None:
    database = admin_site.database
    job = failed(database, "=cmd|' /C calc'!A0")
    database.rows("update job_queue set payload = %s", Jsonb({"token": "hunter2", "n": 2**63 - 1}))
    database.enqueue("other_job")
    for sign in "+-@\t":
        failed(database, f"{sign}1+1", job_type=f"{sign}type")

    answer = admin_site.operator.get("/jobs/export.csv?status=error")
    rows = list(csv.DictReader(io.StringIO(answer.text)))

    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert "attachment" in answer.headers["content-disposition"]
    (mine,) = [row for row in rows if row["id"] == str(job)]
    assert mine["error_msg"] == "'=cmd|' /C calc'!A0"
    assert mine["payload"] == f'{{"n": 9223372036854775807, "token": "{MASK}"}}'
    assert len(rows) == 5
    assert not [cell for row in rows for cell in row.values() if cell[:1] in tuple("=+-@\t")]


def test_the_file_goes_through_windows_batch_by_batch(admin_site: AdminSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_source, "SCANNED_ROWS", 300)
    admin_site.database.rows(
        """insert into job_queue (job_type, payload, created_at)
           select case n % 7 when 0 then 'test_job' else 'other_job' end, '{}', now() - n * interval '1 s'
             from generate_series(1, 3000) as n"""
    )

    rows = list(csv.DictReader(io.StringIO(admin_site.operator.get("/jobs/export.csv?type=test_job").text)))

    assert len({row["id"] for row in rows}) == len(rows) == 3000 // 7
    assert [row["created_at"] for row in rows] == sorted((row["created_at"] for row in rows), reverse=True)


def test_groups_of_errors_count_what_is_of_one_kind(admin_site: AdminSite) -> None:
    database = admin_site.database
    for number in range(3):
        failed(database, f"no file '{number}' password=hunter9")
    newest = failed(database, "no file 'x' password=hunter8", job_type="other_job")
    database.rows("update job_queue set completed_at = completed_at + interval '1 s' where id = %s", newest)
    failed(database, "timed out", "timeout")
    failed(database, "cancelled", "cancelled")

    page = admin_site.operator.get("/errors").text
    words = said(page)

    assert "5 failed jobs in 2 groups." in words
    assert "4 jobs" in words
    assert "test_job, other_job" in words
    assert f"newest {str(newest)[:8]}" in words
    assert "hunter" not in page
    link = links(page.split("Show the 4")[0])[-1]
    assert len(shown_ids(admin_site.operator.get(link).text)) == 4
    assert "4 failed jobs in 2 groups" in said(admin_site.operator.get("/errors?type=test_job").text)
    assert "One failed job in one group." in said(admin_site.operator.get("/errors?type=other_job").text)


def test_a_viewer_sees_no_form_that_changes_anything(admin_site: AdminSite, database: Database) -> None:
    job = failed(database, "x")
    for path in ("/jobs", "/errors", f"/jobs/{job}"):
        page = admin_site.viewer.get(path).text
        main = page.split("<main")[1]
        assert 'method="post"' not in main, path
    for path in ("/enqueue", "/enqueue/test_job", f"/jobs/{job}/edit", f"/jobs/{job}/cancel", "/jobs/all?action=retry"):
        assert admin_site.viewer.get(path).status_code == 403, path
    for path in (
        "/jobs/ticked", "/jobs/all?action=retry", "/enqueue/test_job",
        *(f"/jobs/{job}/{action}" for action in ("retry", "cancel", "priority", "again", "edit", "analyze")),
        f"/jobs/{job}/transcript/edit",
    ):  # fmt: skip
        assert admin_site.viewer.post(path, data={"job": str(job), "action": "retry"}).status_code == 403, path
    assert database.job(job)["status"] == "error"


def test_links_keep_the_prefix_of_a_proxy(database: Database) -> None:
    job = failed(database, "x")
    with admin_site_with(database, ADMIN_ROOT_PATH="/jobbko") as site:
        for path in ("/jobs", "/errors", f"/jobs/{job}", "/enqueue", "/jobs/all?action=retry&status=error"):
            found = links(site.operator.get(path).text)
            assert [link for link in found if not link.startswith("/jobbko/")] == []
        back = site.operator.post("/jobs/ticked", data={"job": str(job), "action": "retry", "back": "/jobbko/jobs?q=x"})
        assert back.headers["location"] == "/jobbko/jobs?q=x"


def test_every_page_speaks_norwegian_too(database: Database) -> None:
    jobs = [completed(database, name, result) for name, result in RESULTS.items()]
    jobs += [failed(database, "x"), database.enqueue(), database.enqueue(status="running", progress=0.5)]
    pages = ["/jobs", "/jobs?since=x&q=a", "/errors", "/enqueue", "/enqueue/test_job"]
    pages += ["/jobs/all?action=retry", "/jobs/all?action=cancel"]
    with admin_site_with(database, ADMIN_LANGUAGE="nb") as site:
        shown = {path: site.operator.get(path) for path in [*pages, *(f"/jobs/{job}" for job in jobs)]}
        shown |= {path: site.operator.get(path) for path in (f"/jobs/{jobs[0]}/transcript", f"/jobs/{jobs[2]}/result")}
        done = site.operator.post("/jobs/ticked", data={"job": str(jobs[4]), "action": "retry"})
        told = said(site.operator.get(done.headers["location"]).text)

    assert {path: answer.status_code for path, answer in shown.items() if answer.status_code != 200} == {}
    assert "Flere filtre" in said(shown["/jobs"].text)
    assert "Prøv én jobb igjen" in said(shown["/jobs/all?action=retry"].text)
    assert "1 av 1 prøves igjen." in told
