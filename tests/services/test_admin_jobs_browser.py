"""The list and the page of a job in a real browser: ticked jobs, actions, what stays while the page is alive."""

import re
from typing import Any

from tests.services.admin_jobs import ANALYSIS, CLIP, completed, failed
from tests.services.admin_site import AdminSite


def test_ticked_jobs_are_retried_from_the_list(browser_page: Any, admin_site: AdminSite) -> None:
    database, page = admin_site.database, browser_page
    jobs = [failed(database, "no such file") for _ in range(3)]
    page.goto("/jobs?status=error")
    page.get_by_label("Select all on this page").check()
    page.get_by_label(f"Select {str(jobs[0])[:8]}").uncheck()
    page.get_by_role("button", name="Retry selected").click()

    page.get_by_text("2 of 2 retried.").wait_for()
    assert page.url.endswith("/jobs?status=error")
    assert [database.job(job)["status"] for job in jobs] == ["error", "pending", "pending"]
    assert page.locator("tbody tr").count() == 1


def test_a_group_of_errors_is_retried_by_way_of_a_question(browser_page: Any, admin_site: AdminSite) -> None:
    database, page = admin_site.database, browser_page
    jobs = [failed(database, f"no file '{number}'") for number in range(2)]
    other = failed(database, "timed out")
    page.goto("/errors")
    page.get_by_role("link", name="Retry these 2").click()
    page.get_by_role("button", name="Retry 2 jobs").click()

    page.get_by_text("2 of 2 retried.").wait_for()
    assert [database.job(job)["status"] for job in [*jobs, other]] == ["pending", "pending", "error"]


def test_a_job_is_edited_cancelled_and_followed(browser_page: Any, admin_site: AdminSite) -> None:
    database, page = admin_site.database, browser_page
    job = failed(database, "cannot read header\nmore of it")
    database.rows("insert into job_attempt (job_id, attempt, outcome, charged, error_msg, traceback, started_at)"
                  " values (%s, 1, 'failed', true, %s, 'Traceback: line 1', now() - interval '5 s')",
                  job, "cannot read header\nmore of it")  # fmt: skip
    page.goto(f"/jobs/{job}")
    assert "cannot read header" in page.locator("#error").inner_text()
    assert not page.get_by_text("Traceback: line 1").first.is_visible()

    page.get_by_role("link", name="Edit and resubmit").click()
    page.get_by_label("Payload").fill('{"a": 9223372036854775807}')
    page.get_by_role("button", name="Submit as a new job").click()
    page.get_by_text("New job enqueued.").wait_for()
    assert "9223372036854775807" in page.locator("main").inner_text()
    new = page.url.rsplit("/", 1)[1]

    page.get_by_role("link", name="Cancel the job").click()
    page.get_by_label("Why?").fill("not needed")
    page.get_by_role("button", name="Cancel the job").click()
    page.get_by_text("The job was cancelled.").wait_for()
    assert database.job(new)["error_msg"] == "cancelled while waiting: not needed"


def test_what_a_person_has_opened_and_ticked_survives_a_change(browser_page: Any, admin_site: AdminSite) -> None:
    database, page = admin_site.database, browser_page
    job = failed(database, "x\nthe rest")
    ticked, other = database.enqueue(), database.enqueue()

    page.goto(f"/jobs/{job}")
    page.get_by_text("The rest of the message").click()
    database.rows("update job_queue set status = 'pending', error_class = null, error_msg = null where id = %s", job)
    page.locator("#state .status.pending").wait_for()
    assert page.locator("#error details[open]").is_visible(), "what was opened stays open"

    page.goto("/jobs?type=test_job")
    page.get_by_label(f"Select {str(ticked)[:8]}").check()
    database.rows("update job_queue set status = 'completed' where id in (%s, %s)", ticked, other)
    page.locator(f"#j{other} .status.completed").wait_for()
    assert page.get_by_label(f"Select {str(ticked)[:8]}").is_checked()


def test_progress_reaches_the_open_page_of_a_job(browser_page: Any, admin_site: AdminSite) -> None:
    database, page = admin_site.database, browser_page
    job = database.enqueue("test_job")
    page.goto(f"/jobs/{job}")
    with database.connect("worker_test") as conn:
        token = conn.execute("select lease_token from claim_jobs('test_job', 'w', 1)").fetchone()[0]
        page.locator("#state .status.running").wait_for()
        database.rows("update job_queue set started_at = now() - interval '10 min' where id = %s", job)
        conn.execute("select * from extend_leases(%s, %s, array[0.5]::real[], array['half'])", [[job], [token]])
        page.locator("#state").get_by_text("half").wait_for(timeout=3000)
        page.locator("#state").get_by_text(re.compile("about 10.min( 1.s)? left")).wait_for(timeout=1000)
        conn.execute("select complete_job(%s, %s, '{\"done\": [1, 2]}')", [job, token])
    page.locator("#state .status.completed").wait_for()
    page.locator("#result").get_by_text("done").wait_for()


def test_chapters_of_an_analysis_lead_to_their_time_in_the_transcript(browser_page: Any, admin_site: AdminSite) -> None:
    database, page = admin_site.database, browser_page
    transcript = completed(database, "whisper_transcribe", {"segments": []})
    told = ANALYSIS | {"transcript": {"job_id": str(transcript)}}
    page.goto(f"/jobs/{completed(database, 'openrouter_analyze', told)}")

    chapter = page.get_by_role("listitem").filter(has_text="Begynnelsen").get_by_role("link")
    assert chapter.get_attribute("href") == f"/jobs/{transcript}/transcript#t=2.5"
    assert "$0.00123" in page.locator("main").inner_text()


def test_a_clip_shows_its_text_what_was_removed_and_what_was_found(browser_page: Any, admin_site: AdminSite) -> None:
    page = browser_page
    page.goto(f"/jobs/{completed(admin_site.database, 'research_clip', CLIP)}/result")
    page.get_by_text("One removed line").click()
    page.get_by_text("The text with marks").click()

    assert page.locator(".rendered strong").inner_text() == "3 meter"
    assert page.get_by_text("Les også: mer").is_visible()
    assert page.locator("mark.claim.fact").inner_text() == "steg 3 meter"
    assert page.locator(".rendered a").get_attribute("rel") == "noopener nofollow ugc"
