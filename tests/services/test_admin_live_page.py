"""An open page in a real browser: it shows changes by itself, and never takes anything out of a person's hands."""

from typing import Any

from tests.databases import Database
from tests.services.admin_site import OPERATOR, AdminSite, logged_in_page
from tests.waiting import stays, wait_until

CARD = "#type-test-5fjob"  # type-test_job, its underscore written as a number


def waiting(page: Any) -> str:
    """What the card of test_job says is waiting."""
    text: str = page.locator(f"{CARD} dl.row > div").nth(1).locator("dd").inner_text()
    return text


def live(page: Any) -> None:
    """Waits until the page listens."""
    page.locator("#live[data-state=on]").wait_for()


def test_a_new_job_and_its_progress_show_by_themselves(browser: Any, admin_site: AdminSite) -> None:
    database = admin_site.database
    with logged_in_page(browser, admin_site) as page:
        page.goto("/")
        live(page)
        job = database.enqueue("whisper_transcribe", status="running", attempts=1, progress=0.25, progress_note="del 1")
        shown = page.locator(f"[data-progress='{job}']")
        shown.wait_for()
        wait_until(lambda: "Transcribing … attempt 2/3" in shown.inner_text())
        database.rows("update job_queue set progress = 0.5 where id = %s", job)
        wait_until(lambda: "50\u202f%" in shown.inner_text())
        assert shown.locator("progress").get_attribute("value") in ("0.25", "0.5")
        database.rows("update job_queue set status = 'completed', completed_at = now() where id = %s", job)
        shown.wait_for(state="detached")


def test_each_thing_that_a_person_may_hold_is_held(browser_page: Any, database: Database) -> None:
    page = browser_page
    page.goto("/")
    live(page)
    held = {
        "focus": ("document.querySelector('CARD a.button').focus()", "document.activeElement.blur()"),
        "details": (
            "document.querySelector('CARD').insertAdjacentHTML('beforeend', '<details open><summary>s</summary>');",
            "document.querySelector('CARD details').open = false",
        ),
        "box": (
            "document.querySelector('CARD').insertAdjacentHTML('beforeend', '<input type=checkbox>');"
            "document.querySelector('CARD input').click()",
            "document.querySelector('CARD input').click(); document.activeElement.blur()",
        ),
        "selection": (
            "getSelection().selectAllChildren(document.querySelector('CARD h2'))",
            "getSelection().removeAllRanges()",
        ),
    }  # fmt: skip
    for number, (begin, end) in enumerate(held.values(), start=1):
        page.evaluate(begin.replace("CARD", CARD))
        before = waiting(page)
        database.enqueue()
        database.enqueue("other_job")
        other = page.locator("#type-other-5fjob dl.row > div").nth(1).locator("dd")
        wait_until(lambda: other.inner_text() == str(number))  # noqa: B023 - is asked within the turn
        assert waiting(page) == before, begin
        page.evaluate(end.replace("CARD", CARD))
        wait_until(lambda: waiting(page) == str(number), what=f"the card to follow after {end}")  # noqa: B023


def test_the_page_follows_over_a_restart_of_the_server(browser_page: Any, admin_site: AdminSite) -> None:
    page, port = browser_page, admin_site.port
    page.goto("/")
    live(page)
    admin_site.stop()
    page.locator("#live[data-state=lost]").wait_for()
    admin_site.database.enqueue()
    admin_site.start(port)
    live(page)

    wait_until(lambda: waiting(page) == "1", 15)


def test_a_hidden_tab_listens_no_more_and_a_seen_one_catches_up(browser_page: Any, admin_site: AdminSite) -> None:
    page, feed = browser_page, admin_site.app.state.feed
    page.goto("/")
    live(page)
    turn = "Object.defineProperty(document, 'hidden', {value: HIDDEN, configurable: true});"
    turn += "document.dispatchEvent(new Event('visibilitychange'))"
    page.evaluate(turn.replace("HIDDEN", "true"))
    wait_until(lambda: feed.streams == 0)
    admin_site.database.enqueue()
    page.evaluate(turn.replace("HIDDEN", "false"))

    wait_until(lambda: waiting(page) == "1")
    assert feed.streams == 1


def test_a_page_that_was_told_to_stand_still_asks_for_nothing(browser_page: Any, admin_site: AdminSite) -> None:
    page, feed = browser_page, admin_site.app.state.feed
    page.goto("/")
    live(page)
    page.get_by_role("button", name="Live: stop").click()
    wait_until(lambda: feed.streams == 0)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    admin_site.database.enqueue()
    stays(lambda: not asked, 1.5)
    page.reload()
    page.get_by_role("button", name="Stopped: go live").click()

    live(page)
    wait_until(lambda: waiting(page) == "1")


def test_a_session_that_ends_leads_to_the_login(browser_page: Any, admin_site: AdminSite) -> None:
    page = browser_page
    page.goto("/")
    live(page)
    admin_site.database.rows("delete from admin_session")
    admin_site.database.enqueue()

    page.wait_for_url("**/login*")


def test_a_type_is_paused_and_resumed_without_javascript(browser: Any, admin_site: AdminSite) -> None:
    with logged_in_page(browser, admin_site, java_script_enabled=False) as page:
        page.goto("/")
        page.locator(CARD).get_by_role("link", name="Pause").click()
        assert page.get_by_role("heading", level=1).inner_text() == "Pause test_job?"
        page.get_by_label("For how long").select_option("60")
        page.get_by_label("Reason").fill("<b>disk</b> is full")
        page.get_by_role("button", name="Pause").click()
        assert page.get_by_role("status").inner_text() == "test_job is paused."
        assert "<b>disk</b> is full" in page.locator(f"{CARD} .chip").inner_text()
        page.reload()
        assert page.get_by_role("status").count() == 0, "told once"
        page.locator(CARD).get_by_role("button", name="Resume").click()
        assert page.get_by_role("status").inner_text() == "test_job goes on."
        page.goto("/audit")
        rows = page.locator("tbody tr").all_inner_texts()
        assert "job_type.resume" in rows[0]
        assert "job_type.pause" in rows[1]
        assert "reason <b>disk</b> is full" in rows[1]
        assert OPERATOR in rows[1]
