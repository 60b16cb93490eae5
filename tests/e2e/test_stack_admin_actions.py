"""Every action of the admin view in the running stack, by a person with a browser; then every page that links
lead to. In Bokmål, and in English once more among the long tests.

What was done is seen on the page and stands in the audit trail with the person's name.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.e2e.running_stack import SAMPLE, RunningStack
from tests.e2e.stack_site import LOCALES, Operator, StackSite
from tests.services.admin_crawl import LOOKS, Crawl, invalid
from tests.services.admin_site import OPERATOR, VIEWER, logged_in_page, running_browser
from tests.unit.stats_support import line

pytestmark = [pytest.mark.containers, pytest.mark.slow, pytest.mark.timeout(600)]

LISTENERS = 7
REFERENCE = "reference.mp3"  # transcribed by the fixture `transcript`, so that it is done at once
SPENT = """insert into llm_call (job_id, job_type, lease_token, step, request_hash, state, model, reserved_usd)
           values (gen_random_uuid(), 'research_clip', gen_random_uuid(), 'x', repeat('a', 64), 'unknown',
                   'made/for-tests', 0.25)"""
PASTE = "Les også: Noe annet\n\nFerga fra Moss til Horten går hvert kvarter.\n"


@pytest.fixture(scope="module")
def site(stack: RunningStack, transcript: str) -> Iterator[StackSite]:
    """With a log that has not been counted yet, and money that a model has cost; nothing is left to wait."""
    site = StackSite(stack)
    stack.start_missing_workers()
    site.write_log(b"".join(line("/sett.mp3", ip=f"203.0.113.{number}") for number in range(LISTENERS)))
    stack.sql(SPENT)
    yield site
    site.close()
    stack.sql("select cancel_job(id) from job_queue where job_type = 'nobodys' and status in ('pending', 'retry')")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with running_browser() as started:
        yield started


@pytest.fixture(scope="module", params=["nb", pytest.param("en", marks=pytest.mark.long)])
def kari(request: pytest.FixtureRequest, browser: Any, site: StackSite) -> Iterator[Operator]:
    """Logged in, in one language; the policy refuses nothing on any page."""
    with logged_in_page(browser, site, OPERATOR, locale=LOCALES[request.param]) as page:
        page.goto("/")
        yield Operator(page, request.param)


@contextmanager
def paused(kari: Operator, job_type: str) -> Iterator[None]:
    """The type is paused and resumed by its buttons; its jobs wait meanwhile, and say why."""
    page = kari.page
    card = page.locator("section.type", has=page.get_by_role("heading", name=job_type, exact=True))
    page.goto("/")
    card.get_by_role("link", name=kari.say("overview.pause")).click()
    page.get_by_label(kari.say("overview.reason")).fill("Lageret flyttes")
    kari.press("overview.pause")
    kari.is_told("overview.paused_notice", type=job_type)
    expect(card).to_contain_text("Lageret flyttes")
    kari.finds_in_the_trail("job_type.pause", job_type, "Lageret flyttes")
    yield
    page.goto("/")
    card.get_by_role("button", name=kari.say("overview.resume")).click()
    kari.is_told("overview.resumed_notice", type=job_type)
    expect(card).not_to_contain_text("Lageret flyttes")
    kari.finds_in_the_trail("job_type.resume", job_type)


def fail_three(site: StackSite) -> tuple[str, list[str]]:
    """Three jobs whose file is not there, and a word that is in them alone."""
    word = f"borte-{uuid.uuid4().hex[:8]}"
    ids = [site.insert(f"{word}-{number}.mp3") for number in range(3)]
    for job_id in ids:
        site.stack.wait_for(job_id, "error")
    return word, ids


def test_a_paste_is_enqueued_cleaned_and_read(kari: Operator) -> None:
    job_id = kari.enqueue("research_clip", text=PASTE)
    kari.sees(kari.say("status.completed"), where="#state")

    kari.follow("jobs.open_result")
    kari.sees("Ferga fra Moss til Horten går hvert kvarter.", where=".rendered")
    kari.page.get_by_text(kari.say("clip.removed", n=1)).click()
    expect(kari.page.get_by_text("Les også: Noe annet")).to_be_visible()
    kari.finds_in_the_trail("job.enqueue", job_id[:8], "research_clip")


def test_failed_jobs_are_retried_one_by_one_ticked_and_all(
    kari: Operator, site: StackSite, stack: RunningStack
) -> None:
    page, (word, ids) = kari.page, fail_three(site)
    with paused(kari, "whisper_transcribe"):
        page.goto(f"/jobs/{ids[0]}")
        kari.press("jobs.retry")
        kari.is_told("jobs.job_retried")
        kari.sees(kari.say("status.pending"), where="#state")
        kari.sees("Lageret flyttes", where="#reasons")
        kari.finds_in_the_trail("job.retry", ids[0][:8], "not_found")

        page.goto(f"/jobs?status=error&q={word}")
        page.get_by_label(kari.say("jobs.tick_one", id=ids[1][:8])).check()
        kari.press("jobs.retry_ticked")
        kari.is_told("jobs.done_retry", n=1, m=1)
        expect(page.locator("tbody tr")).to_have_count(1)

        kari.follow("jobs.all_retry")
        kari.press("jobs.retry_n", n=1)
        kari.is_told("jobs.done_retry", n=1, m=1)
        kari.finds_in_the_trail("job.retry", ids[2][:8])

        page.goto(f"/jobs?status=pending&q={word}")
        expect(page.locator("tbody tr")).to_have_count(3)
        kari.follow("jobs.all_cancel")
        kari.press("jobs.cancel_n", n=3)
        kari.is_told("jobs.done_cancel", n=3, m=3)
    assert {stack.job(job_id)["error_class"] for job_id in ids} == {"cancelled"}


def test_a_waiting_job_is_moved_changed_and_cancelled(kari: Operator, site: StackSite, stack: RunningStack) -> None:
    page = kari.page
    with paused(kari, "whisper_transcribe"):
        old = site.insert(f"feil-{REFERENCE}", language="en")
        page.goto(f"/jobs/{old}")
        page.locator("#priority").fill("7")
        kari.press("jobs.set_priority")
        kari.is_told("jobs.job_priority", before=0, after=7)
        kari.finds_in_the_trail("job.priority", old[:8], "7")

        page.goto(f"/jobs/{old}")
        kari.follow("jobs.edit")
        text = page.get_by_label(kari.say("jobs.payload"))
        text.fill(text.input_value().replace("feil-", ""))
        kari.press("jobs.resubmit")
        kari.is_told("jobs.made_created")
        kari.sees(old[:8], where="#facts")
        new = kari.job_id()

        page.goto(f"/jobs/{old}")
        kari.follow("jobs.cancel")
        page.get_by_label(kari.say("jobs.reason")).fill("feil navn")
        kari.press("jobs.cancel")
        kari.is_told("jobs.job_cancel_cancelled")
        kari.sees("feil navn", where="#error")
        kari.finds_in_the_trail("job.cancel", old[:8], "feil navn")
    page.goto(f"/jobs/{new}")
    kari.sees(kari.say("status.completed"), where="#state")
    assert (stack.job(new)["priority"], stack.job(new)["payload"]["path"]) == (7, REFERENCE)


def test_a_running_transcription_is_stopped(kari: Operator, stack: RunningStack, tmp_path: Path) -> None:
    name = f"lang-{uuid.uuid4().hex[:8]}.mp3"
    (tmp_path / name).write_bytes(SAMPLE.read_bytes() * 40)
    stack.make("add", f"FILE={tmp_path / name}", f"AS={name}")
    job_id = kari.enqueue("whisper_transcribe", path=name, language="en")
    kari.sees(kari.say("running.whisper_transcribe"), "%", where="#state", timeout=60_000)

    kari.follow("jobs.cancel")
    kari.press("jobs.cancel")
    kari.is_told("jobs.job_cancel_requested")
    kari.sees(kari.say("jobs.cancelled"), where="#state", timeout=60_000)
    kari.finds_in_the_trail("job.cancel", job_id[:8], "requested")


def test_a_schedule_runs_now_and_its_downloads_are_shown(kari: Operator, stack: RunningStack) -> None:
    page = kari.page
    page.goto("/schedules")
    kari.press("schedules.run_now")
    kari.is_told("schedules.pulled", name="podcast statistics")
    row = page.locator("tbody tr")
    expect(row.locator("td").nth(3)).to_contain_text(kari.say("status.completed"), timeout=60_000)
    kari.finds_in_the_trail("job.retry", "", "pulled_forward")

    assert kari.table("/statistics", "section:has(#episodes)")["sett.mp3"] == str(LISTENERS)
    assert int(kari.table("/statistics", "section:has(#list-apps)")["AntennaPod"]) >= LISTENERS
    row.first.wait_for(state="attached")

    for turn, other in (("off", "on"), ("on", "off")):
        page.goto("/schedules")
        kari.press(f"schedules.switch_{turn}")
        kari.is_told(f"schedules.{turn}", name="podcast statistics")
        expect(page.get_by_role("button", name=kari.say(f"schedules.switch_{other}"))).to_be_visible()
        kari.finds_in_the_trail(f"schedule.{turn}", "podcast statistics")


def test_a_transcript_is_corrected_and_analysed_again(kari: Operator, stack: RunningStack) -> None:
    page, job_id = kari.page, transcribed(stack)
    page.goto(f"/jobs/{job_id}/transcript")
    kari.follow("transcript.edit")
    page.locator("#t0").fill(f"Rettet på {kari.language}.")
    kari.press("transcript.save")
    kari.sees(f"Rettet på {kari.language}.", where="#l0")
    kari.finds_in_the_trail("transcript.correct", job_id[:8])

    page.goto(f"/jobs/{job_id}/transcript")
    kari.press("transcript.analyze")
    kari.is_told("jobs.made_created")
    kari.sees(f"Rettet på {kari.language}.")
    kari.sees(job_id[:8], where="#facts")
    kari.finds_in_the_trail("job.enqueue", "openrouter_analyze", job_id)


def transcribed(stack: RunningStack) -> str:
    """The job of the fixture `transcript`."""
    return stack.sql(
        f"select id from job_queue where payload ->> 'path' = '{REFERENCE}' and status = 'completed' limit 1"
    )


def test_what_a_model_has_cost_is_shown(kari: Operator) -> None:
    assert kari.table("/spend", "section:has(#by-model)")["made/for-tests"] == "1"
    assert kari.table("/spend", "section:has(#by-type)")["research_clip"] == "$" + (
        "0,25" if kari.language == "nb" else "0.25"
    )


def test_a_viewer_may_look_and_is_refused(kari: Operator, browser: Any, site: StackSite, stack: RunningStack) -> None:
    job_id = site.insert("borte.mp3", job_type="nobodys")
    with logged_in_page(browser, site, VIEWER, locale=LOCALES[kari.language]) as page:
        page.goto(f"/jobs/{job_id}")
        assert page.locator("main").get_by_role("button").count() == 0
        answered = page.evaluate(
            "path => fetch(path, {method: 'POST'}).then(async answer => [answer.status, await answer.text()])",
            f"/jobs/{job_id}/cancel",
        )
    assert answered[0] == 403
    assert kari.say("access.viewer") in answered[1]
    assert stack.job(job_id)["status"] == "pending"


def test_every_page_is_in_order(kari: Operator, site: StackSite, stack: RunningStack, tmp_path: Path) -> None:
    """In Bokmål each template wide and light, narrow and dark; in English, whose words alone differ, once.

    The other looks are tried by test_admin_crawl.py. A job's page and its result are a template for each type.
    """
    crawl = Crawl(kari.page, tmp_path / "pages")
    jobs = stack.sql(
        "select distinct on (job_type) id from job_queue where status = 'completed'"
        " and job_type in ('whisper_transcribe', 'research_clip', 'stats_parse') order by job_type, created_at desc"
    ).split()
    clip = stack.sql("select id from job_queue where job_type = 'research_clip' and status = 'completed' limit 1")
    jobs.append(site.insert("venter.mp3", job_type="nobodys"))
    starts = ["/", *(f"/jobs/{job_id}" for job_id in jobs), f"/jobs/{clip}/result"]
    crawl.walk(starts, looks=LOOKS[:2] if kari.language == "nb" else [(320, "light")], most=1)

    problems = crawl.problems + invalid(crawl.folder)
    assert problems == [], "\n".join(problems)
    assert set(crawl.seen) >= {
        "overview", "jobs", "job", "job_edit", "job_ask_cancel", "failed_jobs", "transcript", "transcript_edit",
        "enqueue", "enqueue_form", "workers", "schedules", "statistics", "spend", "audit", "ask_pause", "feed_atom",
    }  # fmt: skip
