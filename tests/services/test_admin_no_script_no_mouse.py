"""The same work without JavaScript, and with the keyboard alone."""

from typing import Any

import pytest
from psycopg.types.json import Jsonb

from services.whisper.payload import WhisperPayload
from sidelinja_jobs.payload_schema import payload_schema
from tests.services.admin_jobs import completed, failed
from tests.services.admin_site import AdminSite, logged_in_page


@pytest.fixture
def site(admin_site: AdminSite) -> AdminSite:
    """With a file to transcribe, and the schema that the form is made from."""
    (admin_site.settings.media_root / "a.mp3").write_bytes(b"x")
    admin_site.database.rows(
        "update job_type set payload_schema = %s where name = 'whisper_transcribe'",
        Jsonb(payload_schema(WhisperPayload)),
    )
    return admin_site


@pytest.fixture
def plain_page(browser: Any, site: AdminSite) -> Any:
    """A browser whose JavaScript is off."""
    with logged_in_page(browser, site, java_script_enabled=False) as page:
        yield page


def test_a_job_is_enqueued_corrected_and_cancelled_without_a_script(plain_page: Any, site: AdminSite) -> None:
    page = plain_page
    page.goto("/")
    page.get_by_role("link", name="New job").click()
    page.get_by_role("link", name="whisper_transcribe").click()
    page.get_by_label("path", exact=True).fill("b.mp3")
    page.get_by_role("button", name="Enqueue").click()
    assert page.get_by_label("path", exact=True).get_attribute("aria-invalid") == "true"
    page.get_by_label("path", exact=True).fill("a.mp3")
    page.get_by_role("button", name="Enqueue").click()
    assert page.get_by_role("status").inner_text() == "New job enqueued."
    job = page.url.rsplit("/", 1)[1]

    page.get_by_role("link", name="Edit and resubmit").click()
    page.get_by_label("Payload").fill('{"path": "a.mp3", "language": "nn"}')
    page.get_by_role("button", name="Submit as a new job").click()
    assert page.get_by_role("status").inner_text() == "New job enqueued."
    page.get_by_role("link", name=job[:8]).click()
    page.get_by_role("link", name="Cancel the job").click()
    page.get_by_label("Why?").fill("twice")
    page.get_by_role("button", name="Cancel the job").click()
    assert page.get_by_role("status").inner_text() == "The job was cancelled."
    assert site.database.job(job)["error_msg"] == "cancelled while waiting: twice"


def test_jobs_are_retried_one_ticked_and_all_without_a_script(plain_page: Any, site: AdminSite) -> None:
    page, jobs = plain_page, [failed(site.database, "x") for _ in range(4)]
    page.goto(f"/jobs/{jobs[0]}")
    page.get_by_role("button", name="Retry").click()
    assert page.get_by_role("status").inner_text() == "The job is retried, with all its attempts."

    page.goto("/jobs?status=error")
    assert not page.get_by_label("Select all on this page").is_visible(), "what needs a script is not shown"
    page.get_by_label(f"Select {str(jobs[1])[:8]}").check()
    page.get_by_role("button", name="Retry selected").click()
    assert page.get_by_role("status").inner_text() == "1 of 1 retried."
    page.get_by_role("link", name="Retry all matching").click()
    page.get_by_role("button", name="Retry 2 jobs").click()
    assert page.get_by_role("status").inner_text() == "2 of 2 retried."
    assert {site.database.job(job)["status"] for job in jobs} == {"pending"}


def test_the_keyboard_alone_finds_ticks_retries_and_opens(browser_page: Any, site: AdminSite) -> None:
    page, job = browser_page, failed(site.database, "no such file")
    page.goto("/jobs?status=error")
    page.keyboard.press("Tab")
    assert page.locator(":focus").inner_text() == "Skip to content"
    assert page.locator(":focus").bounding_box()["y"] >= 0, "it is seen when it has the focus"
    page.keyboard.press("Enter")
    assert page.locator("main:focus").count() == 1

    tab_to(page, f"Select {str(job)[:8]}")
    page.keyboard.press("Space")
    tab_to(page, "Retry selected")
    page.keyboard.press("Enter")
    page.get_by_text("1 of 1 retried.").wait_for()

    page.goto("/jobs?status=pending")
    tab_to(page, str(job)[:8])
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/jobs/{job}")
    tab_to(page, "Cancel the job")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/jobs/{job}/cancel")
    tab_to(page, "Why? (may be empty)")
    page.keyboard.type("by hand")
    page.keyboard.press("Enter")
    page.get_by_text("The job was cancelled.").wait_for()
    assert site.database.job(job)["error_class"] == "cancelled"


def test_whatever_has_the_focus_is_seen_to_have_it(browser_page: Any, site: AdminSite) -> None:
    """Each stop of the Tab key on the busiest pages has an outline, in light and dark."""
    page, job = browser_page, completed(site.database, "test_job", {"a": [1, {"b": 2}]})
    for path in ("/", "/jobs", f"/jobs/{job}", "/enqueue/whisper_transcribe"):
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.goto(path)
            stops = set()
            for _ in range(80):
                page.keyboard.press("Tab")
                stop = page.evaluate(FOCUS)
                if stop is None or stop["place"] in stops:
                    break
                stops.add(stop["place"])
                assert stop["width"] >= 2, (path, scheme, stop)
            assert len(stops) > 10, (path, stops)


NAME = """() => {
    const focused = document.activeElement;
    return focused === document.body ? '' : focused.ariaLabel || focused.labels?.[0]?.innerText || focused.innerText;
}"""
FOCUS = """() => {
    const focused = document.activeElement;
    if (!focused || focused === document.body) return null;
    const style = getComputedStyle(focused);
    return {
        place: [...document.querySelectorAll('*')].indexOf(focused), what: focused.outerHTML.slice(0, 120),
        width: style.outlineStyle === 'none' ? 0 : parseFloat(style.outlineWidth),
    };
}"""


def tab_to(page: Any, name: str) -> None:
    """Presses Tab until what has this name holds the focus."""
    met = []
    for _ in range(80):
        page.keyboard.press("Tab")
        met.append(page.evaluate(NAME).strip())
        if met[-1].startswith(name):
            return
    raise AssertionError(f"80 times Tab, and never at {name!r}, but at {met}")
